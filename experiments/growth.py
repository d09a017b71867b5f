"""How MNIST accuracy grows: test error against M, S, J, N and seconds, for learned ranges.

python -m experiments.growth --features pixels --seed 0

Ranges and scales are learned once, from training images; each point of the figure is one solve
for the mean of f, whose q(u) needs no covariance to classify.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from experiments.mnist import feature_map
from experiments.record import RESULTS, record
from orbitgp import InvariantGP, InvariantGPClassifier, mean_pairs
from orbitgp.data.named import load_named
from orbitgp.posterior.algebra import cholesky
from orbitgp.training.group import ALONE
from orbitgp.training.passes import Resident, pass_seed, pass_statistics
from orbitgp.training.starts import orbit_points, with_points

POINTS = (500, 1000, 2000, 4000, 8000, 16_000)
SIZES = (1000, 3000, 10_000, 30_000, 60_000)
SAMPLES = (1, 2, 4, 8, 16)
AVERAGED = (1, 2, 4, 8)
USUAL = {"num_points": 4000, "num_samples": 8, "num_averaged": 4, "num_data": 60_000}
TEST_SAMPLES = 16


@torch.no_grad()
def solved_error(
    model: InvariantGP,
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    sizes: dict[str, int],
    generator: torch.Generator,
) -> tuple[float, float]:
    """Test error in percent, and the seconds of the solve."""
    start, (x, y) = time.monotonic(), train
    chosen = torch.randperm(len(x), generator=generator)[: sizes["num_data"]]
    num_points = min(sizes["num_points"], len(chosen))
    points = orbit_points(
        model,
        x[chosen[:num_points]],
        num_averaged=sizes["num_averaged"],
        generator=generator,
    )
    large = with_points(model, points)
    statistics = pass_statistics(
        large,
        Resident(x[chosen], y[chosen]),
        num_samples=sizes["num_samples"],
        weigh=mean_pairs,
        seed=pass_seed(generator),
        group=ALONE,
    )
    prior = large.posterior.prior_covariance(large.kernel)
    factor = cholesky(prior.add_(statistics.gram[0]), "Kuu + Q")
    alpha = torch.cholesky_solve(statistics.linear, factor)
    seconds = time.monotonic() - start
    found = []
    for images in test[0].split(256):
        sample = mean_pairs.draw(large, images, TEST_SAMPLES, generator)
        found.append((large.covariances(sample, mean_pairs).mean @ alpha).argmax(1))
    wrong = (torch.cat(found) != test[1]).double().mean().item()
    return 100 * wrong, seconds


def run(features: str, seed: int) -> dict[str, Any]:
    """Learn once, then solve with one size varied at a time."""
    data = load_named("mnist")
    learned = InvariantGPClassifier(
        "affine",
        feature_map=feature_map(features),
        num_inducing=500,
        random_state=seed,
        verbose=True,
    ).fit(data.x, data.y)
    assert data.x_test is not None
    assert data.y_test is not None
    pairs = [(data.x, data.y), (data.x_test, data.y_test)]
    train, test = (
        (torch.from_numpy(x / 255).float(), torch.from_numpy(y).long()) for x, y in pairs
    )
    generator = torch.Generator().manual_seed(seed)
    varied = {
        "num_points": POINTS,
        "num_samples": SAMPLES,
        "num_averaged": AVERAGED,
        "num_data": SIZES,
    }
    curves: dict[str, list[dict[str, float]]] = {}
    for name, values in varied.items():
        curves[name] = []
        for value in values:
            sizes = {**USUAL, name: value}
            model = learned.model_
            assert isinstance(model, InvariantGP)
            error, seconds = solved_error(model, train, test, sizes, generator)
            point = {name: value, "test_error": round(error, 2), "seconds": round(seconds, 3)}
            print(point, flush=True)
            curves[name].append(point)
    return {"features": features, "usual": USUAL, "ranges": learned.orbit_.describe(), **curves}


def draw(values: dict[str, Any], path: Path) -> None:
    """Error against each size, and against the seconds of its solve."""
    import matplotlib.pyplot as plt

    labels = {
        "num_points": "inducing variables M",
        "num_samples": "orbit samples S",
        "num_averaged": "points to a variable J",
        "num_data": "training images N",
    }
    figure, axes = plt.subplots(1, 5, figsize=(15, 3), layout="constrained", sharey=True)
    for axis, (name, label) in zip(axes, labels.items(), strict=False):
        points = values[name]
        ticks = [p[name] for p in points]
        axis.plot(ticks, [p["test_error"] for p in points], marker="o")
        axis.set(xscale="log", xlabel=label)
        axis.set_xticks(ticks, [f"{t // 1000}k" if t >= 1000 else str(t) for t in ticks])
        axis.minorticks_off()
    for name, label in labels.items():
        points = sorted(values[name], key=lambda point: point["seconds"])
        seconds, errors = ([p[key] for p in points] for key in ("seconds", "test_error"))
        axes[4].plot(seconds, errors, marker="o", label=label)
    axes[4].set(xscale="log", xlabel="seconds of the solve")
    axes[4].legend(fontsize=6)
    axes[0].set(ylabel="test error (%)")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main() -> None:
    """One figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", choices=("pixels", "oriented"), default="pixels")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    values = run(arguments.features, arguments.seed)
    name = f"mnist-growth-{arguments.features}"
    command = f"python -m experiments.growth --features {arguments.features}"
    path = record(RESULTS, name, command, arguments.seed, values)
    draw(values, path.with_suffix(".png"))


if __name__ == "__main__":
    main()
