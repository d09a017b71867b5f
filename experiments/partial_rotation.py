"""Figure 3 of the paper: how far digits were turned, learned from odd and even by the bound.

python -m experiments.partial_rotation --angle 90 --seed 0

Every training and test image is turned by an angle drawn evenly from ±ANGLE. The range of a
rotation orbit is learned with the logistic bound from four starts, one of them far too narrow and
one far too wide, and compared with a process without invariance.
"""

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from experiments.mnist import subset
from experiments.record import RESULTS, record
from orbitgp import (
    Callback,
    Identity,
    InvariantGP,
    Orbit,
    PolyaGamma,
    Recognition,
    Rotation,
    TrainingSettings,
)
from orbitgp.data.named import load_named
from orbitgp.orbits.affine import affine_matrix
from orbitgp.orbits.warp import warp
from orbitgp.training.callbacks import Evaluation
from orbitgp.training.carrying import carries
from orbitgp.training.loop import Training, train
from orbitgp.training.odds import settle_odds
from orbitgp.training.passes import Resident
from orbitgp.training.solving import evidence, make_coarse, projected, solve_large, solve_local
from orbitgp.training.starts import initial_model
from orbitgp.training.whole_mean import mean_of_all

STARTS = (5, 45, 90, 179)
NUM_DATA, NUM_POINTS, FINAL_POINTS, NUM_AVERAGED, MEAN_SAMPLES = 20_000, 500, 2000, 16, 8
SETTINGS = TrainingSettings(fit_size=NUM_DATA, fit_samples=8)
"""q(u) of all data: with few of them the logistic bound of the others falls while it learns."""

WATCHED = 1000
"""Test images whose error is watched while learning; it decides nothing."""


def turned(images: Tensor, angle: float, *, generator: torch.Generator) -> Tensor:
    """Each image turned by an angle of its own."""
    angles = angle * (2 * torch.rand(len(images), generator=generator) - 1)
    parts = zip(images.split(1000), angles.split(1000), strict=True)
    return torch.cat([warp(x, _rotations(a.view(-1, 1, 1)))[:, 0] for x, a in parts])


def _rotations(angles: Tensor) -> Tensor:
    return affine_matrix(nn.functional.pad(angles, (0, 5)))


def digits(angle: float, num_data: int, seed: int) -> tuple[Resident, Resident]:
    """Turned images with label 1 where the digit is odd: for training, and for the test."""
    data, generator = load_named("mnist"), torch.Generator().manual_seed(seed)
    assert data.x_test is not None
    assert data.y_test is not None
    pairs = [subset(data, num_data, seed), (data.x_test, data.y_test)]
    sets = []
    for x, y in pairs:
        images = torch.from_numpy(x / 255).float()
        images = turned(images, math.radians(angle), generator=generator)
        sets.append(Resident(images, torch.from_numpy(np.asarray(y) % 2).long()))
    return sets[0], sets[1]


class Watch(Callback):
    """What Figure 3 shows: bound, angle and test error by the seconds of training."""

    def __init__(self, test_error: Callable[[], float]) -> None:
        self.points: list[dict[str, float]] = []
        self.test_error, self.start = test_error, time.monotonic()

    def evaluated(self, evaluation: Evaluation) -> None:
        """Time spent here does not count."""
        before = time.monotonic()
        angle = half_width(evaluation.ranges)
        error = round(100 * self.test_error(), 2)
        seconds = round(before - self.start, 1)
        values = {"step": evaluation.step, "seconds": seconds, "elbo": round(evaluation.elbo, 1)}
        self.points.append(values | {"angle": round(angle, 1), "test_error": error})
        print(self.points[-1], flush=True)
        self.start += time.monotonic() - before


def half_width(ranges: Any) -> float:
    """Half of a learned range of angles, in degrees."""
    ends = ranges.get("rotation (°)", (0.0, 0.0))
    return (ends[1] - ends[0]) / 2


def test_error_of(model: InvariantGP, test: Resident, seed: int) -> float:
    """Part of the images that are on the wrong side of 0."""
    generator = torch.Generator().manual_seed(seed)
    found = model.predict(test.x, num_samples=32, generator=generator).mean[:, 0] > 0
    return (found != test.y.bool()).double().mean().item()


def run(
    orbit: Orbit, train_set: Resident, test: Resident, *, recognition: bool, seed: int
) -> dict[str, Any]:
    """Learn, solve with more inducing variables, weigh the evidence, test."""
    generator = torch.Generator().manual_seed(seed)
    size = math.prod(train_set.x.shape[1:])
    network = Recognition(size, 2, 1, generator=generator) if recognition else None
    model = initial_model(
        orbit,
        PolyaGamma(recognition=network),
        train_set.x,
        num_outputs=1,
        num_points=min(NUM_POINTS, train_set.num_data),
        feature_map=nn.Flatten(),
        variance=10.0,
        generator=generator,
    )
    x, y = train_set.x, train_set.y
    training = Training(model, x, y, settings=SETTINGS, generator=generator)
    few = Resident(test.x[:WATCHED], test.y[:WATCHED])
    watch = Watch(lambda: test_error_of(model, few, seed))
    train(training, watch)
    learned_seconds = time.monotonic() - watch.start
    assert training.best is not None
    make_coarse(model)
    variance = None
    if carries(model):  # a network has learned the local parameters of the scales that there were
        variance = settle_odds(model, x, y, apart=True, generator=generator)
    model = projected(model, x, generator=generator)
    make_coarse(model)
    order = torch.randperm(train_set.num_data, generator=generator)
    rows = order[:FINAL_POINTS]
    num_averaged = NUM_AVERAGED if orbit.size > 1 else 1
    draws = {"num_averaged": num_averaged, "generator": generator}
    if carries(model):
        model, prior, examples = solve_local(model, train_set, rows, **draws)
        factor = prior.factor
    else:
        solved = solve_large(model, train_set, rows, **draws)
        model, factor, examples = solved.model, solved.prior_factor, train_set
    value, error = evidence(model, factor, examples, generator=generator)
    draws = {"num_samples": min(num_averaged, MEAN_SAMPLES), "generator": generator}
    found = mean_of_all(model, examples, order, variance=variance, **draws)
    model.mean_basis = found and found.basis
    return {
        "learned_angle": round(half_width(model.orbit.learned_ranges()), 1),
        "test_error": round(100 * test_error_of(model, test, seed), 2),
        "elbo": round(value, 1),
        "elbo_standard_error": round(error, 1),
        "elbo_when_learned": round(training.best[2], 1),
        "seconds": {
            "learn": round(learned_seconds, 1),
            "all": round(time.monotonic() - watch.start, 1),
        },
        "curve": watch.points,
    }


def draw(angle: int, runs: dict[str, dict[str, Any]], path: Path) -> None:
    """Angle, test error and bound by seconds, one line for each start."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
    names = {"angle": "learned angle (°)", "test_error": "test error (%)", "elbo": "bound (nats)"}
    for axis, (key, label) in zip(axes, names.items(), strict=True):
        for start, values in runs.items():
            curve = values["curve"]
            axis.plot([p["seconds"] for p in curve], [p[key] for p in curve], label=start)
        axis.set(xlabel="seconds of training", ylabel=label)
    axes[0].axhline(angle, color="gray", linewidth=0.8)
    axes[2].legend(fontsize=7)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main() -> None:
    """All starts, and the process without invariance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--angle", type=int, default=90)
    parser.add_argument("--starts", type=int, nargs="+", default=list(STARTS))
    parser.add_argument("--num-data", type=int, default=NUM_DATA)
    parser.add_argument("--recognition", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    angle, seed = arguments.angle, arguments.seed
    sets, network = digits(angle, arguments.num_data, seed), arguments.recognition
    plain = run(Identity(), *sets, recognition=network, seed=seed)
    runs, command = {"none": plain}, f"python -m experiments.partial_rotation --angle {angle}"
    command += " --recognition" * network
    path = arguments.out
    for start in arguments.starts:
        limit = math.radians(start)
        orbit = Rotation(-limit, limit, symmetric=True)
        values = run(orbit, *sets, recognition=network, seed=seed)
        runs[f"from ±{start}°"] = values
        values |= {"angle": angle, "start": start, "num_data": arguments.num_data}
        values["without_invariance"] = {k: v for k, v in plain.items() if k != "curve"}
        name = f"partial-rotation-{angle}-{start}" + "-recognition" * network
        path = record(arguments.out, name, command, seed, values)
        print({key: value for key, value in values.items() if key != "curve"}, flush=True)
    draw(angle, runs, path.with_name(f"partial-rotation-{angle}-{seed}.png"))


if __name__ == "__main__":
    main()
