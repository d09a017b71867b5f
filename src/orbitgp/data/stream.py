"""Batches that are read one after another, pass after pass."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Batch:
    """Some labelled examples, with the number that they have in every pass."""

    x: np.ndarray
    y: np.ndarray
    number: int


class Stream(ABC):
    """Labelled examples that can be read again and again."""

    @abstractmethod
    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """One pass; over all ranks every example exactly once."""


class ArrayStream(Stream):
    """temporary"""

    def __init__(self, x, y, batch_size):
        self.x, self.y, self.batch_size = x, y, batch_size

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """x"""
        for number in range(rank, -(-len(self.x) // self.batch_size), world_size):
            rows = slice(number * self.batch_size, (number + 1) * self.batch_size)
            yield Batch(self.x[rows], self.y[rows], number)
