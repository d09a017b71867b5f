"""The data sets, and the training and test inputs that every method is given."""

from typing import NamedTuple

import numpy as np
from numpy.random import default_rng

from experiments.data import data_folder, load_named
from experiments.molecules import coulomb
from experiments.order import galaxies
from orbitgp.data.labelled import LabelledData
from orbitgp.data.npz import read_npz

SIZES = (100, 300, 1000, 3000)
SEEDS = (0, 1, 2, 3, 4)
MAX_TEST = 2000
TEST_SEED = 2018
"""Chooses the test inputs, which are the same for every size and seed."""


class Source(NamedTuple):
    """A data set: what its inputs are, and how many there are to train with."""

    name: str
    kind: str
    """images, photographs, series or molecules."""
    num_train: int
    file: str = ""
    """As `experiments.data` calls it."""


class Split(NamedTuple):
    """Inputs [n, ...] to train and to test with; classes are numbered 0 … K − 1."""

    source: Source
    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray

    @property
    def num_classes(self) -> int:
        """K; 0 for numbers instead of classes."""
        return 0 if self.source.kind == "molecules" else int(self.y.max()) + 1


IMAGES = (
    Source("mnist", "images", 60_000, "mnist"),
    Source("fashion-mnist", "images", 60_000, "fashion-mnist"),
    Source("usps", "images", 7291, "usps"),
    Source("malaria", "images", 22_669, "malaria-cells"),
    Source("mirabest", "images", 704, "mirabest-confident"),
    Source("cifar10", "photographs", 20_000, "cifar10-20k"),
)
HALVED = "ECG5000_train_part"
"""Has no test part: one half of it, chosen by the seed, is tested."""

LENGTHS = {
    **{"ACSF1": 100, "Adiac": 390, "ArrowHead": 36, "BasicMotions": 40, "Beef": 30, "Car": 60},
    **{"Coffee": 28, "ECG200": 100, HALVED: 250, "FaceFour": 24, "GunPoint": 50},
    **{"ItalyPowerDemand": 67, "Lightning2": 60, "Lightning7": 70, "OliveOil": 30},
    **{"OSULeaf": 200, "Plane": 105, "SyntheticControl": 300, "Trace": 100},
}
"""Series in the training part of each archive."""

SOURCES = (
    *IMAGES,
    *(Source(name, "series", size, f"ucr/{name}") for name, size in LENGTHS.items()),
    Source("qm7", "molecules", 5101, "qm7"),
)


def sizes_of(source: Source, asked: tuple[int, ...] = SIZES) -> list[int]:
    """Sizes that there is enough for, with all there is instead of more; series as they are."""
    if source.kind == "series":
        return [source.num_train]
    return sorted({min(size, source.num_train) for size in asked})


def load(source: Source, size: int, seed: int) -> Split:
    """So many training inputs, chosen by the seed, and the test inputs."""
    whole = _whole(source)
    if source.name == HALVED:
        return halved(source, whole, seed)
    assert whole.x_test is not None
    assert whole.y_test is not None
    if size > len(whole.x):
        raise ValueError(f"{source.name} has {len(whole.x)} to train with; asked for {size}")
    order = default_rng(TEST_SEED).permutation(len(whole.x_test))[:MAX_TEST]
    every = np.arange(len(whole.x))
    rows = every if source.kind == "series" else drawn(whole.y, size, seed, source.kind)
    parts = whole.x[rows], whole.y[rows], whole.x_test[order], whole.y_test[order]
    return Split(source, *parts)


def drawn(y: np.ndarray, size: int, seed: int, kind: str = "images") -> np.ndarray:
    """Rows without replacement, drawn again until every class is among them."""
    generator, classes = default_rng(seed), np.unique(y)
    while True:
        rows = generator.permutation(len(y))[:size]
        if kind == "molecules" or len(np.unique(y[rows])) == len(classes):
            return rows


def halved(source: Source, whole: LabelledData, seed: int) -> Split:
    """One half to train with, the other to test."""
    train = drawn(whole.y, source.num_train, seed)
    test = np.setdiff1d(np.arange(len(whole.y)), train)
    return Split(source, whole.x[train], whole.y[train], whole.x[test], whole.y[test])


def _whole(source: Source) -> LabelledData:
    """All of it, images from 0 to 1 in float32, labels as whole numbers."""
    if source.kind == "molecules":
        return _molecules()
    data = galaxies() if source.name == "mirabest" else load_named(source.file)
    scale = 1 if source.kind == "series" or source.name == "usps" else 255

    def numbers(x: np.ndarray | None) -> np.ndarray | None:
        return None if x is None else x.astype(np.float32) / np.float32(scale)

    y_test = None if data.y_test is None else data.y_test.astype(np.int64)
    x = numbers(data.x)
    assert x is not None
    return LabelledData(x, data.y.astype(np.int64), numbers(data.x_test), y_test)


def _molecules() -> LabelledData:
    """Coulomb matrices [n, 23, 23], rows sorted by their norms, and PBE0 energies in kcal/mol."""
    data = read_npz(data_folder() / "qm7" / "qm7_7101.npz")
    matrices = coulomb(data["Z"].astype(float), data["R"].astype(float))
    order = np.argsort(-np.linalg.norm(matrices, axis=2), axis=1, kind="stable")
    rows = np.take_along_axis(matrices, order[:, :, None], 1)
    x = np.take_along_axis(rows, order[:, None], 2).astype(np.float32)
    places = default_rng(TEST_SEED).permutation(len(x))
    test, train = places[:MAX_TEST], places[MAX_TEST:]
    y = data["e_pbe0"]
    return LabelledData(x[train], y[train], x[test], y[test])
