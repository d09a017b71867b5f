"""Readers of files, and sets by name."""

import gzip
import struct
import zipfile

import numpy as np
import pytest

from orbitgp import FileError, InputError
from orbitgp.data import named
from orbitgp.data.idx import read_idx
from orbitgp.data.npz import read_npz

SIZES = {
    "mnist": (60_000, 10_000),
    "fashion-mnist": (60_000, 10_000),
    "usps": (7291, 2007),
    "kmnist-test": (10_000, None),
    "notmnist-10k": (10_000, None),
    "mnist-rot-standin": (12_000, 10_000),
    "malaria-cells": (22_669, 4889),
    "mirabest-confident": (704, 88),
    "qm7": (7101, None),
    "ucr/GunPoint": (50, 150),
    "ucr/ECG5000_train_part": (500, None),
}


@pytest.mark.parametrize("name", SIZES)
def test_named_sets_have_their_sizes(name):
    data, (train, test) = named.load_named(name), SIZES[name]
    assert len(data.x) == len(data.y) == train
    assert (None if data.x_test is None else len(data.x_test)) == test
    assert (None if data.y_test is None else len(data.y_test)) == test
    assert data.y.ndim == 1


def test_every_set_is_known_and_listed():
    assert len(named.names()) == 9 + 9
    covered = {file for name in named.names() for file in named.files_of(name)}
    assert covered == named.checksums().keys()
    with pytest.raises(InputError, match="there are mnist, fashion-mnist"):
        named.load_named("minst")


def test_a_missing_or_damaged_set_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("ORBITGP_DATA", str(tmp_path))
    with pytest.raises(FileError, match=r"put usps/usps\.npz into .* or set ORBITGP_DATA"):
        named.load_named("usps")
    (tmp_path / "usps").mkdir()
    (tmp_path / "usps/usps.npz").write_bytes(b"other")
    with pytest.raises(FileError, match="expected 1001339368bd2c35"):
        named.load_named("usps")


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
