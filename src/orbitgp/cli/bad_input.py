"""Errors of scikit-learn about its input, raised as `InputError`."""

from collections.abc import Iterator
from contextlib import contextmanager

from orbitgp.errors import InputError, OrbitGPError


@contextmanager
def bad_input() -> Iterator[None]:
    """scikit-learn checks what it is given with ValueError and TypeError: bad input, no defect."""
    try:
        yield
    except OrbitGPError:
        raise
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from error
