"""Data by name: the digits that scikit-learn ships, and any data set of OpenML."""

from typing import Any

import numpy as np

from orbitgp.data.labelled import LabelledData
from orbitgp.errors import FileError, InputError

DIGITS = "digits"
OPENML = "openml:"
NUM_DIGITS = 1000
"""Digits to learn from. The set is in the order of its writers, so the others test on new hands."""


def is_name(source: object) -> bool:
    """Whether this is a name rather than the path of a file or folder."""
    return isinstance(source, str) and (source == DIGITS or source.startswith(OPENML))


def load_named(
    name: str, *, target: str | None = None, image_size: tuple[int, int] | None = None
) -> LabelledData:
    """Load `digits`, `openml:NAME` or `openml:NAME@VERSION`.

    Parameters
    ----------
    name : str
        `digits` are the 1,797 handwritten digits of `sklearn.datasets.load_digits`, of 8 × 8
        pixels: 1,000 to learn from and 797 to test with. `openml:NAME` is loaded by
        `sklearn.datasets.fetch_openml`, which keeps it in `~/scikit_learn_data`.
    target : str, optional
        Column of the labels of an OpenML data set; its default target if None.
    image_size : tuple of int, optional
        Height and width, if each row of an OpenML data set is an image.

    Returns
    -------
    LabelledData
        Inputs and labels; data sets of OpenML have no test part.

    Raises
    ------
    InputError
        If an option does not apply, or rows are not images of that size.
    FileError
        If the data set cannot be downloaded, or does not consist of numbers.

    Examples
    --------
    >>> from orbitgp.data.named import load_named
    >>> data = load_named("digits")
    >>> data.x.shape, data.x_test.shape
    ((1000, 8, 8), (797, 8, 8))
    """
    if name != DIGITS:
        return _openml(name, target, image_size)
    if target is not None or image_size is not None:
        raise InputError("digits have one label and one size: give neither target nor image_size")
    from sklearn.datasets import load_digits

    digits: Any = load_digits()
    x, y = digits.images.astype(np.float32), digits.target
    return LabelledData(x[:NUM_DIGITS], y[:NUM_DIGITS], x[NUM_DIGITS:], y[NUM_DIGITS:])


def _openml(name: str, target: str | None, image_size: tuple[int, int] | None) -> LabelledData:
    from sklearn.datasets import fetch_openml

    title, _, version = name.removeprefix(OPENML).partition("@")
    if not title or not (version.isdigit() or not version):
        raise InputError(f"expected openml:NAME or openml:NAME@VERSION; got {name}")
    try:
        found: Any = fetch_openml(
            title,
            version=int(version) if version else "active",
            target_column="default-target" if target is None else target,
            as_frame=False,
            parser="liac-arff",
        )
    except (OSError, ValueError, KeyError) as error:
        raise FileError(
            f"{name} could not be loaded from OpenML ({type(error).__name__}: {error}); look up "
            "its name and columns on openml.org, and check the network"
        ) from error
    x, y = found.data, found.target
    if y is None:
        raise FileError(f"{name} has no default target; name its column of labels by target")
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "biuf":
        raise FileError(f"{name} holds text or is sparse; expected a table of numbers")
    return LabelledData(_images(name, x, image_size), _labels(y))


def _images(name: str, x: np.ndarray, size: tuple[int, int] | None) -> np.ndarray:
    """Rows as images of this size, or as they are."""
    x = x.astype(np.float32)
    if size is None:
        return x
    if x.shape[1] != size[0] * size[1]:
        raise InputError(
            f"{name} has {x.shape[1]} columns, which are no images of {size[0]} × {size[1]}"
        )
    return x.reshape(-1, *size)


def _labels(y: np.ndarray) -> np.ndarray:
    """Numbers as they are; names as strings, or as integers where all of them are written so."""
    if y.dtype.kind != "O":
        return y
    names = y.astype(str)
    integers = all(name.removeprefix("-").isdecimal() for name in set(names.tolist()))
    return names.astype(np.int64) if integers else names
