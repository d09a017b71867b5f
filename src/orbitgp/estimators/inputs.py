"""What is looked at in inputs before anything is made of them."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from orbitgp.errors import InputError
from orbitgp.orbits.names import Kind

CHANNELS = (1, 3, 4)
MAX_DIFFERENCE = 10.0
"""Factor between the largest values of inputs to predict and of inputs that were learned from."""


REMEDIES = {
    "Input y contains NaN": "leave out what has no label",
    "contains NaN": "fill in missing values, for example by sklearn.impute.SimpleImputer, or leave "
    "these rows out",
    "contains infinity": "leave these rows out, or scale the values down",
    "inconsistent numbers of samples": "give one label for each input",
    "minimum of": "give more inputs",
    "continuous": "use InvariantGPRegressor for numbers, or turn them into classes",
    "could not convert string": "turn text into numbers first, for example X by "
    "sklearn.preprocessing.OrdinalEncoder; use InvariantGPClassifier if y are names of classes",
    "Expected 2D array": "Reshape your data: X.reshape(-1, 1) if each input is one number, "
    "X.reshape(1, -1) for a single input",
    "1d array": "give one label for each input; y.argmax(1), if labels are one-hot",
    "features as input": "give the same columns as in fit",
    "requires y": "give labels: fit(X, y)",
    "cannot be used to seed": "give a whole number or None as random_state",
}
"""What to do about what scikit-learn finds, by a part of its message."""


@contextmanager
def explained() -> Iterator[None]:
    """Errors of scikit-learn about its input as one sentence that says what to do."""
    try:
        yield
    except InputError:
        raise
    except ValueError as error:
        found = str(error).split("\n")[0].rstrip(".: ")
        remedies = (remedy for part, remedy in REMEDIES.items() if part in found)
        raise InputError(f"{found}; {next(remedies, 'look at X and y')}") from error


def check_dense(X: object) -> None:
    """Sparse inputs are an `InputError` that says what to do, not scikit-learn's TypeError."""
    if hasattr(X, "tocsr"):
        raise InputError("sparse inputs are not supported; pass a dense array, as in X.toarray()")


def scale_of(X: np.ndarray) -> float:
    """One number for all of the data, so that no transformation notices."""
    return float(np.abs(X).max()) or 1.0


def check_layout(X: np.ndarray, kind: Kind) -> None:
    """Refuse inputs that an orbit of this kind would read as something else than they are."""
    if X.ndim == 2 and kind == "images":
        side = math.isqrt(X.shape[1])
        shape = f"({side}, {side})" if side**2 == X.shape[1] else "(H, W)"
        raise InputError(
            f"the orbit acts on images, but X has shape {X.shape}, {len(X)} rows of "
            f"{X.shape[1]} numbers; pass image_shape={shape} if each row is an image, or X of "
            "shape (n, H, W) or (n, C, H, W)"
        )
    if X.ndim == 4 and X.shape[3] in CHANNELS and X.shape[1] not in CHANNELS:
        raise InputError(
            f"X has shape {X.shape}, which looks like images with their channels last; "
            "expected (n, C, H, W): pass X.transpose(0, 3, 1, 2)"
        )


def check_alike(X: Any, fitted: tuple[int, ...], scale: float) -> None:
    """Refuse inputs of another shape than those of `fit`, and warn of values of another scale."""
    if len(fitted) < 2:  # rows of numbers are scikit-learn's to check
        return
    values = np.asarray(X)
    if values.shape[1:] != fitted:
        single = values.shape == fitted
        raise InputError(
            f"the model was fitted to inputs of shape {fitted}; got an array of shape "
            f"{values.shape}: "
            + ("for a single input pass X[None]" if single else "bring inputs to that shape")
        )
    largest = float(np.abs(values).max(initial=0))
    if not 1 / MAX_DIFFERENCE < largest / scale < MAX_DIFFERENCE and largest > 0:
        warnings.warn(
            f"values of these inputs reach {largest:.3g}, those that the model was fitted to "
            f"{scale:.3g}; scale them alike, for example all to 0 … 1",
            UserWarning,
            stacklevel=4,
        )
