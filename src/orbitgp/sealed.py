"""Sealed files: tensors and JSON in one safetensors file with a checksum of all its bytes.

    8 bytes   length of the header, little-endian
    header    JSON: name, dtype, shape and place of each tensor; its __metadata__ holds one string,
              "orbitgp", which is JSON again: sha256, form (what the file holds), version, config
    data      the tensors

The digest is that of the whole file with its own 64 hexadecimal digits written as zeros. Reading
never runs anything that a file holds: bytes become numbers and text, and nothing else.
"""

import contextlib
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from orbitgp.errors import FileError

VERSION = 1
MAX_HEADER = 2**24
"""Bytes; the headers of real models have some thousands."""

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between attempts to replace a file that is open elsewhere."""

LEFT_OVER = 86_400.0
"""Seconds after which nobody writes a temporary file any more."""

MALFORMED = (
    *(LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError),
    *(RecursionError, MemoryError),
)
"""What may be raised while something is built from values that a file holds."""

_MARK = rb"{\"sha256\": \""
_BLANK = "0" * 64


def write_sealed(path: Path, form: str, tensors: Mapping[str, Tensor], config: Any) -> None:
    """Write atomically: after a crash at any moment the file is the old one or the new one.

    The same tensors and config give the same bytes.
    """
    seal = {"sha256": _BLANK, "form": form, "version": VERSION, "config": config}
    # clones, since the same tensor may have two names
    dense = torch.contiguous_format
    plain = {name: t.detach().cpu().clone(memory_format=dense) for name, t in tensors.items()}
    # a single entry, for the order of several is not fixed
    data = bytearray(save(plain, {"orbitgp": json.dumps(seal)}))
    place = data.index(_MARK) + len(_MARK)
    data[place : place + len(_BLANK)] = hashlib.sha256(data).hexdigest().encode()
    write_atomically(path, data)


def read_sealed(path: Path, *forms: str) -> tuple[str, dict[str, Tensor], Any]:
    """Form, tensors and config of a file, if it is intact and of one of these forms."""
    return unseal(read_bytes(path), path, *forms)


def unseal(data: bytes, path: Path, *forms: str) -> tuple[str, dict[str, Tensor], Any]:
    """`read_sealed` of bytes that were read before, from this path."""
    seal = _seal_of(data, path)
    if seal["form"] not in forms:
        raise FileError(f"{path} holds {seal['form']!r}; expected {' or '.join(forms)}")
    if seal["version"] != VERSION:
        raise FileError(
            f"{path} has format version {seal['version']!r}, and this orbitgp reads version "
            f"{VERSION}; install the release that wrote it"
        )
    try:
        tensors = load(data)
    except (SafetensorError, *MALFORMED) as error:
        raise _unreadable(path, f"{error}") from None
    empty = [name for name, tensor in tensors.items() if not tensor.numel()]
    if empty:  # a shape with a 0 in it may claim any other length
        raise _unreadable(path, f"{empty[0]!r:.40} is empty")
    return seal["form"], tensors, seal["config"]


def within(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors of one part, under the names that it knows."""
    start = f"{prefix}."
    return {name.removeprefix(start): t for name, t in tensors.items() if name.startswith(start)}


def check_like(tensors: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    """Refuse tensors that do not have the names, shapes and dtypes of these, or are not finite."""
    if own.keys() != tensors.keys():
        names = sorted(own.keys() ^ tensors.keys())
        raise _unfit(f"other tensors than are needed: {', '.join(names)[:200]}")
    for name, tensor in tensors.items():
        if tensor.shape != own[name].shape or tensor.dtype != own[name].dtype:
            raise _unfit(
                f"{name} as {tensor.dtype} {list(tensor.shape)}, where {own[name].dtype} "
                f"{list(own[name].shape)} is needed"
            )
        finite = not tensor.is_floating_point() or torch.isfinite(tensor).all()
        if not finite and not torch.equal(tensor, own[name]):  # limits of ∞ are meant
            raise _unfit(f"values in {name} that are not finite")


def write_atomically(path: Path, data: bytes | bytearray) -> None:
    """A temporary file beside it, flushed to the disk, then renamed over it."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        reason = error.strerror or error
        raise FileError(f"{path} cannot be written ({reason}); {_hint(error)}") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _synchronise(path.parent)


def _replace(temporary: Path, path: Path) -> None:
    """Rename a file over another one, which Windows refuses while that is open somewhere."""
    for pause in PAUSES:
        try:
            return os.replace(temporary, path)
        except PermissionError:
            time.sleep(pause)
    os.replace(temporary, path)


def _hint(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return (
            "close other programs that have this file open, or choose a folder that you may write "
            "to"
        )
    return "choose a folder that is there and that you may write to"


def _synchronise(folder: Path) -> None:
    """Bring a rename to the disk, where a system opens folders: Windows does not."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files that killed processes of this library left behind.

    A file is written and renamed within minutes. So one that has not changed for a day belongs to
    no process, on this machine or on another one that shares the folder.
    """
    for path in folder.glob("*.tmp"):
        ours = re.fullmatch(r"\w+\.(json|safetensors|html)\.[0-9a-f]{16}\.tmp", path.name)
        with contextlib.suppress(OSError):  # gone meanwhile, or open elsewhere
            if ours and time.time() - path.stat().st_mtime > LEFT_OVER:
                path.unlink()


def read_bytes(path: Path) -> bytes:
    """All bytes of a plain file."""
    try:
        if path.exists() and not path.is_file():  # a pipe or a device might never end
            raise FileError(f"{path} is not a plain file")
        return path.read_bytes()
    except FileError:
        raise
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be opened: {error}") from None


def _seal_of(data: bytes, path: Path) -> dict[str, Any]:
    """What the header says of the file, after its digest has been checked."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or not 2 <= length <= min(MAX_HEADER, len(data) - 8):
        raise _unreadable(path, f"{len(data)} bytes with a header of {length} bytes")
    header = data[8 : 8 + length]
    try:
        seal = json.loads(json.loads(header)["__metadata__"]["orbitgp"])
        digest, _, _, _ = seal["sha256"], seal["form"], seal["version"], seal["config"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _unreadable(path, "its header is not that of a sealed file") from None
    start = 8 + header.find(_MARK) + len(_MARK)
    content = hashlib.sha256(data[:start] + _BLANK.encode())
    content.update(memoryview(data)[start + len(_BLANK) :])
    if content.hexdigest() != digest:
        raise FileError(
            f"{path} does not match its own sha256: it was damaged or changed after it was "
            "written; restore it from a copy"
        )
    return seal


def _unfit(what: str) -> FileError:
    return FileError(f"the file holds {what}; it was damaged, or not written by orbitgp")


def _unreadable(path: Path, reason: str) -> FileError:
    return FileError(f"{path} is not a file that orbitgp wrote: {reason}")
