"""Streams over data sets of Hugging Face (extra `huggingface`), which read from their own files."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from orbitgp.data.examples import as_array, batch_of, kinds, stacked
from orbitgp.data.stream import Batch, Stream, check_batch_size, spans
from orbitgp.errors import InputError

DATASET = "datasets.arrow_dataset.Dataset"


@dataclass(frozen=True, eq=False)
class HuggingFaceStream(Stream):
    """A `datasets.Dataset` with a column of inputs (numbers, lists or pictures) and of labels."""

    dataset: Any
    input: str
    label: str
    batch_size: int

    def __post_init__(self) -> None:
        check_batch_size(self.batch_size)
        if DATASET not in kinds(self.dataset):
            raise InputError(
                f"expected a datasets.Dataset; got {type(self.dataset).__name__}: choose a split, "
                'as in load_dataset(..., split="train")'
            )
        for name in (self.input, self.label):
            if name not in self.dataset.column_names:
                raise InputError(
                    f"no column is called {name!r}; there are "
                    f"{', '.join(self.dataset.column_names)[:200]}"
                )

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """Batch n is the rows n·batch_size and on."""
        x, y = (_column(self.dataset, name) for name in (self.input, self.label))
        return (
            batch_of(
                _values(x[start:stop][self.input], start, self.input),
                _values(y[start:stop][self.label], start, self.label),
                number,
            )
            for number, start, stop in spans(len(x), self.batch_size, rank, world_size)
        )


def _column(dataset: Any, name: str) -> Any:
    """One column, as NumPy arrays or, of pictures, as those of Pillow."""
    feature = dataset.features[name]
    column = dataset.select_columns([name])
    if type(feature).__name__ == "Image":
        return column.with_format(None)
    while getattr(feature, "feature", None) is not None:
        feature = feature.feature
    # without a dtype, the format makes float32 of float64
    double = {"dtype": np.float64} if getattr(feature, "dtype", None) == "float64" else {}
    return column.with_format("numpy", **double)


def _values(values: Any, start: int, name: str) -> np.ndarray:
    if isinstance(values, np.ndarray) and values.dtype != object:
        return as_array(values, f"column {name!r}")
    places = [f"column {name!r}, row {start + number}" for number in range(len(values))]
    rows = [as_array(value, place) for value, place in zip(values, places, strict=True)]
    return stacked(rows, places)
