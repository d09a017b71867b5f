"""Energies of molecules do not depend on the order of their atoms: what is that worth?

    python -m experiments.atom_order --orbit any-order --seed 0

Atomisation energies (PBE0) of QM7 in kcal/mol, learned from 2,000 molecules. A molecule is its
Coulomb matrix (Rupp et al. 2012), which knows nothing of its orientation: with atoms in a random
order ("shuffled"), as the file lists them ("none"), sorted by the norms of their rows ("sorted"),
averaged over orders in which rows of similar norms change places ("similar"; Montavon et al. 2012),
or over all orders ("any-order"). The features are square roots
of the matrix and how many atoms of each element there are, the kernel is exp(−|x − x'|₁ / ℓ), as is
usual for such matrices. Or a molecule is the positions and charges of its atoms ("positions"),
averaged over rotations ("rotated"), or over rotations and all orders ("rotated-any-order").
"""

import argparse
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from torch import Tensor, nn

from experiments.data import data_folder
from experiments.molecules import ELEMENTS, NUM_TRAIN, coulomb
from experiments.record import RESULTS, record_once
from orbitgp import InvariantGPRegressor, PointRotation, RandomOrder, TrainingSettings, compose
from orbitgp.data.npz import read_npz

ATOMS = 23
MAX_TEST = 1000
LARGEST = 0.5 * 16**2.4
"""The diagonal of sulphur: matrices are divided by it."""

SPREAD = 1 / LARGEST
COUNT = 0.5
"""Of one more atom of an element, beside square roots from 0 to 1."""

SETTINGS = TrainingSettings(
    scan_size=100, scan_draws=4, climb_size=200, climb_draws=4, search_size=500
)
"""Distances |x − x'|₁ are no matrix product and take hundreds of times as long as Euclidean ones,
so subsets are smaller than by default."""


class Roots(nn.Module):
    """Square roots of Coulomb matrices, and counts of elements."""

    def forward(self, x: Tensor) -> Tensor:
        """Matrices [B, A, A] to features [B, A(A + 1)/2 + elements]."""
        first, second = torch.triu_indices(ATOMS, ATOMS)
        charges = (2 * LARGEST * x.diagonal(dim1=1, dim2=2)) ** (1 / 2.4)
        counts = [((charges - element).abs() < 0.5).sum(1) for element in ELEMENTS]
        return torch.cat([x[:, first, second].sqrt(), COUNT * torch.stack(counts, 1)], 1)


class Laplacian(Kernel):
    """exp(−|x − x'|₁ / ℓ)."""

    has_lengthscale = True

    def forward(
        self,
        x1: Tensor,
        x2: Tensor,
        diag: bool = False,
        last_dim_is_batch: bool = False,
        **params: Any,
    ) -> Tensor:
        """Covariances [..., A, B], or of pairs [..., A]."""
        if last_dim_is_batch or params:
            raise NotImplementedError(f"batches by dimension, or {params}")
        first, second = x1 / self.lengthscale, x2 / self.lengthscale
        if diag:
            return (first - second).abs().sum(-1).neg().exp()
        return torch.cdist(first, second, p=1).neg().exp()


class Molecules(NamedTuple):
    """What a molecule is to the model."""

    inputs: str
    orbit: Any = "none"


ORBITS = {
    "shuffled": Molecules("shuffled"),
    "none": Molecules("matrices"),
    "sorted": Molecules("sorted"),
    "similar": Molecules("matrices", RandomOrder(ATOMS, spread=SPREAD, pairs=True)),
    "any-order": Molecules("matrices", RandomOrder(ATOMS, pairs=True)),
    "positions": Molecules("positions"),
    "rotated": Molecules("positions", PointRotation()),
    "rotated-any-order": Molecules("positions", compose(RandomOrder(ATOMS), PointRotation())),
}


def inputs(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Molecules and their energies."""
    data = read_npz(data_folder() / "qm7" / "qm7_7101.npz")
    charges, places = data["Z"].astype(float), data["R"].astype(float)
    if kind == "positions":
        weights = charges[..., None] / charges.sum(1)[:, None, None]
        centred = (places - (weights * places).sum(1, keepdims=True)) * (weights > 0)
        x = np.concatenate([centred, charges[..., None] / 4], 2)
    else:
        x = coulomb(charges, places) / LARGEST
    if kind in ("sorted", "shuffled"):
        drawn, norms = np.random.default_rng(0).random(charges.shape), np.linalg.norm(x, axis=2)
        order = (-norms if kind == "sorted" else drawn).argsort(1, kind="stable")
        x = np.take_along_axis(np.take_along_axis(x, order[:, :, None], 1), order[:, None], 2)
    return x.astype(np.float32), data["e_pbe0"]


def run(name: str, num_train: int, seed: int) -> dict[str, Any]:
    """Fit on some molecules, predict others."""
    molecules = ORBITS[name]
    x, y = inputs(molecules.inputs)
    order = np.random.default_rng(seed).permutation(len(x))
    train, test = order[:num_train], order[NUM_TRAIN : NUM_TRAIN + MAX_TEST]
    by_matrix = molecules.inputs != "positions"
    parts: dict[str, Any] = {"feature_map": nn.Flatten(), "kernel": "matern-5/2"}
    if by_matrix:
        parts = {"feature_map": Roots(), "kernel": Laplacian()}
    start = time.monotonic()
    model = InvariantGPRegressor(
        molecules.orbit, **parts, settings=SETTINGS, random_state=seed, verbose=True
    ).fit(x[train], y[train])
    seconds = time.monotonic() - start
    mean, deviation = model.predict(x[test], return_std=True)
    wrong = np.abs(y[test] - mean)
    return {
        "orbit": name,
        "num_train": num_train,
        "num_test": len(test),
        "evidence": round(model.evidence_, 1),
        "evidence_error": round(model.evidence_error_, 1),
        "num_draws": model.num_draws_,
        "learned": model.orbit_.describe(),
        "mean_absolute_error": round(float(wrong.mean()), 2),
        "error_of_that": round(float(wrong.std() / math.sqrt(len(wrong))), 2),
        "coverage": round(float((wrong < 1.96 * deviation).mean()), 4),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    """One result for each orbit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orbit", nargs="*", choices=list(ORBITS), default=list(ORBITS))
    parser.add_argument("--num-train", type=int, default=NUM_TRAIN)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    for name in given.orbit:
        size = "" if given.num_train == NUM_TRAIN else f"-{given.num_train}"
        options = f"--orbit {name} --num-train {given.num_train}"
        command = f"python -m experiments.atom_order {options}"
        record_once(
            given.out,
            f"atom-order-{name}{size}",
            command,
            given.seed,
            lambda name=name: run(name, given.num_train, given.seed),
        )


if __name__ == "__main__":
    main()
