"""Minibatches of data in memory or of a stream, the same whatever the number of processes.

A step names its batch by its number, so a run that goes on needs no state of a generator.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from orbitgp.distributed.group import Group
from orbitgp.errors import InputError
from orbitgp.inference.passes import Chunk, Examples, Streamed, chunk_generator

Batch = tuple[Tensor, Tensor]


class MemoryBatches:
    """Rows of data in memory, shuffled anew in each epoch; every process has all of them."""

    def __init__(self, examples: Examples, size: int, seed: int, group: Group) -> None:
        self.examples, self.seed, self.group = examples, seed, group
        self.size = min(size, examples.num_data)
        self._epoch, self._order = -1, torch.zeros(0, dtype=torch.long)

    def take(self, number: int) -> Batch:
        """The next rows of the order of their epoch; what does not fill a batch is left out."""
        epoch, place = divmod(number, self.examples.num_data // self.size)
        if epoch != self._epoch:
            generator = chunk_generator(self.seed, epoch)
            self._epoch = epoch
            self._order = torch.randperm(self.examples.num_data, generator=generator)
        rows = self._order[place * self.size : (place + 1) * self.size]
        own = rows[self.group.rank :: self.group.size].to(self.examples.x.device)
        return self.examples.x[own], self.examples.y[own]


class StreamBatches:
    """Rows of a buffer, which the stream replaces: a shuffle of data that memory does not hold.

    The buffer starts as the even sample of the stream that is in memory. A stream that is sorted by
    its labels should be shuffled before: a buffer mixes its own length only.
    """

    def __init__(self, examples: Streamed, size: int, seed: int, group: Group) -> None:
        self.examples, self.seed, self.group = examples, seed, group
        self.size = min(size, len(examples.x))
        self._x, self._y = examples.x.clone(), examples.y.clone()
        self._waiting = self._x[:0], self._y[:0]
        self._stream = self._endless()

    def take(self, number: int) -> Batch:
        """Random rows of the buffer, whose places the next examples of the stream take."""
        generator = chunk_generator(self.seed, number * self.group.size + self.group.rank)
        count = len(range(self.group.rank, self.size, self.group.size))
        rows = torch.randperm(len(self._x), generator=generator)[:count].to(self._x.device)
        x, y = self._x[rows], self._y[rows]
        self._x[rows], self._y[rows] = self._next(count)
        return x, y

    def _next(self, count: int) -> Batch:
        """So many examples of the stream, in its order."""
        x, y = self._waiting
        while len(x) < count:
            chunk = next(self._stream)
            x, y = torch.cat([x, chunk.x]), torch.cat([y, chunk.y])
        self._waiting = x[count:], y[count:]
        return x[:count], y[:count]

    def _endless(self) -> Iterator[Chunk]:
        """The part of this process, pass after pass."""
        rank, world_size = self.group.rank, self.group.size
        while True:
            number = 0
            for number, chunk in enumerate(self.examples.chunks(rank, world_size), 1):  # noqa: B007
                yield chunk
            if not number:
                raise InputError(
                    f"the stream has fewer batches than the {world_size} processes that share it; "
                    "give smaller batches, or start fewer processes"
                )


Batches = MemoryBatches | StreamBatches
"""Random minibatches of `size` rows over all processes; `take(number)` gives a process its own."""


def batches_of(examples: Examples, size: int, seed: int, group: Group) -> Batches:
    """Minibatches of at most this size."""
    if isinstance(examples, Streamed):
        return StreamBatches(examples, size, seed, group)
    return MemoryBatches(examples, size, seed, group)
