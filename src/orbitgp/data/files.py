"""Streams of files: processes share the files, and read each in batches."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from orbitgp.data.columns import target_place
from orbitgp.data.images import decode_image
from orbitgp.data.parquet import column_names, opened_parquet, pieces, split_columns
from orbitgp.data.stream import PER_FILE, Batch, Stream, check_batch_size, check_files, stacked
from orbitgp.errors import FileError, InputError

IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".ppm", ".tiff", ".gif")


class ParquetStream(Stream):
    """Parquet files with the same columns; memory holds a batch and a row group of one column."""

    def __init__(
        self, paths: Sequence[str | Path], target: str | None = None, batch_size: int = 512
    ) -> None:
        check_batch_size(batch_size)
        self.paths, self.target, self.batch_size = check_files(paths), target, batch_size

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """File r, r + W, … from its first row to its last."""
        for file, path in islice(enumerate(self.paths), rank, None, world_size):
            with opened_parquet(path) as table:
                names = column_names(table, path)
                place = target_place(names, self.target, True, path)
                row = 0
                for number, piece in enumerate(pieces(table, self.batch_size)):
                    x, y = split_columns(piece, names, place, path, first_row=row)
                    assert y is not None
                    yield Batch(x, y, file * PER_FILE + number)
                    row += len(x)


class WebDatasetStream(Stream):
    """Tar files of WebDataset (extra `webdataset`): members that share a name are an example.

    `x` and `y` are the extensions of inputs (an image, or npy) and of labels (cls, txt or json).
    """

    def __init__(
        self,
        tars: Sequence[str | Path] | str,
        x: str = "png",
        y: str = "cls",
        batch_size: int = 512,
    ) -> None:
        check_batch_size(batch_size)
        names = _expanded(tars) if isinstance(tars, str) else tars
        self.paths, self.x, self.y, self.batch_size = check_files(names), x, y, batch_size

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """Tar r, r + W, … from its first example to its last."""
        for file, path in islice(enumerate(self.paths), rank, None, world_size):
            examples = (self._example(example, path) for example in _tar_examples(path))
            for number in range(PER_FILE):
                few = list(islice(examples, self.batch_size))
                if not few:
                    break
                x, y = (stacked(part) for part in zip(*few, strict=True))
                yield Batch(x, y, file * PER_FILE + number)

    def _example(self, example: Mapping[str, Any], path: Path) -> tuple[np.ndarray, np.ndarray]:
        place = f"{path}: example {example.get('__key__')!r:.80}"
        missing = [name for name in (self.x, self.y) if name not in example]
        if missing:
            kinds = sorted(name for name in example if not name.startswith("__"))
            raise FileError(f"{place} has no {', '.join(missing)}; it has {', '.join(kinds)[:100]}")
        x = decode_input(example[self.x], self.x, place)
        return x, np.asarray(decode_label(example[self.y], self.y, place))


def decode_input(data: bytes, extension: str, place: str) -> np.ndarray:
    """An array from the bytes of an image or of an npy file."""
    if f".{extension.lower()}" in IMAGES:
        return decode_image(data, place)
    if extension.lower() != "npy":
        raise InputError(f"{place}: inputs are images or npy; got the extension {extension!r}")
    try:
        return np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, OSError, EOFError, SyntaxError, MemoryError) as error:
        raise FileError(f"{place}: {extension} cannot be read: {error!s:.200}") from None


def decode_label(data: bytes, extension: str, place: str) -> int | float | str:
    """A whole number (cls), text (txt), or what JSON has: a number or a text."""
    try:
        text = data.decode().strip()
        label = json.loads(text) if extension == "json" else text
        label = int(text) if extension == "cls" else label
    except (ValueError, RecursionError) as error:
        raise FileError(f"{place}: {extension} is not a label: {error!s:.200}") from None
    if isinstance(label, bool) or not isinstance(label, int | float | str):
        raise FileError(f"{place}: a label is a number or a text; got {label!r:.80}")
    return label


def _tar_examples(path: Path) -> Iterator[dict[str, Any]]:
    """The examples of one tar, in its order, by the library's own grouping of names."""
    tars = _webdataset().tariterators
    try:
        with path.open("rb") as file:  # the library itself leaves files open
            members = ({**member, "__url__": str(path)} for member in tars.tar_file_iterator(file))
            yield from tars.group_by_keys(members)
    except FileError:
        raise
    except Exception as error:  # malformed bytes make tarfile raise almost anything
        raise FileError(
            f"{path} cannot be read as a tar of WebDataset: {type(error).__name__}: {error!s:.200}"
        ) from None


def _expanded(pattern: str) -> list[str]:
    """`digits-{000..009}.tar`, as the library writes it, as names."""
    return list(_webdataset().shardlists.expand_urls(pattern))


def _webdataset() -> Any:
    try:
        import webdataset
    except ImportError:
        raise InputError(
            'tars of WebDataset are read with webdataset: pip install "orbitgp[webdataset]"'
        ) from None
    return webdataset
