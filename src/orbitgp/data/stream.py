"""Labelled data that are read in batches, pass after pass, and never all at once."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from orbitgp.errors import InputError

PER_FILE = 2**32
"""Batch b of file f has the number f · 2³² + b."""


@dataclass(frozen=True)
class Batch:
    """Some examples, with a number that is theirs in every pass and for any number of processes."""

    x: np.ndarray
    y: np.ndarray
    number: int


class Stream(ABC):
    """Examples that can be read again and again, by one process or shared among several."""

    @abstractmethod
    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """One pass: the batches of process `rank`; those of all hold every example exactly once."""


class ArrayStream(Stream):
    """Arrays, which may be memory-mapped: rows are read when their batch comes."""

    def __init__(self, x: np.ndarray, y: np.ndarray, batch_size: int = 512) -> None:
        check_batch_size(batch_size)
        if len(x) != len(y):
            raise InputError(f"inputs and labels must pair up; got {len(x)} and {len(y)}")
        self.x, self.y, self.batch_size = x, y, batch_size

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """Slices of rows."""
        for number, rows in slices(len(self.x), self.batch_size, rank, world_size):
            yield Batch(np.asarray(self.x[rows]), np.asarray(self.y[rows]), number)


def slices(
    num_data: int, batch_size: int, rank: int, world_size: int
) -> Iterator[tuple[int, slice]]:
    """Batch r, r + W, r + 2W, … of rows that can be reached by number, for rank r of W."""
    for number in range(rank, -(-num_data // batch_size), world_size):
        start = number * batch_size
        yield number, slice(start, min(start + batch_size, num_data))


def check_batch_size(batch_size: int) -> None:
    """At least one example in a batch."""
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1; got {batch_size}")


def check_files(paths: Sequence[str | Path]) -> list[Path]:
    """Some files, each of them there."""
    places = [Path(path) for path in paths]
    missing = [str(path) for path in places if not path.is_file()]
    if missing or not places:
        raise InputError(f"expected files that are there; missing: {', '.join(missing)[:300]}")
    return places


def stacked(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Examples of one shape as one array."""
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise InputError(
            f"the examples of a batch have different shapes, {', '.join(map(str, shapes))}; bring "
            "them to one"
        )
    return np.stack(parts)
