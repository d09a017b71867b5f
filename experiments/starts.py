"""Does stage one find the same ranges from wherever it starts? Ten random starts on MNIST.

python -m experiments.starts --features pixels --seed 0

Affine ranges start between ±0.01 and ±0.5, each on its own, and the lengthscale at up to three
times too much or too little. With `--ends apart` each of the twelve ends starts on its own, so that
all data begin turned, stretched and moved alike: that is another kernel, and no invariance. Beside
them are the two starts of `orbit="affine"`, which a fit screens for a few steps: a start that is
dropped for one of them does no harm if that one ends well. All are trained as those of a fit are:
for the steps of the screen, then for all steps.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from experiments.mnist import feature_map
from experiments.record import RESULTS, record
from orbitgp import RBF, Affine, Callback, InvariantGP, OneHotGaussian, Orbit, TrainingSettings
from orbitgp.data.named import load_named
from orbitgp.estimators.sizes import STAGE_ONE_POINTS
from orbitgp.orbits.names import starting_orbits
from orbitgp.training.loop import Training, train
from orbitgp.training.run import SCREEN_STEPS
from orbitgp.training.starts import initial_model, with_orbit

NUM_STARTS = 10
SMALLEST, LARGEST, LENGTHSCALE = 0.01, 0.5, 3.0
CLOSE = 0.005
"""Part of the bound of the best start within which another has found the same."""


def between(low: float, high: float, count: int, generator: torch.Generator) -> list[float]:
    """Numbers whose logarithms are uniform."""
    uniform = torch.rand(count, generator=generator, dtype=torch.float64)
    return (low * (high / low) ** uniform).tolist()


def random_start(apart: bool, generator: torch.Generator) -> tuple[Affine, float]:
    """An orbit, with both ends of a range equally far or not, and a factor for the lengthscale."""
    ends = between(SMALLEST, LARGEST, 12 if apart else 6, generator)
    factor = between(1 / LENGTHSCALE, LENGTHSCALE, 1, generator)[0]
    return Affine([-end for end in ends[:6]], ends[-6:], symmetric=False), factor


def digits(features: str) -> tuple[nn.Module, Tensor, Tensor]:
    """The map, and all images and labels of MNIST for training."""
    data = load_named("mnist")
    x = torch.from_numpy(data.x / data.x.max()).float()
    return feature_map(features) or nn.Flatten(), x, torch.from_numpy(np.asarray(data.y)).long()


def beginning(
    orbit: Orbit, features: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator
) -> InvariantGP:
    """A classifier before stage one."""
    num_classes = int(y.max()) + 1
    return initial_model(
        orbit,
        OneHotGaussian(num_classes, noise=0.05),
        x,
        num_outputs=num_classes,
        num_points=min(STAGE_ONE_POINTS, len(x)),
        feature_map=features,
        variance=0.2,
        generator=generator,
    )


def learn(
    orbit: Orbit, factor: float, data: tuple[nn.Module, Tensor, Tensor], seed: int
) -> dict[str, Any]:
    """Stage one of a classifier from there.

    All have the inducing points of the first start of a fit, the same batches, draws and evaluation
    set.
    """
    (features, x, y), generator = data, torch.Generator().manual_seed(seed)
    begun = orbit.describe()
    first = beginning(starting_orbits("affine")[0], features, x, y, generator)
    model = with_orbit(first, orbit)
    assert isinstance(model.kernel, RBF)
    model.kernel.lengthscale = model.kernel.lengthscale.detach() * factor
    settings, found = TrainingSettings(), []
    for steps in (min(SCREEN_STEPS, settings.max_steps), settings.max_steps):
        chosen = replace(settings, max_steps=steps)
        training = Training(model, x, y, settings=chosen, generator=generator)
        reason = train(training, Callback())
        assert training.best is not None
        found.append(round(training.best[2], 1))
    screened, elbo = found
    return {
        "start": begun,
        "lengthscale_factor": round(factor, 3),
        "elbo": elbo,
        "elbo_when_screened": screened,
        "learned": orbit.describe(),
        "ranges": {name: list(ends) for name, ends in orbit.learned_ranges().items()},
        "steps": training.step,
        "recoveries": training.recoveries,
        "stopped": reason,
    }


def summary(named: list[dict[str, Any]], free: list[dict[str, Any]]) -> dict[str, Any]:
    """How far apart the ends are, which of them screening drops, and the spread of the ranges."""
    best = max(row["elbo"] for row in named + free)
    taken = max(named, key=lambda row: row["elbo_when_screened"])
    for row in named + free:
        row["below_best"] = round((best - row["elbo"]) / abs(best), 5)
        row["same"] = row["below_best"] <= CLOSE
        row["dropped_by_screen"] = row["elbo_when_screened"] < taken["elbo_when_screened"]
    harmless = [row["same"] or (row["dropped_by_screen"] and taken["same"]) for row in free]
    same = [row for row in named + free if row["same"]]
    ranges = {}
    for name in same[0]["ranges"]:
        ends = np.array([row["ranges"][name] for row in same])
        ranges[name] = {
            "mean": ends.mean(0).round(3).tolist(),
            "standard_deviation": ends.std(0).round(3).tolist(),
        }
    return {
        "num_same": sum(row["same"] for row in free),
        "num_harmless": sum(harmless),
        "ranges_of_the_same": ranges,
    }


def main() -> None:
    """All starts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", choices=("pixels", "oriented"), default="pixels")
    parser.add_argument("--ends", choices=("together", "apart"), default="together")
    parser.add_argument("--num-starts", type=int, default=NUM_STARTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    data, seed = digits(arguments.features), arguments.seed
    generator = torch.Generator().manual_seed(seed)
    screened: list[tuple[Orbit, float]] = [(orbit, 1.0) for orbit in starting_orbits("affine")]
    apart = arguments.ends == "apart"
    starts = [*screened, *(random_start(apart, generator) for _ in range(arguments.num_starts))]
    rows = []
    for orbit, factor in starts:
        rows.append(learn(orbit, factor, data, seed))
        print({key: value for key, value in rows[-1].items() if key != "ranges"}, flush=True)
    named, free = rows[: len(screened)], rows[len(screened) :]
    values = summary(named, free)
    print(values)
    values |= {
        "features": arguments.features,
        "ends": arguments.ends,
        "num_data": len(data[1]),
        "named": named,
        "starts": free,
    }
    options = f"--features {arguments.features} --ends {arguments.ends}"
    name = f"mnist-starts-{arguments.features}-{arguments.ends}"
    record(arguments.out, name, f"python -m experiments.starts {options}", seed, values)


if __name__ == "__main__":
    main()
