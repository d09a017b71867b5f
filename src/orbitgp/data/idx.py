"""IDX files, the format of MNIST: a magic number, the lengths of all axes, then the values."""

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np

from orbitgp.errors import FileError

DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MAX_BYTES = 2**33
"""Bytes of an unpacked file that are read at most."""


def read_idx(path: Path) -> np.ndarray:
    """Return the array of an IDX file, gzipped or not."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            zeros, kind, axes = struct.unpack(">HBB", file.read(4))
            shape = struct.unpack(f">{axes}I", file.read(4 * axes))
            data = file.read(MAX_BYTES)
        if zeros or not axes:
            raise ValueError(f"its first bytes are {zeros}, {kind} and {axes}")
        values = np.frombuffer(data, DTYPES[kind]).reshape(shape)
    except (KeyError, ValueError, struct.error) as error:
        raise FileError(f"{path} is not an IDX file: {type(error).__name__}: {error}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"{path} cannot be read: {error}") from None
    return values.astype(values.dtype.newbyteorder("="))
