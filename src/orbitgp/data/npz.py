"""Arrays in npz archives and npy files, without objects, so that no code is run."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from orbitgp.errors import FileError

MALFORMED = (
    *(KeyError, ValueError, TypeError, EOFError, OSError, zlib.error, MemoryError),
    *(zipfile.BadZipFile, NotImplementedError, RuntimeError, SyntaxError, OverflowError),
)
"""Errors that NumPy and zipfile raise on malformed bytes."""


def read_npz(path: Path, *names: str) -> dict[str, np.ndarray]:
    """Return the arrays with these names, or all arrays of the archive if none are named."""
    with _as_file_errors(f"{path} cannot be read as an npz archive"), path.open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("it is an npy file")
        if missing := set(names) - set(archive.files):
            raise FileError(
                f"{path}: no array is called {', '.join(sorted(missing))}; there are "
                f"{', '.join(archive.files)[:200]}"
            )
        return {n: _plain(archive.__getitem__, n, f"{path}: {n}") for n in names or archive.files}


def read_npy(file: Any, place: str) -> np.ndarray:
    """Return the array of a path or an open npy file; errors call it `place`."""
    return _plain(lambda given: np.load(given, allow_pickle=False), file, place)


def _plain(read: Any, source: Any, place: str) -> np.ndarray:
    """Return what `read` makes of the source, if that is an array."""
    with _as_file_errors(f"{place} is not a plain array"):
        array = read(source)
    if isinstance(array, np.ndarray):
        return array
    raise FileError(f"{place} is not a plain array")


@contextmanager
def _as_file_errors(reason: str) -> Iterator[None]:
    try:
        yield
    except FileError:
        raise
    except MALFORMED as error:
        raise FileError(f"{reason}: {type(error).__name__}: {error!s:.200}") from None
