"""Readers of files."""

import gzip
import struct
import zipfile

import numpy as np
import pytest

from orbitgp import FileError
from orbitgp.data.idx import read_idx
from orbitgp.data.npz import read_npz


def idx_bytes(array, kind):
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, kind, array.ndim, *array.shape)
    return head + array.tobytes()


@pytest.mark.parametrize(("kind", "dtype"), [(8, ">u1"), (9, ">i1"), (11, ">i2"), (14, ">f8")])
def test_idx_files_are_read(kind, dtype, tmp_path):
    values = np.arange(12).reshape(2, 3, 2).astype(dtype)
    (tmp_path / "plain").write_bytes(idx_bytes(values, kind))
    (tmp_path / "packed.gz").write_bytes(gzip.compress(idx_bytes(values, kind)))
    for name in ("plain", "packed.gz"):
        read = read_idx(tmp_path / name)
        np.testing.assert_array_equal(read, values)
        assert read.dtype.isnative


def test_npz_files_are_read(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.asfortranarray(np.eye(3)), "c": np.int8(3)}
    np.savez_compressed(tmp_path / "file.npz", **arrays)
    read = read_npz(tmp_path / "file.npz")
    assert read.keys() == arrays.keys()
    for name, value in arrays.items():
        np.testing.assert_array_equal(read[name], value)
    with pytest.raises(FileError, match="no array is called d; there are a, b, c"):
        read_npz(tmp_path / "file.npz", "d")
    np.savez(tmp_path / "objects.npz", x=np.array([{}], dtype=object))
    with pytest.raises(FileError, match="not a plain array"):
        read_npz(tmp_path / "objects.npz")


def test_an_archive_cannot_claim_more_than_it_has(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    header += b" " * (118 - len(header) - 1) + b"\n"
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    with pytest.raises(FileError, match="not a plain array"):
        read_npz(tmp_path / "bomb.npz")
