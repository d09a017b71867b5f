"""Data in batches, for what does not fit into memory or lies on several machines.

A pass over a stream gives every example exactly once over all ranks: nothing is padded, dropped
or shuffled. A batch has the same number and the same examples in each pass, whatever the number
of ranks, so that random draws can be keyed by it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from orbitgp.errors import InputError


@dataclass(frozen=True, eq=False)
class Batch:
    """Some examples, and the number by which a pass knows them."""

    x: np.ndarray
    y: np.ndarray
    number: int


class Stream(ABC):
    """Examples in batches, as often as one asks."""

    @abstractmethod
    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """One pass over the part of a rank; over all ranks, every example exactly once."""


@dataclass(frozen=True, eq=False)
class ArrayStream(Stream):
    """Arrays, or files mapped into memory by `np.load(path, mmap_mode="r")`: read by slices."""

    x: np.ndarray
    y: np.ndarray
    batch_size: int

    def __post_init__(self) -> None:
        check_batch_size(self.batch_size)
        if not self.x.ndim or not self.y.ndim or len(self.x) != len(self.y):
            raise InputError(
                f"x and y need one row for each example; got {list(self.x.shape)} and "
                f"{list(self.y.shape)}"
            )

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """Batch n is rows n·batch_size and on; rank r has the batches r, r + world_size, …"""
        return (
            Batch(np.array(self.x[start:stop]), np.array(self.y[start:stop]), number)
            for number, start, stop in spans(len(self.x), self.batch_size, rank, world_size)
        )


def spans(
    total: int, batch_size: int, rank: int, world_size: int
) -> Iterator[tuple[int, int, int]]:
    """Number, start and stop of the batches of a rank."""
    check_rank(rank, world_size)
    numbers = range(rank, -(-total // batch_size), world_size)
    return ((n, n * batch_size, min(total, (n + 1) * batch_size)) for n in numbers)


def check_rank(rank: int, world_size: int) -> None:
    """Refuse a rank that its world does not have."""
    if world_size < 1 or not 0 <= rank < world_size:
        raise InputError(f"expected 0 ≤ rank < world_size; got {rank} and {world_size}")


def check_batch_size(batch_size: int) -> None:
    """Refuse batches without examples."""
    if batch_size < 1:
        raise InputError(f"batch_size is at least 1; got {batch_size}")
