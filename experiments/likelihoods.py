"""How labels depend on f: Gaussian codes, softmax, broken sticks, Pólya-Gamma, side by side.

python -m experiments.likelihoods --data usps --seed 0

Data are `usps`, `mnist-5000`, `mnist-60000`, and for two classes `usps-3-5` and
`fashion-shirt-coat`; all with a learned orbit, affine unless `--orbit` names another.
"""

import argparse
import time
from typing import Any

import numpy as np

from experiments.data import load_named
from experiments.mnist import ORBITS, scored, subset
from experiments.record import RESULTS, record
from orbitgp import RBF, InvariantGPClassifier

PAIRS = {"usps-3-5": ("usps", (3, 5)), "fashion-shirt-coat": ("fashion-mnist", (6, 4))}
MANY = ("gaussian", "softmax", "stick-breaking")
TWO = ("gaussian", "polya-gamma", "softmax")

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def load(name: str, seed: int) -> Split:
    """Images and labels for training and test."""
    if name in PAIRS:
        source, pair = PAIRS[name]
        data = load_named(source)
        assert data.x_test is not None
        assert data.y_test is not None
        chosen, tested = (np.isin(y, pair) for y in (data.y, data.y_test))
        return data.x[chosen], data.y[chosen], data.x_test[tested], data.y_test[tested]
    source, _, count = name.partition("-")
    data = load_named(source)
    assert data.x_test is not None
    assert data.y_test is not None
    x, y = subset(data, int(count or len(data.x)), seed)
    return x, y, data.x_test, data.y_test


def run(split: Split, orbit: str, likelihood: str, budget: float, seed: int) -> dict[str, Any]:
    """One row of the table."""
    x, y, x_test, y_test = split
    start = time.monotonic()
    model = InvariantGPClassifier(
        orbit, likelihood=likelihood, budget_seconds=budget, random_state=seed, verbose=True
    ).fit(x, y)
    seconds = time.monotonic() - start
    kernel, basis = model.model_.kernel, getattr(model.model_, "mean_basis", None)
    assert isinstance(kernel, RBF)
    return {
        **scored(model, x_test, y_test),
        "seconds": round(seconds, 1),
        "num_inducing": len(model.model_.posterior.points),
        "points_to_a_datum_of_the_mean": 0 if basis is None else basis.points.shape[1],
        "kernel_variance": round(kernel.variance.item(), 3),
        "learned": model.orbit_.describe(),
    }


def main() -> None:
    """One table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="usps")
    parser.add_argument("--orbit", choices=ORBITS, default="affine")
    parser.add_argument("--likelihoods", nargs="+", default=None)
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    data, orbit, seed = arguments.data, arguments.orbit, arguments.seed
    split = load(data, seed)
    kinds = arguments.likelihoods or (TWO if data in PAIRS else MANY)
    rows = {}
    for kind in kinds:
        rows[kind] = run(split, orbit, kind, arguments.budget, seed)
        print(kind, rows[kind], flush=True)
    command = f"python -m experiments.likelihoods --data {data} --budget {arguments.budget:g}"
    name = f"likelihoods-{data}"
    if orbit != "affine":
        command += f" --orbit {orbit}"
        name = f"{name}-{orbit}"
    if arguments.likelihoods:
        command += f" --likelihoods {' '.join(kinds)}"
        name = "-".join([name, *kinds])
    values = {"data": data, "orbit": orbit, "num_data": len(split[0]), "likelihoods": rows}
    record(RESULTS, name, command, seed, values)


if __name__ == "__main__":
    main()
