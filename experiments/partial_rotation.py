"""Figure 3 of the paper: how far digits were turned, learned by the evidence.

python -m experiments.partial_rotation --angle 90 --seeds 0 1 2

Each digit of MNIST is turned by an angle of its own, uniform in ± the given one. The classifier
with a learned range of rotations starts from ±10°, and tells the angle for subsets of N digits, by
exact inference, and of the largest N also with M inducing variables.
"""

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from experiments.data import load_named
from experiments.record import RESULTS, record
from orbitgp import InvariantGPClassifier, Rotation

NUM_DATA = (250, 500, 1000, 2000, 4000)
NUM_INDUCING = (500, 1000, 2000)
NUM_TEST = 2000


def turned(images: Tensor, angle: float, *, generator: torch.Generator) -> Tensor:
    """Each image turned by an angle of its own, uniform in ±`angle`, in radians."""
    if angle == 0:
        return images
    with torch.no_grad():
        return Rotation(-angle, angle).sample(images, 1, generator=generator).points[:, 0]


def digits(num_data: int, angle: float, seed: int) -> tuple[np.ndarray, ...]:
    """Turned digits, told to be even or odd, to learn from, and others to test with."""
    data, generator = load_named("mnist"), torch.Generator().manual_seed(seed)
    assert data.x_test is not None
    assert data.y_test is not None
    order = torch.randperm(len(data.x), generator=generator)[:num_data].numpy()
    parts = (data.x[order], data.x_test[:NUM_TEST])
    images = [torch.from_numpy(part / 255).float() for part in parts]
    train, test = (turned(part, angle, generator=generator).numpy() for part in images)
    return train, data.y[order] % 2, test, data.y_test[:NUM_TEST] % 2


def learned(
    angle: float, num_data: int, seed: int, *, orbit: str = "rotation", **options: Any
) -> dict[str, Any]:
    """What the library makes of so many digits."""
    x, y, x_test, y_test = digits(num_data, math.radians(angle), seed)
    start = time.monotonic()
    pixels: dict[str, Any] = {"feature_map": None, "random_state": seed, **options}
    model = InvariantGPClassifier(orbit, **pixels).fit(x, y)
    ranges = model.orbit_.learned_ranges()
    return {
        "orbit": orbit,
        "num_data": num_data,
        "num_inducing": options.get("num_inducing"),
        "learned_angle": round(max((found.high for found in ranges), default=0.0), 1),
        "evidence": round(model.evidence_, 1),
        "evidence_error": round(model.evidence_error_, 1),
        "evidence_kind": model.evidence_kind_,
        "test_error": round(100 * (1 - model.score(x_test, y_test)), 2),
        "seconds": round(time.monotonic() - start, 1),
    }


def run(angle: float, seed: int) -> list[dict[str, Any]]:
    """All sizes; without an invariance for the smallest and the largest."""
    rows = [learned(angle, num_data, seed) for num_data in NUM_DATA]
    rows += [learned(angle, n, seed, orbit="none") for n in (NUM_DATA[0], NUM_DATA[-1])]
    return rows + [learned(angle, NUM_DATA[-1], seed, num_inducing=m) for m in NUM_INDUCING]


def draw(found: dict[int, list[dict[str, Any]]], angle: float, path: Path) -> None:
    """The learned angle over N, one line for each seed, and over M."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
    for seed, rows in found.items():
        for ax, name in zip(axes, ("num_data", "num_inducing"), strict=True):
            exact = name == "num_data"
            chosen = [
                row
                for row in rows
                if row["orbit"] != "none" and (row["num_inducing"] is None) == exact
            ]
            sizes, angles = ([row[key] for row in chosen] for key in (name, "learned_angle"))
            ax.semilogx(sizes, angles, marker=".", label=f"seed {seed}")
            ax.set_xticks(sizes, labels=[f"{size:,}" for size in sizes])
            ax.minorticks_off()
    for ax, text in zip(axes, ("digits, exact", "inducing variables, bound"), strict=True):
        ax.axhline(angle, color="grey", linewidth=0.8, linestyle="--")
        ax.set(xlabel=text, ylim=(0, 190))
    axes[0].set_ylabel("learned angle (°)")
    axes[0].legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """One angle and some seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--angle", type=int, default=90)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    found, name = {}, f"partial-rotation-{arguments.angle}"
    for seed in arguments.seeds:
        found[seed] = run(arguments.angle, seed)
        command = f"python -m experiments.partial_rotation --angle {arguments.angle}"
        values = {"angle": arguments.angle, "rows": found[seed]}
        record(arguments.out, name, command, seed, values)
        for row in found[seed]:
            print(row)
    draw(found, arguments.angle, arguments.out / f"{name}.png")


if __name__ == "__main__":
    main()
