"""Streams over tar archives in the format of WebDataset (extra `webdataset`)."""

import io
import json
import os
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from orbitgp.data.examples import batch_of
from orbitgp.data.images import decode_image
from orbitgp.data.npz import read_npy
from orbitgp.data.stream import Batch, Stream, check_batch_size, check_rank
from orbitgp.errors import FileError, InputError

IMAGES = {"png", "jpg", "jpeg", "bmp", "webp", "ppm", "pgm"}
MAX_MEMBER = 2**28
"""Bytes of one file in an archive."""


@dataclass(frozen=True, eq=False)
class WebDatasetStream(Stream):
    """Local archives: paths, or a pattern such as "train-{000..063}.tar".

    The files of an example share a name and follow each other; `input_key` (png, jpg, npy, …) and
    `label_key` (cls, txt, json) are what comes after its first dot. A rank takes whole archives,
    and no batch goes beyond one. WebDataset itself groups the files into examples; they are read
    here, since it takes files of any size, stops without a word at a damaged one, and runs
    commands where a name says so.
    """

    tars: str | Path | Sequence[str | Path]
    input_key: str
    label_key: str
    batch_size: int
    paths: tuple[Path, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_batch_size(self.batch_size)
        if self.input_key.split(".")[-1] not in IMAGES | {"npy"}:
            raise InputError(
                f"inputs are {', '.join(sorted(IMAGES))} or npy; got {self.input_key!r}"
            )
        if self.label_key.split(".")[-1] not in ("cls", "txt", "json"):
            raise InputError(f"labels are cls, txt or json; got {self.label_key!r}")
        paths = tuple(_expanded(self.tars))
        missing = [str(path) for path in paths if not path.is_file()]
        if missing or not paths:
            raise InputError(f"expected tar archives; {', '.join(missing)[:200]} cannot be found")
        object.__setattr__(self, "paths", paths)

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """The batches of the archives r, r + world_size, …; batch b of archive a is a + b·A."""
        check_rank(rank, world_size)
        archives = range(rank, len(self.paths), world_size)
        return (batch for archive in archives for batch in self._read(archive))

    def _read(self, archive: int) -> Iterator[Batch]:
        """The batches of one of A archives, whose lengths nobody knows before."""
        number, examples = archive, []
        for example in _examples(self.paths[archive]):
            examples.append(self._decoded(example, self.paths[archive]))
            if len(examples) == self.batch_size:
                yield _batch(examples, number, self.paths[archive])
                number, examples = number + len(self.paths), []
        if examples:
            yield _batch(examples, number, self.paths[archive])

    def _decoded(self, example: dict[str, Any], path: Path) -> tuple[np.ndarray, Any]:
        place = f"{path}: {example['__key__']}"
        missing = [key for key in (self.input_key, self.label_key) if key not in example]
        if missing:
            raise FileError(f"{place} has no {' and no '.join(missing)}")
        x = _input(example[self.input_key], self.input_key, f"{place}.{self.input_key}")
        return x, _label(example[self.label_key], self.label_key, f"{place}.{self.label_key}")


def _batch(examples: list[tuple[np.ndarray, Any]], number: int, path: Path) -> Batch:
    shapes = {x.shape for x, _ in examples}
    if len(shapes) > 1:
        raise FileError(f"{path}: inputs have the shapes {sorted(shapes)!s:.200}; expected one")
    labels = np.array([label for _, label in examples])
    return batch_of(np.stack([x for x, _ in examples]), labels, number)


def _input(data: bytes, key: str, place: str) -> np.ndarray:
    if key.split(".")[-1] in IMAGES:
        return decode_image(data, place)
    x = read_npy(io.BytesIO(data), place)
    if x.dtype.kind not in "biuf":
        raise FileError(f"{place}: inputs are arrays of numbers; got {x.dtype}")
    return x


def _label(data: bytes, key: str, place: str) -> int | float | str:
    try:
        text = data.decode()
        match key.split(".")[-1]:
            case "cls":
                return int(text)
            case "txt":
                return text.strip()
        label = json.loads(text)
        if isinstance(label, int | float | str):
            return label
        raise ValueError(f"expected a number or a string; got {text:.80}")
    except (ValueError, RecursionError) as error:
        raise FileError(f"{place} is no label: {error}") from None


def _examples(path: Path) -> Iterator[dict[str, Any]]:
    group_by_keys, _ = _webdataset()
    try:
        yield from group_by_keys(_members(path))
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError, AssertionError) as error:
        if isinstance(error, FileError | InputError):
            raise
        raise FileError(f"{path} cannot be read as a tar archive: {error!s:.200}") from None


def _members(path: Path) -> Iterator[dict[str, Any]]:
    """The files of an archive in their order, one in memory at a time."""
    with tarfile.open(path) as archive:
        while (member := archive.next()) is not None:
            vars(archive)["members"].clear()  # which would grow with the archive
            if not member.isreg():
                continue
            if member.issparse() or member.size > MAX_MEMBER:
                raise FileError(f"{path}: {member.name!r:.80} claims {member.size} bytes")
            file = archive.extractfile(member)
            data = file.read() if file else b""
            yield {"fname": member.name, "data": data, "__url__": str(path)}
        _check_end(archive, path)


def _check_end(archive: tarfile.TarFile, path: Path) -> None:
    """tarfile takes a damaged header for the end; the end is a block of zeros."""
    file = archive.fileobj
    assert file is not None
    file.seek(archive.offset)
    if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise FileError(f"{path}: byte {archive.offset}: the archive is damaged or cut off here")


def _expanded(tars: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return the paths of a pattern with braces, or those given."""
    if isinstance(tars, str):
        # a backslash separates folders where it does not escape braces
        tars = list(_webdataset()[1](tars, escape=os.sep == "/"))
    return [Path(path) for path in ([tars] if isinstance(tars, Path) else tars)]


def _webdataset() -> tuple[Any, Any]:
    """Return the functions of WebDataset that group files and expand patterns."""
    try:
        from braceexpand import braceexpand
        from webdataset.tariterators import group_by_keys
    except ImportError:
        raise InputError(
            'archives are read with WebDataset: pip install "orbitgp[webdataset]"'
        ) from None
    return group_by_keys, braceexpand
