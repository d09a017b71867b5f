"""Every figure and table of the paper, twice: by its own method and by the default.

python -m experiments.paper [--run] [--figure 4] [--model affine] [--method stochastic] [--seeds 0]

Without `--run` figures are drawn, and tables made, from what is in `experiments/results/`. With it,
the cells that are chosen are run first, those that this commit has not recorded yet. One result for
each cell, as `paper-FIGURE-MODEL-METHOD-SEED.json`. Test images never take part in training; the
error on 2,000 of them is recorded while a model is trained, for the learning curves alone.
"""

import argparse
import functools
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from experiments import tables
from experiments.data import load_named
from experiments.partial_rotation import turned
from experiments.record import RESULTS, record_once
from orbitgp import Callback, InvariantGPClassifier, Orbit, Rotation, StochasticSettings
from orbitgp.data.labelled import LabelledData

METHODS = ("stochastic", "default")
NUM_CURVE = 2000
"""Test images of the learning curves."""

NUM_POINTS = 24
"""Points of a learning curve."""

NUM_EXACT = 10_000
"""Digits of Figure 3 that the default method learns from; the stochastic one takes all 60,000."""


def learned(degrees: float) -> Rotation:
    """A rotation with two free ends, which start here."""
    end = math.radians(degrees)
    return Rotation(-end, end, symmetric=False)


MODELS: dict[str, dict[str, Callable[[], str | Orbit]]] = {
    "3": {
        f"{model}-{angle}": orbit
        for angle in (90, 180)
        for model, orbit in {
            "rbf": lambda: "none",
            "rotation": functools.partial(learned, 10),
        }.items()
    },
    "4": {
        "rbf": lambda: "none",
        "rotation": lambda: "rotation",
        "affine": lambda: "affine",
        "local": lambda: "local",
    },
    "5": {
        "rbf": lambda: "none",
        "rotation-from-10": functools.partial(learned, 10),
        "rotation-from-90": functools.partial(learned, 90),
        "rotation-from-179": functools.partial(learned, 179),
        "fixed-rotation": Rotation.full,
        "affine": lambda: "affine",
    },
}
"""The models of each figure."""

SETTINGS = {
    "3": StochasticSettings(num_steps=4000, num_inducing=750),
    "4": StochasticSettings(num_steps=15_000, num_inducing=1000),
    "5": StochasticSettings(num_steps=4000, num_inducing=750),
}
"""The training of each figure, the same for all of its models."""


class Cell(NamedTuple):
    """One model of a figure, by one method."""

    figure: str
    model: str
    method: str

    @property
    def name(self) -> str:
        """As the result's file has it."""
        return f"paper-{self.figure}-{self.model}-{self.method}"


def cells() -> Iterator[Cell]:
    """All of the paper."""
    for figure, models in MODELS.items():
        for model in models:
            yield from (Cell(figure, model, method) for method in METHODS)


def data_of(cell: Cell, seed: int) -> LabelledData:
    """Digits in 0 … 1: plain, even or odd and turned by up to an angle, or turned by any angle."""
    generator = torch.Generator().manual_seed(seed)
    data = load_named("mnist-rot-standin" if cell.figure == "5" else "mnist")
    assert data.x_test is not None
    assert data.y_test is not None
    if cell.figure != "3":
        return data
    angle = math.radians(float(cell.model.rpartition("-")[2]))
    count = NUM_EXACT if cell.method == "default" else len(data.x)
    rows = torch.randperm(len(data.x), generator=generator)[:count].numpy()
    x, x_test = (
        turned(torch.from_numpy(part / 255).float(), angle, generator=generator).numpy()
        for part in (data.x[rows], data.x_test)
    )
    return LabelledData(x, data.y[rows] % 2, x_test, data.y_test % 2)


class Curve(Callback):
    """Bound, ranges and test error while a model is trained; its own time does not count."""

    def __init__(self, x: Tensor, labels: Tensor) -> None:
        self.x, self.labels = x[:NUM_CURVE], labels[:NUM_CURVE]
        self.start, self.own = time.monotonic(), 0.0
        self.points: list[dict[str, Any]] = []

    def evaluated(self, evaluation: Any) -> None:
        """One more point."""
        minutes = (time.monotonic() - self.start - self.own) / 60
        self.points.append(
            {
                "minutes": round(minutes, 2),
                "step": evaluation.step,
                "bound": round(evaluation.evidence, 1),
                "learned": evaluation.learned,
            }
        )

    def observed(self, model: Any) -> None:
        """The test error of the newest point."""
        start = time.monotonic()
        generator = torch.Generator().manual_seed(0)
        num_samples = None if math.isfinite(model.orbit.size) else 16
        found = model.predict(self.x, num_samples=num_samples, generator=generator)
        probabilities = model.likelihood.class_probabilities(found)
        error = (probabilities.argmax(1) != self.labels).double().mean().item()
        self.points[-1]["test_error"] = round(100 * error, 2)
        self.own += time.monotonic() - start
        print(self.points[-1], flush=True)

    @property
    def minutes(self) -> float:
        """Since the start, without what this callback took."""
        return (time.monotonic() - self.start - self.own) / 60


def run(cell: Cell, seed: int, settings: StochasticSettings) -> dict[str, Any]:
    """Fit, then look at all test images once."""
    data = data_of(cell, seed)
    assert data.x_test is not None
    assert data.y_test is not None
    binary, stochastic = cell.figure == "3", cell.method == "stochastic"
    scale = float(np.abs(data.x).max())
    curve = Curve(
        torch.from_numpy(data.x_test / scale).float(), torch.from_numpy(data.y_test).long()
    )
    model = InvariantGPClassifier(
        MODELS[cell.figure][cell.model](),
        likelihood="polya-gamma" if binary and stochastic else "auto",
        feature_map=None,
        inference="stochastic" if stochastic else "auto",
        settings=replace(settings, report_every=max(1, settings.num_steps // NUM_POINTS))
        if stochastic
        else None,
        callbacks=[curve],
        random_state=seed,
    ).fit(data.x, data.y)
    minutes = curve.minutes
    return {
        **cell._asdict(),
        "num_data": len(data.x),
        "test_error": round(100 * float((model.predict(data.x_test) != data.y_test).mean()), 2),
        "bound": round(model.evidence_, 1),
        "bound_error": round(model.evidence_error_, 1),
        "evidence_kind": model.evidence_kind_,
        "minutes": round(minutes, 2),
        "learned": model.orbit_.describe(),
        "sizes": model.sizes_,
        "settings": vars(settings) if stochastic else None,
        "curve": curve.points,
    }


def recorded(pattern: str) -> list[dict[str, Any]]:
    """Results by the name of their files."""
    return [json.loads(path.read_text()) for path in sorted(RESULTS.glob(f"{pattern}.json"))]


def draw_curves(figure: str, path: Path) -> None:
    """Test error and bound over the minutes of stochastic training, a line for each run."""
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for number, model in enumerate(MODELS[figure]):
        for place, one in enumerate(recorded(f"paper-{figure}-{model}-stochastic-*")):
            points = [point for point in one["curve"] if "test_error" in point]
            minutes = [point["minutes"] for point in points]
            for ax, key in zip(axes, ("test_error", "bound"), strict=True):
                label = model if not place else None
                ax.plot(minutes, [p[key] for p in points], color=f"C{number}", label=label)
    axes[0].set(xlabel="minutes", ylabel="test error (%)")
    axes[1].set(xlabel="minutes", ylabel="bound (nats)")
    axes[0].legend(fontsize=8)
    drawing.savefig(path, dpi=110)
    plt.close(drawing)


def draw_figures(folder: Path) -> list[Path]:
    """The learning curves of each figure, as far as there are results."""
    drawn = []
    for figure in MODELS:
        if recorded(f"paper-{figure}-*-stochastic-*"):
            drawn.append(folder / f"paper-{figure}.png")
            draw_curves(figure, drawn[-1])
    return drawn


def main() -> None:
    """Run if asked to, then draw and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", action="store_true", help="run what this commit has not recorded")
    parser.add_argument("--figure", choices=list(MODELS))
    parser.add_argument("--model")
    parser.add_argument("--method", choices=METHODS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    given = parser.parse_args()
    for seed in given.seeds if given.run else []:
        for cell in cells():
            wanted = (given.figure, given.model, given.method)
            if all(want in (None, own) for want, own in zip(wanted, cell, strict=True)):
                options = f"--figure {cell.figure} --model {cell.model} --method {cell.method}"
                command = f"python -m experiments.paper --run {options}"
                fit = functools.partial(run, cell, seed, SETTINGS[cell.figure])
                record_once(RESULTS, cell.name, command, seed, fit)
    for path in draw_figures(RESULTS):
        print(f"drew {path.name}")
    tables.write()


if __name__ == "__main__":
    main()
