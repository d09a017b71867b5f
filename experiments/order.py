"""Does the family of transformations with the most evidence predict best?

python -m experiments.order

One result for each data set, feature map, family and seed, as
`order-DATA-FEATURES-FAMILY-SEED.json`. Cells that were recorded at the same commit are not run
again. `--data`, `--features` and `--family` choose some of them.
"""

import argparse
import functools
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from experiments.data import load_named
from experiments.record import RESULTS, record_once
from orbitgp import FunctionOrbit, InvariantGPClassifier, Orbit, OrientedEnergy, UniformRange
from orbitgp.data.labelled import LabelledData

LEARNED = ("none", "rotation", "affine", "affine+local")
"""Each of them contains the one before it."""

IMAGE_FAMILIES = (*LEARNED, "mirror", "dihedral")
SERIES_FAMILIES = ("none", "shift")
SERIES = ("Trace", "GunPoint", "ECG200")
IMAGE_DATA = ("usps", "mnist-1000", "mnist-5000", "fashion-1000", "malaria-1000", "mirabest")
START = 0.02
"""Half the range of a shift in time that a fit starts from, in lengths of the series."""


class Cell(NamedTuple):
    """One data set seen through one feature map, with one family."""

    data: str
    features: str
    family: str

    @property
    def name(self) -> str:
        """As the result's file has it."""
        return f"order-{self.data}-{self.features}-{self.family}"


def cells() -> Iterator[Cell]:
    """All of the table."""
    for data in SERIES:
        yield from (Cell(data, "series", family) for family in SERIES_FAMILIES)
    for data in reversed(IMAGE_DATA):
        for features in ("pixels", "oriented"):
            yield from (Cell(data, features, family) for family in IMAGE_FAMILIES)


def drawn(data: LabelledData, num_data: int, seed: int) -> LabelledData:
    """So many training examples, without replacement, and all test examples."""
    rows = np.random.default_rng(seed).permutation(len(data.x))[:num_data]
    return LabelledData(data.x[rows], data.y[rows], data.x_test, data.y_test)


def galaxies() -> LabelledData:
    """The central 100 × 100 pixels of MiraBest, averaged over squares of four."""
    data = load_named("mirabest-confident")
    assert data.x_test is not None

    def smaller(x: np.ndarray) -> np.ndarray:
        return x[:, 25:125, 25:125].reshape(len(x), 50, 2, 50, 2).mean((2, 4), dtype=np.float32)

    return LabelledData(smaller(data.x), data.y, smaller(data.x_test), data.y_test)


def load(name: str, seed: int) -> LabelledData:
    """The data of a row of the table; those that are drawn depend on the seed."""
    if name in SERIES:
        return load_named(f"ucr/{name}")
    loaders: dict[str, Callable[[], LabelledData]] = {
        "usps": lambda: load_named("usps"),
        "mnist-1000": lambda: drawn(load_named("mnist"), 1000, seed),
        "mnist-5000": lambda: drawn(load_named("mnist"), 5000, seed),
        "fashion-1000": lambda: drawn(load_named("fashion-mnist"), 1000, seed),
        "malaria-1000": lambda: drawn(load_named("malaria-cells"), 1000, seed),
        "cifar-1000": lambda: drawn(load_named("cifar10-20k"), 1000, seed),
        "mirabest": galaxies,
    }
    return loaders[name]()


def shifted(x: Tensor, shift: Tensor) -> Tensor:
    """Series [B, T] moved by a part of their length [B, 1], with their ends held."""
    length = x.shape[1]
    place = torch.arange(length, dtype=x.dtype, device=x.device) - shift * length
    place = place.clamp(0, length - 1)
    below = place.detach().floor().long().clamp(max=length - 2)
    part = place - below
    return x.gather(1, below) * (1 - part) + x.gather(1, below + 1) * part


def time_shift(half: float = START) -> FunctionOrbit:
    """Shifts in time within ± this part of the length."""
    return FunctionOrbit(shifted, UniformRange(-half, half), names=["shift"])


def family_orbit(family: str) -> str | Orbit:
    """What an estimator is given for a family."""
    return time_shift() if family == "shift" else family


def run(cell: Cell, seed: int) -> dict[str, Any]:
    """Fit with the defaults, then look at the test set once."""
    data = load(cell.data, seed)
    assert data.x_test is not None
    assert data.y_test is not None
    features: nn.Module | None = OrientedEnergy() if cell.features == "oriented" else None
    start = time.monotonic()
    model = InvariantGPClassifier(
        family_orbit(cell.family), feature_map=features, random_state=seed
    ).fit(data.x, data.y)
    seconds = time.monotonic() - start
    probabilities = model.predict_proba(data.x_test)
    labels = np.searchsorted(model.classes_, data.y_test)
    nll = -np.log(probabilities[np.arange(len(labels)), labels])
    return {
        **cell._asdict(),
        "evidence": model.evidence_,
        "evidence_error": model.evidence_error_,
        "evidence_kind": model.evidence_kind_,
        "num_data": len(data.x),
        "num_draws": model.num_draws_,
        "test_error": float((probabilities.argmax(1) != labels).mean()),
        "test_nll": float(nll.mean()),
        "test_nll_error": float(nll.std(ddof=1) / math.sqrt(len(nll))),
        "learned": model.orbit_.describe(),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    """All cells that were chosen, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("data", "features", "family"):
        parser.add_argument(f"--{name}", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for cell in cells():
        asked = (getattr(arguments, name) for name in cell._fields)
        chosen = all(not names or own in names for own, names in zip(cell, asked, strict=True))
        if chosen:
            options = f"--data {cell.data} --features {cell.features} --family {cell.family}"
            command = f"python -m experiments.order {options}"
            fit = functools.partial(run, cell, arguments.seed)
            record_once(RESULTS, cell.name, command, arguments.seed, fit)


if __name__ == "__main__":
    main()
