"""Examples as others give them (tensors, pictures, numbers) as arrays, one batch at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from orbitgp.data.images import image_array
from orbitgp.data.stream import Batch
from orbitgp.errors import InputError


def kinds(value: object) -> set[str]:
    """The full names of the classes of an object, known without importing what defines them."""
    return {f"{kind.__module__}.{kind.__qualname__}" for kind in type(value).__mro__}


def as_array(value: Any, place: str) -> np.ndarray:
    """A tensor, a picture of Pillow, an array, numbers or a string as an array."""
    try:
        if "torch.Tensor" in kinds(value):
            value = value.detach().cpu().numpy()
        if "PIL.Image.Image" in kinds(value):
            return image_array(value, place)
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{place} cannot be made an array: {error!s:.200}") from None
    if array.dtype.kind not in "biufU":
        raise InputError(f"{place}: expected numbers or strings of one shape; got {array.dtype}")
    return array


def pair_of(item: Any, place: str) -> tuple[Any, Any]:
    """Input and label of an example or of a batch."""
    if not isinstance(item, Sequence) or isinstance(item, str) or len(item) != 2:
        raise InputError(f"{place}: expected (x, y); got {type(item).__name__}")
    return item[0], item[1]


def stacked(values: list[np.ndarray], places: list[str]) -> np.ndarray:
    """Arrays of one shape as one array."""
    for value, place in zip(values, places, strict=True):
        if value.shape != values[0].shape:
            raise InputError(
                f"{place} has shape {list(value.shape)} and {places[0]} {list(values[0].shape)}; "
                "bring all to one"
            )
    return np.stack(values)


def batch_of(x: np.ndarray, y: np.ndarray, number: int) -> Batch:
    """A batch, if inputs and labels are equally many."""
    if not x.ndim or not y.ndim or len(x) != len(y):
        raise InputError(
            f"batch {number}: expected a label for each input; got x {list(x.shape)} and y "
            f"{list(y.shape)}"
        )
    return Batch(x, y, number)
