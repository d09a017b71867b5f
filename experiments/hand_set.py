"""Learned ranges against ranges set by hand: MNIST test error and evidence, all else the same.

python -m experiments.hand_set --features pixels --seed 0

Kernel and noise are learned for each of them, and M = 4,000 for all.
"""

import argparse
from pathlib import Path
from typing import Any

from experiments.data import load_named
from experiments.mnist import feature_map, scored, subset
from experiments.record import RESULTS, record
from orbitgp import Affine, InvariantGPClassifier, Orbit

NUM_POINTS = 4000
HAND_SET = {
    "one pixel of shift": (0.0, 0.0, 0.0, 0.0, 0.07, 0.07),
    "usual for digits (10°, 10 %, shear 0.2, 5 % of shift)": (0.175, 0.1, 0.1, 0.2, 0.1, 0.1),
    "half of the usual": (0.087, 0.05, 0.05, 0.1, 0.05, 0.05),
    "twice the usual": (0.35, 0.2, 0.2, 0.4, 0.2, 0.2),
    "15° and shear 0.3 alone": (0.26, 0.0, 0.0, 0.3, 0.0, 0.0),
}
"""Half-ranges of rotation (radians), log-scales, shear and shifts (half-widths)."""


def hand_set(widths: tuple[float, ...]) -> Affine:
    """Ranges that stay as they are."""
    low = [-width for width in widths]
    return Affine(low, list(widths), learn_low=False, learn_high=False)


def run(orbit: str | Orbit, features: str, num_data: int, seed: int) -> dict[str, Any]:
    """One row of the table."""
    data = load_named("mnist")
    assert data.x_test is not None
    assert data.y_test is not None
    model = InvariantGPClassifier(
        orbit,
        feature_map=feature_map(features),
        num_inducing=NUM_POINTS,
        random_state=seed,
        verbose=True,
    ).fit(*subset(data, num_data, seed))
    return {**scored(model, data.x_test, data.y_test), "ranges": model.orbit_.describe()}


def main() -> None:
    """One table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", choices=("pixels", "oriented"), default="pixels")
    parser.add_argument("--num-data", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    features, num_data, seed = arguments.features, arguments.num_data, arguments.seed
    orbits = {"learned": "affine", **{name: hand_set(w) for name, w in HAND_SET.items()}}
    rows: dict[str, Any] = {}
    for name, orbit in orbits.items():
        rows[name] = run(orbit, features, num_data, seed)
        print(name, rows[name], flush=True)
    values = {"features": features, "num_data": num_data, "num_inducing": NUM_POINTS, "rows": rows}
    command = f"python -m experiments.hand_set --features {features} --num-data {num_data}"
    record(arguments.out, f"mnist-hand-set-{features}-{num_data}", command, seed, values)


if __name__ == "__main__":
    main()
