"""Refusals of scikit-learn as refusals of ours."""

from collections.abc import Iterator
from contextlib import contextmanager

from orbitgp.errors import InputError, OrbitGPError


@contextmanager
def refusals() -> Iterator[None]:
    """scikit-learn checks what it is given with ValueError and TypeError: bad input, no defect."""
    try:
        yield
    except OrbitGPError:
        raise
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from error
