"""MNIST by learned invariance: the paper's table and Figures 1 and 4, and what lies beyond them.

python -m experiments.mnist --orbit affine --features pixels --num-data 60000 --seed 0

Ranges, scales and posterior come from the training images alone; the test images are looked at
once, at the end.
"""

import argparse
import resource
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.data import load_named
from experiments.record import RESULTS, record
from orbitgp import Callback, InvariantGPClassifier, OrientedEnergy
from orbitgp.data.labelled import LabelledData
from orbitgp.orbits.ranges import Range
from orbitgp.scores import evaluate

ORBITS = ("none", "rotation", "affine", "local", "affine+local")
BUDGET_SECONDS = 320.0
"""What 60,000 images need on any processor for a mean with one inducing variable per datum."""


class Clock(Callback):
    """When each stage of a run began."""

    def __init__(self) -> None:
        self.marks = {"start": time.monotonic()}

    def announced(self, message: str) -> None:
        """The last solve follows all training."""
        if message.startswith("solving"):
            self.marks["solve"] = time.monotonic()

    def seconds(self) -> dict[str, float]:
        """Of training, and of all that follows it."""
        end, solve = time.monotonic(), self.marks.get("solve", time.monotonic())
        start = self.marks["start"]
        stages = {"learn": solve - start, "solve": end - solve, "total": end - start}
        return {name: round(value, 1) for name, value in stages.items()}


def feature_map(features: str) -> OrientedEnergy | None:
    """What stands between orbit and kernel; nothing for pixels."""
    return OrientedEnergy() if features == "oriented" else None


def scored(model: InvariantGPClassifier, x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Test error in percent, NLL, ECE, and the evidence with its standard error."""
    metrics = evaluate(model, x, y).metrics
    return {
        "test_error": round(100 * metrics["error"], 2),
        "test_nll": round(metrics["nll"], 4),
        "test_ece": round(metrics["ece"], 4),
        "elbo": round(model.evidence_, 1),
        "elbo_standard_error": round(model.evidence_error_, 1),
    }


def subset(data: LabelledData, num_data: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """So many training images, drawn without replacement; all of them in their order."""
    if num_data >= len(data.x):
        return data.x, data.y
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(data.x), generator=generator)[:num_data].numpy()
    return data.x[chosen], data.y[chosen]


def run(
    orbit: str, features: str, num_data: int, seed: int, budget: float
) -> tuple[dict[str, Any], InvariantGPClassifier]:
    """Fit, then test."""
    data, clock = load_named("mnist"), Clock()
    assert data.x_test is not None
    assert data.y_test is not None
    x, y = subset(data, num_data, seed)
    model = InvariantGPClassifier(
        orbit,
        feature_map=feature_map(features),
        budget_seconds=budget,
        callbacks=[clock],
        random_state=seed,
        verbose=True,
    ).fit(x, y)
    seconds = clock.seconds()
    evaluations = model.evidence_curve_
    points, basis = model.model_.posterior.points, getattr(model.model_, "mean_basis", None)
    return {
        "orbit": orbit,
        "features": features,
        "num_data": len(x),
        **scored(model, data.x_test, data.y_test),
        "learned": model.orbit_.describe(),
        "ranges": list(map(asdict, model.orbit_.learned_ranges())),
        "seconds": seconds,
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "settings": {
            "budget_seconds": budget,
            "num_inducing": len(points),
            "points_to_an_inducing_variable": points.shape[1] if points.ndim == 3 else 1,
            "points_to_a_datum_of_the_mean": 0 if basis is None else basis.points.shape[1],
            "steps": model.n_iter_,
        },
        "evidence_curve": [[p.step, round(p.evidence, 2), p.num_data] for p in evaluations],
        "range_curves": [list(map(asdict, point.ranges)) for point in evaluations],
    }, model


def draw(model: InvariantGPClassifier, values: Mapping[str, Any], path: Path) -> None:
    """Draw Figure 1, digits and draws of their orbits, and evidence and ranges by step."""
    import matplotlib.pyplot as plt

    images = torch.from_numpy(load_named("mnist").x[:6] / 255).float()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        draws = (
            model.orbit_.sample(images, 8, generator=generator).points
            if model.orbit_.size > 1
            else None
        )
    figure = plt.figure(figsize=(11, 6.2), layout="constrained")
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.3, 1))
    gallery, curves = halves
    grid = gallery.subplots(6, 9)
    for row, image in enumerate(images):
        shown = [image] if draws is None else [image, *draws[row]]
        for column, ax in enumerate(grid[row]):
            ax.axis("off")
            if column < len(shown):
                ax.imshow(
                    shown[column].numpy(), cmap="gray_r" if column else "gray", vmin=0, vmax=1
                )
    gallery.suptitle("training digits, and draws from p(x_a | x)")
    upper, lower = curves.subplots(2, 1, sharex=True)
    steps, nats, sizes = zip(*values["evidence_curve"], strict=True)
    upper.plot(steps, np.divide(nats, sizes), marker=".")
    upper.set(ylabel="evidence per input (nats)")
    for place, found in enumerate(values["ranges"]):
        ends = np.array([ranges[place]["high"] for ranges in values["range_curves"]])
        lower.plot(steps, ends / (abs(ends[-1]) or 1), label=Range(**found).title)
    lower.set(xlabel="step", ylabel="upper ends, over their last value")
    if values["ranges"]:
        lower.legend(fontsize=7, ncols=2)
    curves.suptitle(f"{values['orbit']}, {values['features']}: {values['test_error']} % test error")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main() -> None:
    """One cell of the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orbit", choices=ORBITS, default="affine")
    parser.add_argument("--features", choices=("pixels", "oriented"), default="pixels")
    parser.add_argument("--num-data", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=BUDGET_SECONDS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    orbit, features, num_data = arguments.orbit, arguments.features, arguments.num_data
    values, model = run(orbit, features, num_data, arguments.seed, arguments.budget)
    print({name: value for name, value in values.items() if "curve" not in name})
    options = f"--orbit {orbit} --features {features} --num-data {num_data}"
    command = f"python -m experiments.mnist {options} --budget {arguments.budget:g}"
    name = f"mnist-{features}-{orbit}-{num_data}"
    path = record(arguments.out, name, command, arguments.seed, values)
    draw(model, values, path.with_suffix(".png"))


if __name__ == "__main__":
    main()
