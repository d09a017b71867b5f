"""Arrays in npz archives and npy files, checked before anything is allocated for them."""

import io
import math
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from orbitgp.errors import FileError

MAX_BYTES = 2**33
"""Of one array; more than this comes in pieces."""

MALFORMED = (
    *(KeyError, ValueError, TypeError, EOFError, OSError, zlib.error, MemoryError),
    *(zipfile.BadZipFile, NotImplementedError, RuntimeError, SyntaxError, OverflowError),
)
"""What NumPy and zipfile raise on bytes that are not what they say."""


def read_npz(path: Path, *names: str) -> dict[str, np.ndarray]:
    """The arrays with these names; all of the archive if none are named."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = [member.removesuffix(".npy") for member in archive.namelist()]
            missing = set(names) - set(found)
            if missing:
                raise FileError(
                    f"{path}: no array is called {', '.join(sorted(missing))}; there are "
                    f"{', '.join(found)[:200]}"
                )
            return {name: _member(archive, f"{name}.npy", path) for name in names or found}
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise FileError(f"{path} cannot be read as an npz archive: {error}") from None


def read_npy(path: Path) -> np.ndarray:
    """The array of an npy file."""
    try:
        with path.open("rb") as file:
            return read_array(file, path.stat().st_size, str(path))
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error}") from None


def read_array(file: io.BufferedIOBase | IO[bytes], size: int, place: str) -> np.ndarray:
    """The array in npy format of which `file` has `size` bytes; no objects, so no code is run."""
    try:
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise FileError(f"{place}: version {version} of the format is not known")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
        expected = math.prod(shape) * dtype.itemsize
        if dtype.hasobject or min(shape, default=0) < 0 or expected > MAX_BYTES:
            raise FileError(f"{place}: {dtype} {list(shape)} is not a plain array")
        if size - file.tell() != expected:
            raise FileError(
                f"{place}: {dtype} {list(shape)} takes {expected} bytes; the file has "
                f"{size - file.tell()}"
            )
        values = np.frombuffer(file.read(expected), dtype, count=math.prod(shape))
        return values.reshape(shape, order="F" if fortran else "C").copy()
    except FileError:
        raise
    except MALFORMED as error:
        raise FileError(f"{place}: {type(error).__name__}: {error}") from None


def _member(archive: zipfile.ZipFile, member: str, path: Path) -> np.ndarray:
    place = f"{path}: array {member.removesuffix('.npy')}"
    try:
        with archive.open(member) as file:
            return read_array(file, archive.getinfo(member).file_size, place)
    except FileError:
        raise
    except MALFORMED as error:
        raise FileError(f"{place}: {type(error).__name__}: {error}") from None
