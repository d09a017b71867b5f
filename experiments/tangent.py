"""Local deformations as a warp and to first order, side by side on the same MNIST images.

python -m experiments.tangent --num-data 3000 --seed 0
"""

import argparse
import time
from pathlib import Path
from typing import Any

import torch

from experiments.mnist import scored, subset
from experiments.record import RESULTS, record
from orbitgp import InvariantGPClassifier, LocalDeformation
from orbitgp.data.named import load_named

TIMED = (256, 16)
"""Images and draws of each, whose deformation is timed."""


def microseconds(orbit: LocalDeformation, images: torch.Tensor) -> float:
    """For one draw, the least of five."""
    (count, num_samples), found = TIMED, []
    with torch.no_grad():
        for seed in range(5):
            generator, start = torch.Generator().manual_seed(seed), time.perf_counter()
            size = orbit.sample(images[:count], num_samples, generator=generator).points.shape[:2]
            found.append((time.perf_counter() - start) / size.numel())
    return round(1e6 * min(found), 1)


def run(tangent: bool, num_data: int, seed: int) -> dict[str, Any]:
    """One row of the table."""
    data = load_named("mnist")
    assert data.x_test is not None
    assert data.y_test is not None
    x, y = subset(data, num_data, seed)
    orbit, start = LocalDeformation(tangent=tangent), time.monotonic()
    model = InvariantGPClassifier(orbit, random_state=seed, verbose=True).fit(x, y)
    seconds = time.monotonic() - start
    assert isinstance(model.orbit_, LocalDeformation)
    return {
        **scored(model, data.x_test, data.y_test),
        "seconds": round(seconds, 1),
        "microseconds_for_a_draw": microseconds(model.orbit_, torch.from_numpy(x / 255).float()),
        "learned": model.orbit_.describe(),
    }


def main() -> None:
    """Both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-data", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    num_data, seed = arguments.num_data, arguments.seed
    rows = {"warp": run(False, num_data, seed), "tangent": run(True, num_data, seed)}
    print(rows)
    command = f"python -m experiments.tangent --num-data {num_data}"
    values = {"num_data": num_data, "rows": rows}
    record(arguments.out, f"mnist-tangent-{num_data}", command, seed, values)


if __name__ == "__main__":
    main()
