"""Streams over data sets and loaders of PyTorch, or whatever behaves like them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from orbitgp.data.examples import as_array, batch_of, kinds, pair_of, stacked
from orbitgp.data.stream import Batch, Stream, check_batch_size, check_rank, spans
from orbitgp.errors import InputError

UNSUITED = {
    "torch.utils.data.sampler.RandomSampler": "shuffles, and ranks would not share one order",
    "torch.utils.data.sampler.SubsetRandomSampler": "shuffles, and ranks would not share one order",
    "torch.utils.data.sampler.WeightedRandomSampler": "draws examples more than once, or never",
    "torch.utils.data.distributed.DistributedSampler": "pads, and ranks are given out here",
}


@dataclass(frozen=True, eq=False)
class DatasetStream(Stream):
    """Any data set of PyTorch with a length, whose examples are (x, y)."""

    dataset: Any
    batch_size: int

    def __post_init__(self) -> None:
        check_batch_size(self.batch_size)
        if not hasattr(self.dataset, "__getitem__") or not hasattr(self.dataset, "__len__"):
            raise InputError(
                f"expected a data set with a length and examples by number; got "
                f"{type(self.dataset).__name__}: give LoaderStream a loader of it"
            )

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """Batch n is the examples n·batch_size and on, looked up one by one."""
        parts = spans(len(self.dataset), self.batch_size, rank, world_size)
        return (self._batch(number, range(start, stop)) for number, start, stop in parts)

    def _batch(self, number: int, indices: range) -> Batch:
        places = [f"example {index}" for index in indices]
        pairs = [pair_of(self.dataset[index], f"example {index}") for index in indices]
        x = stacked(
            [as_array(x, place) for (x, _), place in zip(pairs, places, strict=True)], places
        )
        y = stacked(
            [as_array(y, place) for (_, y), place in zip(pairs, places, strict=True)], places
        )
        return batch_of(x, y, number)


@dataclass(frozen=True, eq=False)
class LoaderStream(Stream):
    """A DataLoader, or anything else that gives batches (x, y) each time it is iterated over.

    Each rank reads all batches and keeps every world_size-th: the loader itself must not divide
    its data among ranks.
    """

    loader: Any

    def __post_init__(self) -> None:
        if not isinstance(self.loader, Iterable) or hasattr(self.loader, "__next__"):
            raise InputError(
                f"expected what can be iterated over again, for passes repeat; got "
                f"{type(self.loader).__name__}: give the loader or a list of batches, not an "
                "iterator or a generator"
            )
        if isinstance(self.loader, str | bytes | dict):
            raise InputError(f"expected batches (x, y); got {type(self.loader).__name__}")
        if "torch.utils.data.dataloader.DataLoader" in kinds(self.loader):
            _check_loader(self.loader)

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """The batches r, r + world_size, … of the loader."""
        check_rank(rank, world_size)
        return (
            _loaded(item, number)
            for number, item in enumerate(_iterate(self.loader))
            if number % world_size == rank
        )


def _loaded(item: Any, number: int) -> Batch:
    x, y = pair_of(item, f"batch {number}")
    return batch_of(as_array(x, f"batch {number}, x"), as_array(y, f"batch {number}, y"), number)


def _iterate(loader: Any) -> Iterator[Any]:
    """A loader draws a seed for its workers when it starts; the global generator is put back."""
    if "torch.utils.data.dataloader.DataLoader" not in kinds(loader):
        return iter(loader)
    import torch

    with torch.random.fork_rng(devices=[]):
        return iter(loader)


def _check_loader(loader: Any) -> None:
    if loader.batch_size is None and loader.batch_sampler is None:
        raise InputError("the loader gives single examples; give it a batch_size")
    if loader.drop_last or getattr(loader.batch_sampler, "drop_last", False):
        raise InputError(
            "the loader leaves out the last examples; every one counts: set drop_last=False"
        )
    for sampler in (loader.sampler, getattr(loader.batch_sampler, "sampler", None)):
        for name in kinds(sampler) & UNSUITED.keys():
            raise InputError(
                f"the loader's {name.split('.')[-1]} {UNSUITED[name]}; use shuffle=False and no "
                "sampler"
            )
