"""Passes over all data in numbered chunks, which any number of processes share.

The draws of a chunk come from a generator of its own, made of the seed of the pass and the number
of the chunk. So a pass has the same result, but for the order of its sums, whichever process
takes a chunk.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from orbitgp.data.stream import Stream
from orbitgp.errors import InputError

CHUNK = 512
"""Rows of a chunk of data in memory."""


@dataclass(frozen=True)
class Chunk:
    """Some of the data, with a number that no other chunk of the pass has."""

    number: int
    x: Tensor
    y: Tensor


class Examples(ABC):
    """Labelled data that can be passed over again and again."""

    num_data: int
    """N."""

    x: Tensor
    y: Tensor
    """Those in memory: all of them, or a sample."""

    @abstractmethod
    def chunks(self, rank: int, world_size: int) -> Iterator[Chunk]:
        """The chunks of one process; those of all processes hold every example once."""


class Resident(Examples):
    """Data in memory, all of them in every process."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.x, self.y, self.num_data = x, y, len(x)

    def chunks(self, rank: int, world_size: int) -> Iterator[Chunk]:
        """Chunk r, r + W, r + 2W, … of `CHUNK` rows each, for rank r of W."""
        for number in range(rank, -(-self.num_data // CHUNK), world_size):
            rows = slice(number * CHUNK, (number + 1) * CHUNK)
            yield Chunk(number, self.x[rows], self.y[rows])


class Streamed(Examples):
    """Data that are read anew in every pass, each process reading its own batches."""

    def __init__(
        self,
        stream: Stream,
        prepare: Callable[[np.ndarray, np.ndarray], tuple[Tensor, Tensor]],
        num_data: int,
        sample: tuple[Tensor, Tensor],
    ) -> None:
        self.stream, self.prepare, self.num_data = stream, prepare, num_data
        self.x, self.y = sample

    def chunks(self, rank: int, world_size: int) -> Iterator[Chunk]:
        """Batch by batch, as tensors."""
        for batch in self.stream.batches(rank, world_size):
            x, y = self.prepare(np.asarray(batch.x), np.asarray(batch.y))
            if x.shape[1:] != self.x.shape[1:]:
                raise InputError(
                    f"batch {batch.number} has inputs of shape {list(x.shape[1:])}; those before "
                    f"it had {list(self.x.shape[1:])}"
                )
            yield Chunk(batch.number, x, y)


def chunk_generator(seed: int, number: int) -> torch.Generator:
    """The generator of one chunk of a pass.

    Torch's generators have 2³² seeds, so of many chunks some pair may share its noise, by chance.
    """
    (state,) = np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state) >> 1)


def check_coverage(counted: float, expected: int) -> None:
    """Every example once in every pass, or the bound would be that of other data."""
    if counted != expected:
        raise InputError(
            f"a pass gave {counted:.0f} examples where there are {expected}: the source must give "
            "every example once in each pass (look for drop_last, padding, or files that changed), "
            "and all processes must have the same data"
        )
