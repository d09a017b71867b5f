"""The data sets of the experiments."""

import pytest

from experiments import data as named
from orbitgp import FileError, InputError

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
    assert len(named.names()) == 10 + 19
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
