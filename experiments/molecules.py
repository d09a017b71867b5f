"""Two energies of small molecules at once, with intervals that hold what they promise.

    python -m experiments.molecules --seed 0

A molecule is described by the eigenvalues of its Coulomb matrix (Rupp et al. 2012), which know
nothing of its orientation or of the order of its atoms, and by how many atoms of each element it
has. The targets are its atomisation energies by PBE0 and by DFTB3 in kcal/mol.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from experiments.data import data_folder
from experiments.record import RESULTS, record
from orbitgp import InvariantGPRegressor
from orbitgp.data.npz import read_npz

NUM_TRAIN = 2000
ELEMENTS = (1, 6, 7, 8, 16)


def coulomb(charges: np.ndarray, places: np.ndarray) -> np.ndarray:
    """C_ij = Z_i Z_j / |R_i − R_j|, C_ii = ½ Z_i^2.4."""
    distances = np.linalg.norm(places[:, :, None] - places[:, None], axis=-1)
    present = (charges > 0)[:, :, None] & (charges > 0)[:, None]
    distances = np.where(distances > 0, distances, 1.0)
    matrices = np.where(present, charges[:, :, None] * charges[:, None] / distances, 0.0)
    diagonal = np.arange(charges.shape[1])
    matrices[:, diagonal, diagonal] = 0.5 * charges**2.4
    return matrices


def features(charges: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Eigenvalues of the Coulomb matrix, and counts of elements."""
    spectrum = np.linalg.eigvalsh(coulomb(charges, places))
    counts = np.stack([(charges == element).sum(1) for element in ELEMENTS], 1)
    return np.concatenate([spectrum, counts], 1)


def main() -> None:
    """Fit on some molecules, predict the others, write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    data = read_npz(data_folder() / "qm7" / "qm7_7101.npz")
    X = features(data["Z"].astype(float), data["R"].astype(float))
    y = np.stack([data["e_pbe0"], data["e_dftb"]], 1)
    order = np.random.default_rng(arguments.seed).permutation(len(X))
    train, test = order[:NUM_TRAIN], order[NUM_TRAIN:]
    start = time.monotonic()
    model = InvariantGPRegressor(random_state=arguments.seed, verbose=True).fit(X[train], y[train])
    seconds = time.monotonic() - start
    mean, deviation = model.predict(X[test], return_std=True)
    covered = np.abs(y[test] - mean) < 1.96 * deviation
    values = {
        "num_train": NUM_TRAIN,
        "num_test": len(test),
        "outputs": ["e_pbe0", "e_dftb"],
        "mean_absolute_error": np.abs(y[test] - mean).mean(0).round(2).tolist(),
        "coverage": round(float(covered.mean()), 4),
        "coverage_by_output": covered.mean(0).round(4).tolist(),
        "evidence": round(model.evidence_, 1),
        "seconds": round(seconds, 1),
    }
    print(values)
    command = "python -m experiments.molecules"
    record(arguments.out, "molecules", command, arguments.seed, values)


if __name__ == "__main__":
    main()
