"""Ways to spoil a sealed file: its bytes, or what is in it under a seal that is right again."""

import json
import pickle
import struct
from pathlib import Path

import torch
from safetensors.torch import save

from orbitgp.sealed import read_sealed, write_sealed


class Bomb:
    """What a pickle could do."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def bit_flip(data, random, folder):
    place = random.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << random.randrange(8))]) + data[place + 1 :]


def header_flip(data, random, folder):
    length = struct.unpack("<Q", data[:8])[0]
    place = random.randrange(8 + length)
    return data[:place] + bytes([random.randrange(256)]) + data[place + 1 :]


def truncation(data, random, folder):
    return data[: random.randrange(len(data))]


def extension(data, random, folder):
    return data + random.randbytes(random.randrange(1, 100))


def absurd_length(data, random, folder):
    length = random.choice([0, 1, 2**24 + 1, 2**31, 2**62, 2**64 - 1, len(data), len(data) - 8])
    return struct.pack("<Q", length) + data[8:]


def cut_and_paste(data, random, folder):
    a, b = sorted(random.randrange(len(data)) for _ in range(2))
    c = random.randrange(len(data))
    return data[:a] + data[c : c + b - a] + data[b:]


def a_pickle(data, random, folder):
    return pickle.dumps(Bomb(folder / "ran")) + data[: random.randrange(100)]


def another_file(data, random, folder):
    return random.choice([b"", b"{}", b"\x80\x04.", b"PK\x03\x04", save({"x": torch.zeros(3)})])


def deep_nesting(data, random, folder):
    header = b'{"__metadata__":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    return struct.pack("<Q", len(header)) + header


BYTES = [
    *(bit_flip, header_flip, truncation, extension, absurd_length, cut_and_paste),
    *(a_pickle, another_file, deep_nesting),
]

JUNK = [
    *(None, True, -1, 0, 2**70, 1e308, float("nan"), "", "../../etc/passwd", [], {}, [[]]),
    *({"kind": "given"}, {"kind": "Affine"}, {"kind": "__import__"}, "orbitgp", [0] * 50),
]


def respelled(path: Path, form: str, random) -> bytes:
    """The content changed in one place, and sealed again with a digest that is right."""
    _, tensors, config = read_sealed(path, form)
    tensors = dict(tensors)
    name = random.choice(list(tensors))
    match random.randrange(8):
        case 0:
            del tensors[name]
        case 1:
            tensors[random.choice(["../" + name, "/etc/passwd", name + "\0", "x" * 300])] = (
                tensors.pop(name)
            )
        case 2:
            tensors[name] = tensors[name].to(random.choice([torch.float16, torch.int8]))
        case 3:
            shape = random.choice([[0], [], [1, 1, 1, 1, 1], [3, 5], [2000]])
            tensors[name] = torch.zeros(shape, dtype=tensors[name].dtype)
        case 4:
            if tensors[name].is_floating_point():
                tensors[name] = torch.full_like(
                    tensors[name], random.choice([torch.nan, torch.inf])
                )
            else:
                tensors[name] = tensors[name][..., :0]
        case 5:
            other = random.choice(list(tensors))
            tensors[name], tensors[other] = tensors[other], tensors[name]
        case _:
            spoil(config, random)
    spoilt = path.with_name("spoilt")
    write_sealed(spoilt, form, {k: t.clone() for k, t in tensors.items()}, config)
    return spoilt.read_bytes()


def spoil(config, random):
    """Replace, drop or add one value anywhere in JSON."""
    node = config
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = random.choice(keys)
        if isinstance(node[key], dict | list) and node[key] and random.random() < 0.7:
            node = node[key]
            continue
        match random.randrange(3):
            case 0:
                del node[key]
            case _:
                node[key] = json.loads(json.dumps(random.choice(JUNK)))
        return
