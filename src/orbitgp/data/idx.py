"""IDX files, the format of MNIST: a magic number, the lengths of all axes, then the values."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from orbitgp.errors import FileError

DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MAX_AXES = 8
MAX_BYTES = 2**33
"""Unpacked; more than this comes in pieces."""


def read_idx(path: Path) -> np.ndarray:
    """The array of an IDX file, gzipped or not."""
    data = _content(path)
    if len(data) < 4 or data[:2] != b"\0\0":
        raise FileError(f"{path}: byte 0: an IDX file begins with two zeros; got {data[:2]!r}")
    kind, axes = data[2], data[3]
    if kind not in DTYPES:
        raise FileError(f"{path}: byte 2: no type of values has the number {kind:#04x}")
    start = 4 + 4 * axes
    if not 1 <= axes <= MAX_AXES or len(data) < start:
        raise FileError(f"{path}: byte 3: {axes} axes in a file of {len(data)} bytes")
    shape = struct.unpack(f">{axes}I", data[4:start])
    dtype = np.dtype(DTYPES[kind])
    expected = math.prod(shape) * dtype.itemsize
    if len(data) - start != expected:
        raise FileError(
            f"{path}: byte {start}: {list(shape)} values of {dtype.itemsize} bytes are {expected} "
            f"bytes; the file has {len(data) - start}"
        )
    values = np.frombuffer(data, dtype, offset=start).reshape(shape)
    return values.astype(dtype.newbyteorder("="))


def _content(path: Path) -> bytes:
    """The bytes of a file, unpacked only as far as its own header says that it goes."""
    try:
        data = path.read_bytes()
        if data[:2] != b"\x1f\x8b":
            return data
        with gzip.open(path) as file:
            head = file.read(4 + 4 * MAX_AXES)
            return head + file.read(_remaining(head) + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"{path} cannot be read: {error}") from None


def _remaining(head: bytes) -> int:
    """How many bytes an IDX file has beyond its head, at most, as its head has it."""
    axes = head[3] if len(head) > 3 else 0
    if not 1 <= axes <= MAX_AXES or len(head) < 4 + 4 * axes:
        return 0
    size = math.prod(struct.unpack(f">{axes}I", head[4 : 4 + 4 * axes])) * 8
    return min(size, MAX_BYTES)
