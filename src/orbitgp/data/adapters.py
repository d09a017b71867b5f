"""Streams of what people have: Datasets and DataLoaders of PyTorch, Hugging Face data sets."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from orbitgp.data.stream import ArrayStream, Batch, Stream, check_batch_size, slices, stacked
from orbitgp.errors import InputError


class DatasetStream(Stream):
    """A PyTorch Dataset with a length, whose items are (x, y); each is asked for once in a pass."""

    def __init__(self, dataset: Any, batch_size: int = 512) -> None:
        check_batch_size(batch_size)
        self.dataset, self.batch_size = dataset, batch_size

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """Items by their number."""
        for number, rows in slices(len(self.dataset), self.batch_size, rank, world_size):
            items = [_pair(self.dataset[row]) for row in range(rows.start, rows.stop)]
            x, y = (stacked([plain(part) for part in parts]) for parts in zip(*items, strict=True))
            yield Batch(x, y, number)


class LoaderStream(Stream):
    """A DataLoader, or anything else that gives (x, y) batches each time it is gone through.

    Several processes each go through all of it and keep every so-manieth batch, so its order must
    be the same everywhere.
    """

    def __init__(self, loader: Iterable[Any]) -> None:
        if iter(loader) is loader:
            raise InputError(
                "a generator can be gone through once, and learning takes several passes; give a "
                "list, a DataLoader, or an object whose __iter__ starts anew"
            )
        if getattr(loader, "drop_last", False):
            raise InputError(
                "the DataLoader drops its last batch, and every example must be seen once in each "
                "pass; make it with drop_last=False"
            )
        if type(getattr(loader, "sampler", None)).__name__ == "DistributedSampler":
            raise InputError(
                "a DistributedSampler repeats examples to fill its batches; leave it out: every "
                "process is given its share here"
            )
        self.loader = loader

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """Batch r, r + W, … as they come."""
        sampler = type(getattr(self.loader, "sampler", None)).__name__
        if world_size > 1 and sampler == "RandomSampler":
            raise InputError(
                "a DataLoader that shuffles has another order in each process, so that examples "
                "would be seen twice or never; make it with shuffle=False"
            )
        for number, batch in islice(enumerate(self.loader), rank, None, world_size):
            x, y = _pair(batch)
            yield Batch(plain(x), plain(y), number)


class HuggingFaceStream(Stream):
    """A data set of Hugging Face `datasets` (extra `huggingface`), by the names of its columns."""

    def __init__(self, dataset: Any, x: str = "image", y: str = "label", batch_size: int = 512):
        check_batch_size(batch_size)
        missing = {x, y} - set(dataset.column_names)
        if missing:
            raise InputError(
                f"the data set has no column {', '.join(sorted(missing))}; name inputs and labels "
                f"among {', '.join(dataset.column_names)[:200]}, as HuggingFaceStream(dataset, x=…)"
            )
        self.dataset, self.x, self.y = dataset.with_format("numpy"), x, y
        self.batch_size = batch_size

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """Rows by their number."""
        for number, rows in slices(len(self.dataset), self.batch_size, rank, world_size):
            columns = self.dataset[rows]
            yield Batch(plain(columns[self.x]), plain(columns[self.y]), number)


def stream_of(source: Any) -> Stream:
    """A stream of whatever this is."""
    if isinstance(source, Stream):
        return source
    if isinstance(source, tuple) and len(source) == 2 and all(map(_is_array, source)):
        return ArrayStream(plain(source[0]), plain(source[1]))
    ancestors = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(source).__mro__}
    if "datasets.arrow_dataset.Dataset" in ancestors:
        return HuggingFaceStream(source)
    if isinstance(source, Mapping | str | bytes) or _is_array(source):
        raise InputError(
            f"{type(source).__name__} is no stream of labelled examples; give a Dataset, a "
            "DataLoader, (x, y) arrays, or a stream such as ParquetStream of orbitgp.data.files"
        )
    is_dataset = "torch.utils.data.dataset.Dataset" in ancestors
    if is_dataset and hasattr(source, "__getitem__") and hasattr(source, "__len__"):
        return DatasetStream(source)
    if is_dataset:
        raise InputError(
            f"{type(source).__name__} gives its examples one by one, without a number; put it into "
            "a DataLoader(…, batch_size=512)"
        )
    if isinstance(source, Iterable):
        return LoaderStream(source)
    raise InputError(f"cannot read labelled examples from {type(source).__name__}")


def plain(value: Any) -> np.ndarray:
    """A NumPy array of a tensor, a list, or an array; lists of arrays must agree in shape."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"the examples of a batch have different shapes: {error}") from None
    if array.dtype == object:
        raise InputError(
            f"a batch of {type(value).__name__} holds objects or arrays of different shapes; "
            "expected numbers or texts of one shape"
        )
    return array


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or hasattr(value, "detach")


def _pair(item: Any) -> tuple[Any, Any]:
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise InputError(f"expected (x, y) from the source; got {type(item).__name__}")
    return item[0], item[1]
