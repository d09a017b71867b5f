"""Figure 3 of the paper: how far digits were turned, learned from odd and even by the bound.

python -m experiments.partial_rotation --angle 90 --seed 0

Every training and test image is turned by an angle drawn evenly from ±ANGLE. The range of a
rotation orbit is learned with the logistic bound from four starts, one of them far too narrow and
one far too wide, and compared with a process without invariance.

500 variables g(z), which gradients need, leave much of f unexplained, the more the wider the range.
So from where learning ends the bound is climbed further with many variables that are averages over
the orbit of an image, as f is. It has three scales and no gradient is needed: they are those of a
grid, the same for all starts, so that what one start has tried no other tries again.
"""

import argparse
import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from experiments.mnist import subset
from experiments.record import RESULTS, record
from orbitgp import (
    RBF,
    Callback,
    Identity,
    InvariantGP,
    PolyaGamma,
    Recognition,
    Rotation,
    TrainingSettings,
)
from orbitgp.data.named import load_named
from orbitgp.orbits.affine import affine_matrix
from orbitgp.orbits.warp import warp
from orbitgp.training.callbacks import Evaluation
from orbitgp.training.loop import Training, train
from orbitgp.training.odds import settle_odds
from orbitgp.training.passes import Resident
from orbitgp.training.solving import evidence, make_coarse, projected, solve_local
from orbitgp.training.starts import initial_model
from orbitgp.training.whole_mean import mean_of_all

STARTS = (5, 45, 90, 179)
NUM_DATA, NUM_POINTS, NUM_SAMPLES = 20_000, 500, 8
NUM_AVERAGES = (500, 1000, 2000)
"""Few first, which cost little and end near where more do."""

SETTINGS = TrainingSettings(
    max_steps=100, fit_size=NUM_DATA, fit_samples=NUM_SAMPLES, refresh_every=10
)
"""q(u) of all data: with few of them the logistic bound of the others falls while it learns."""

LENGTH, VARIANCE, TURN = 5.0, 16.0, 180.0
SHORTER, LARGER, NARROWER = 0.75, 2.0, 1 / 1.1
"""The grid: these, times powers of these."""

NUM_HIDDEN = 256
"""Of the recognition network."""

MEAN_SAMPLES = TEST_SAMPLES = 16
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
    found = model.predict(test.x, num_samples=TEST_SAMPLES, generator=generator).mean[:, 0] > 0
    return (found != test.y.bool()).double().mean().item()


@dataclass(frozen=True)
class Place:
    """Powers of `SHORTER`, `LARGER` and `NARROWER`; no angle, no invariance."""

    shorter: int
    larger: int
    narrower: float | None

    @staticmethod
    def near(model: InvariantGP) -> "Place":
        """The place on the grid that is next to the scales of a model."""
        kernel, angle = model.kernel, half_width(model.orbit.learned_ranges())
        assert isinstance(kernel, RBF)
        return Place(
            shorter=round(math.log(kernel.lengthscale.item() / LENGTH, SHORTER)),
            larger=round(math.log(kernel.variance.item() / VARIANCE, LARGER)),
            narrower=max(0, round(math.log(angle / TURN, NARROWER))) if angle else None,
        )

    @property
    def angle(self) -> float:
        """In degrees."""
        return 0.0 if self.narrower is None else TURN * NARROWER**self.narrower

    def moved(self, shorter: int = 0, larger: int = 0, narrower: float = 0) -> "Place":
        """So much further; no range is more than a turn."""
        angle = self.narrower if self.narrower is None else max(0, self.narrower + narrower)
        return Place(self.shorter + shorter, self.larger + larger, angle)

    def model(self, x: Tensor, generator: torch.Generator) -> InvariantGP:
        """One with these scales."""
        model = new_model(self.angle, PolyaGamma(), x, generator)
        assert isinstance(model.kernel, RBF)
        model.kernel.lengthscale = torch.tensor(LENGTH * SHORTER**self.shorter)
        model.kernel.variance = VARIANCE * LARGER**self.larger
        return model


STEPS = ({"larger": 1}, {"shorter": -1, "larger": 1}, {"shorter": 1}, {"narrower": -1})
WAYS = tuple({name: sign * step for name, step in way.items()} for way in STEPS for sign in (1, -1))
"""Both ways each; longer and larger at once, since these two go together."""


@dataclass(frozen=True)
class Trial:
    """A model with the best q(u) of many averages, and its bound."""

    model: InvariantGP
    elbo: float
    standard_error: float


class Search:
    """The bound at places of the grid, and test errors; nothing is computed twice."""

    def __init__(self, train_set: Resident, test: Resident, seed: int) -> None:
        self.train_set, self.test, self.seed = train_set, test, seed
        self.latest = train_set
        self.trial, self.tested = functools.cache(self._trial), functools.cache(self._tested)

    def climbed(self, place: Place) -> Place:
        """With few averages, then with more; at last between the neighbours in angle."""
        for count in NUM_AVERAGES:
            place = self._climbed(place, count)
        if place.narrower is None:
            return place
        sides = (self.trial(place.moved(narrower=k), NUM_AVERAGES[-1]).elbo for k in (-1, 0, 1))
        return place.moved(narrower=vertex(*sides))

    def _climbed(self, place: Place, num_averages: int) -> Place:
        """Higher and higher, until no way leads up."""
        before = None
        while place != before:
            before = place
            for way in WAYS:
                while self._rise(place, way, num_averages) > 0:
                    place = place.moved(**way)
        return place

    def _rise(self, place: Place, way: dict[str, int], num_averages: int) -> float:
        there, here = (self.trial(each, num_averages) for each in (place.moved(**way), place))
        return there.elbo - here.elbo

    def _trial(self, place: Place, num_averages: int) -> Trial:
        """With the same averages and draws at every place."""
        generator = torch.Generator().manual_seed(self.seed)
        model = place.model(self.train_set.x, generator)
        model = coarsened(model, self.train_set.x, generator)
        rows = torch.randperm(self.train_set.num_data, generator=generator)[:num_averages]
        draws = {"num_averaged": at_most(NUM_SAMPLES, model), "generator": generator}
        # local parameters of the last place are nearly those of the next
        model, prior, self.latest = solve_local(model, self.latest, rows, **draws)
        bound = evidence(model, prior.factor, self.latest, generator=generator)
        print(num_averages, place, f"±{place.angle:.1f}°", round(bound[0], 1), flush=True)
        return Trial(model, *bound)

    def _tested(self, place: Place) -> tuple[float, float]:
        """Test errors: of the mean of all data, with scales that suit it, and of this q(u)."""
        of_q = test_error_of(self.trial(place, NUM_AVERAGES[-1]).model, self.test, self.seed)
        generator, whole = torch.Generator().manual_seed(self.seed), self.train_set
        model = place.model(whole.x, generator)
        make_coarse(model)
        variance = settle_odds(model, whole.x, whole.y, apart=True, generator=generator)
        model = coarsened(model, whole.x, generator)
        order = torch.randperm(whole.num_data, generator=generator)
        draws = {"num_samples": at_most(MEAN_SAMPLES, model), "generator": generator}
        found = mean_of_all(model, whole, order, variance=variance, **draws)
        assert found is not None, "the equations of the mean were given up"
        model.mean_basis = found.basis
        return test_error_of(model, self.test, self.seed), of_q


def coarsened(model: InvariantGP, x: Tensor, generator: torch.Generator) -> InvariantGP:
    """On few axes, with the kernel at rounded points."""
    model = projected(model, x, generator=generator)
    make_coarse(model)
    return model


def at_most(num_samples: int, model: InvariantGP) -> int:
    """So many points of an orbit, if it has them."""
    return int(min(num_samples, model.orbit.size))


def vertex(before: float, middle: float, after: float) -> float:
    """Where a parabola through values at −1, 0 and 1 is highest, if the middle is; 0 if all are."""
    bend = 2 * middle - before - after
    return 0.5 * (after - before) / bend if bend > 0 else 0.0


def new_model(
    angle: float, likelihood: PolyaGamma, x: Tensor, generator: torch.Generator
) -> InvariantGP:
    """A model of ± so many degrees, or without invariance."""
    limit = math.radians(angle)
    return initial_model(
        Rotation(-limit, limit, symmetric=True) if angle else Identity(),
        likelihood,
        x,
        num_outputs=1,
        num_points=min(NUM_POINTS, len(x)),
        feature_map=nn.Flatten(),
        variance=10.0,
        generator=generator,
    )


def learned(
    start: float, likelihood: PolyaGamma, search: Search
) -> tuple[InvariantGP, dict[str, Any]]:
    """Stage one from there: the model, and what was seen on the way."""
    generator = torch.Generator().manual_seed(search.seed)
    x, y, test = search.train_set.x, search.train_set.y, search.test
    model = new_model(start, likelihood, x, generator)
    training = Training(model, x, y, settings=SETTINGS, generator=generator)
    few = Resident(test.x[:WATCHED], test.y[:WATCHED])
    watch = Watch(lambda: test_error_of(model, few, search.seed))
    train(training, watch)
    assert training.best is not None
    return model, {
        "angle_of_points": round(half_width(model.orbit.learned_ranges()), 1),
        "elbo_of_points": round(training.best[2], 1),
        "seconds": round(time.monotonic() - watch.start, 1),
        "curve": watch.points,
    }


def run(start: float, search: Search) -> dict[str, Any]:
    """Learn, climb further, and test."""
    model, values = learned(start, PolyaGamma(), search)
    place = search.climbed(Place.near(model))
    best, (error, error_of_q) = search.trial(place, NUM_AVERAGES[-1]), search.tested(place)
    return {
        "learned_angle": round(place.angle, 1),
        "test_error": round(100 * error, 2),
        "test_error_of_inducing_variables": round(100 * error_of_q, 2),
        "elbo": round(best.elbo, 1),
        "elbo_standard_error": round(best.standard_error, 1),
        "lengthscale": round(LENGTH * SHORTER**place.shorter, 2),
        "variance": round(VARIANCE * LARGER**place.larger, 2),
        **values,
    }


def run_network(start: float, search: Search) -> dict[str, Any]:
    """Learn with a recognition network; its local parameters are those of where learning ends."""
    generator = torch.Generator().manual_seed(search.seed)
    size = math.prod(search.train_set.x.shape[1:])
    network = Recognition(size, 2, 1, num_hidden=NUM_HIDDEN, generator=generator)
    model, values = learned(start, PolyaGamma(recognition=network), search)
    error = test_error_of(model, search.test, search.seed)
    found = {"learned_angle": values["angle_of_points"], "test_error": round(100 * error, 2)}
    return {**found, "elbo": values["elbo_of_points"], **values}


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
    angle, seed, network = arguments.angle, arguments.seed, arguments.recognition
    search = Search(*digits(angle, arguments.num_data, seed), seed)
    find = run_network if network else run
    plain, path = find(0, search), arguments.out
    runs, command = {"none": plain}, f"python -m experiments.partial_rotation --angle {angle}"
    command += " --recognition" * network
    for start in arguments.starts:
        values = find(start, search)
        runs[f"from ±{start}°"] = values
        values |= {"angle": angle, "start": start, "num_data": arguments.num_data}
        values["without_invariance"] = {k: v for k, v in plain.items() if k != "curve"}
        name = f"partial-rotation-{angle}-{start}" + "-recognition" * network
        path = record(arguments.out, name, command, seed, values)
        print({key: value for key, value in values.items() if key != "curve"}, flush=True)
    name = f"partial-rotation-{angle}" + "-recognition" * network
    draw(angle, runs, path.with_name(f"{name}-{seed}.png"))


if __name__ == "__main__":
    main()
