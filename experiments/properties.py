"""Properties that evidence and ranges must have, each on data where the answer is known.

python -m experiments.properties known-symmetry any-start digits range-spread

known-symmetry  300 points of a function of four inputs that does not change when these are
                permuted, 10 seeds: the full group has the most evidence, intervals of 95 % cover
                test points, and GPyTorch's exact Gaussian process agrees
any-start       UCR Trace with a shift in time, from ranges of very different widths
digits          scikit-learn's digits, 8 splits: a larger family has no less evidence
range-spread    five draws of 1,000 MNIST digits: mean and spread of every learned range
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import gpytorch
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor

from experiments.data import load_named
from experiments.order import drawn, time_shift
from experiments.record import RESULTS, record
from orbitgp import (
    FiniteOrbit,
    Gaussian,
    InvariantGPClassifier,
    InvariantGPRegressor,
    InvariantKernel,
    OrientedEnergy,
    PermutationGroup,
)
from orbitgp.orbits.ranges import Range

NUM_TRAIN, NUM_TEST = 300, 500
STARTS = (0.005, 0.02, 0.1, 0.3)
SPLITS = (200, 300, 400, 500, 600, 700, 800, 1000)


def symmetric_data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs in R⁴ and noisy values of a function of them that no permutation changes."""
    chance = np.random.default_rng(seed)
    x = chance.uniform(-1.5, 1.5, (NUM_TRAIN + NUM_TEST, 4))
    f = 2 * np.sin(2 * x).prod(1) + np.cos(x.sum(1))
    return x, f + 0.1 * chance.standard_normal(len(x))


class Behind(gpytorch.kernels.Kernel):
    """A kernel behind a feature map."""

    def __init__(
        self, kernel: gpytorch.kernels.Kernel, features: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.kernel, self.features = kernel, features

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Any:  # pyright: ignore
        """k(φ(x), φ(x'))."""
        return self.kernel(self.features(x1), self.features(x2), diag=diag, **params)


def gpytorch_evidence(model: InvariantGPRegressor, x: np.ndarray, y: np.ndarray) -> float:
    """log p(y) by GPyTorch, with the hyperparameters that were learned, in units of y."""
    fitted = model.model_
    assert isinstance(fitted.orbit, FiniteOrbit)
    assert isinstance(fitted.likelihood, Gaussian)
    with torch.no_grad():
        inputs = torch.from_numpy(x / model.scale_)
        targets = torch.from_numpy((y - model.target_mean_[0]) / model.target_scale_[0])
        kernel = InvariantKernel(Behind(fitted.kernel, fitted.features), fitted.orbit)
        noise = fitted.likelihood.noise * torch.eye(len(x), dtype=torch.float64)
        covariance = kernel(inputs).to_dense() + noise
        zero = torch.zeros(len(x), dtype=torch.float64)
        value = gpytorch.distributions.MultivariateNormal(zero, covariance).log_prob(targets)
    return value.item() - len(x) * float(np.log(model.target_scale_).sum())


def known_symmetry(seed: int) -> dict[str, Any]:
    """Evidence of no group, of cyclic shifts and of all permutations."""
    x, y = symmetric_data(seed)
    cycle, swap = [1, 2, 3, 0], [1, 0, 2, 3]
    groups = {"none": "none", "C4": PermutationGroup(cycle), "S4": PermutationGroup(cycle, swap)}
    found = {}
    for name, group in groups.items():
        model = InvariantGPRegressor(group, random_state=seed).fit(x[:NUM_TRAIN], y[:NUM_TRAIN])
        mean, deviation = model.predict(x[NUM_TRAIN:], return_std=True)
        error = np.abs(y[NUM_TRAIN:] - mean)
        found[name] = {
            "evidence": model.evidence_,
            "gpytorch": gpytorch_evidence(model, x[:NUM_TRAIN], y[:NUM_TRAIN]),
            "coverage95": float((error <= 1.959964 * deviation).mean()),
            "rmse": float(np.sqrt((error**2).mean())),
        }
    return found


def any_start(seed: int) -> dict[str, Any]:
    """Where a range of a user's own ends, by the half width that it starts from."""
    data, found = load_named("ucr/Trace"), {}
    assert data.x_test is not None
    for start in STARTS:
        began = time.monotonic()
        model = InvariantGPClassifier(time_shift(start), random_state=seed).fit(data.x, data.y)
        found[f"±{start}"] = {
            "evidence": model.evidence_,
            "learned": model.orbit_.learned_ranges()[0].high,
            "test_error": 1 - model.score(data.x_test, data.y_test),
            "seconds": round(time.monotonic() - began, 1),
        }
    return found


def digits(seed: int) -> dict[str, Any]:
    """Evidence and test NLL of three families that contain each other, on splits of many sizes."""
    images, labels = load_digits(return_X_y=True)
    found = {}
    for place, size in enumerate(SPLITS):
        order = np.random.default_rng(100 * seed + place).permutation(len(images))
        train, test = order[:size], order[size:]
        found[str(size)] = {}
        for family in ("none", "rotation", "affine"):
            model = InvariantGPClassifier(family, image_shape=(8, 8), random_state=seed)
            model.fit(images[train], labels[train])
            chances = model.predict_proba(images[test])[np.arange(len(test)), labels[test]]
            found[str(size)][family] = {
                "evidence": model.evidence_,
                "evidence_error": model.evidence_error_,
                "test_nll": float(-np.log(chances).mean()),
            }
    return found


def range_spread(seed: int) -> dict[str, Any]:
    """Mean and spread over five draws of digits, and how often a range was identified."""
    found: dict[str, Any] = {}
    for features in ("pixels", "oriented"):
        orbits = []
        for draw in range(5):
            data = drawn(load_named("mnist"), 1000, 5 * seed + draw)
            extra = OrientedEnergy() if features == "oriented" else None
            model = InvariantGPClassifier("affine+local", feature_map=extra, random_state=seed)
            model.fit(data.x, data.y)
            orbits.append(model.orbit_)
        together = zip(*(orbit.learned_ranges() for orbit in orbits), strict=True)
        found[features] = {
            "ranges": list(map(spread_of, together)),
            "described": [orbit.describe() for orbit in orbits],
        }
    return found


def spread_of(found: Sequence[Range]) -> dict[str, Any]:
    """One range over several draws: its upper end, and how often it was identified."""
    first, ends = found[0], [own.high for own in found]
    return {
        **{"name": first.name, "unit": first.unit, "part": first.part},
        **{"logarithmic": first.logarithmic, "mean": statistics.mean(ends)},
        **{"spread": statistics.stdev(ends), "identified": sum(own.identified for own in found)},
    }


PROPERTIES: dict[str, tuple[Callable[[int], dict[str, Any]], int]] = {
    "known-symmetry": (known_symmetry, 10),
    "any-start": (any_start, 1),
    "digits": (digits, 1),
    "range-spread": (range_spread, 1),
}
"""Each with its number of seeds."""


def main() -> None:
    """Those that were chosen, for all of their seeds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("properties", nargs="+", choices=list(PROPERTIES))
    for name in parser.parse_args().properties:
        function, num_seeds = PROPERTIES[name]
        for seed in range(num_seeds):
            values = function(seed)
            print(name, seed, values, flush=True)
            command = f"python -m experiments.properties {name}"
            record(RESULTS, f"property-{name}", command, seed, {"rows": values})


if __name__ == "__main__":
    main()
