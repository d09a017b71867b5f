"""A stream over whatever holds data, known by the names of its classes: no extra is imported."""

from pathlib import Path
from typing import Any

import numpy as np

from orbitgp.data.examples import kinds
from orbitgp.data.huggingface import DATASET, HuggingFaceStream
from orbitgp.data.labelled import LabelledData
from orbitgp.data.parquet_stream import ParquetStream
from orbitgp.data.stream import ArrayStream, Stream
from orbitgp.data.torch_streams import DatasetStream, LoaderStream
from orbitgp.errors import InputError

LABELS = ("label", "labels", "target", "y")


def stream_of(source: Any, *, batch_size: int = 1000) -> Stream:
    """A stream, arrays (x, y), a .parquet file, or a data set or loader of others, as a stream.

    A loader keeps its own batches; everything else comes in batches of `batch_size`.
    """
    names = kinds(source)
    if isinstance(source, Stream):
        return source
    if isinstance(source, LabelledData):
        return ArrayStream(source.x, source.y, batch_size)
    if isinstance(source, tuple) and [isinstance(a, np.ndarray) for a in source] == [True] * 2:
        return ArrayStream(source[0], source[1], batch_size)
    if isinstance(source, str | Path):
        return _of_file(Path(source), batch_size)
    if DATASET in names:
        return _of_columns(source, batch_size)
    if "datasets.dataset_dict.DatasetDict" in names:
        raise InputError(f"choose a split of the data set: one of {', '.join(source)[:200]}")
    if "torch.utils.data.dataloader.DataLoader" in names:
        return LoaderStream(source)
    if names & {
        "torch.utils.data.dataset.IterableDataset",
        "datasets.iterable_dataset.IterableDataset",
    }:
        raise InputError(
            f"{type(source).__name__} gives single examples; give a DataLoader of it, or the "
            "archives of a WebDataset to WebDatasetStream"
        )
    if "torch.utils.data.dataset.Dataset" in names or not hasattr(source, "__iter__"):
        return DatasetStream(source, batch_size)
    return LoaderStream(source)


def _of_file(path: Path, batch_size: int) -> Stream:
    if path.suffix.lower() == ".parquet":
        return ParquetStream(path, None, batch_size)
    raise InputError(
        f"{path}: only .parquet files are streams by themselves; give tar archives to "
        "WebDatasetStream, and read others with read_data"
    )


def _of_columns(dataset: Any, batch_size: int) -> Stream:
    """The column that is called like a label, and the only other one."""
    labels = [name for name in dataset.column_names if name in LABELS]
    inputs = [name for name in dataset.column_names if name not in LABELS]
    if len(labels) != 1 or len(inputs) != 1:
        raise InputError(
            f"of {', '.join(dataset.column_names)[:200]}, name input and label: "
            "HuggingFaceStream(dataset, input, label, batch_size)"
        )
    return HuggingFaceStream(dataset, inputs[0], labels[0], batch_size)
