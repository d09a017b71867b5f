"""Do the intervals of `ablate` hold the range that data were drawn with?

python -m experiments.intervals

Points of the plane, and functions drawn from the Gaussian process whose kernel averages over turns
within ±0.6 radians. One result for each draw, as `interval-SEED.json`.
"""

import argparse
import functools
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from experiments.record import RESULTS, record_once
from orbitgp import FunctionOrbit, InvariantGPRegressor, ablate
from orbitgp.kernels import RBF, average_covariances_among

NUM_DATA = 80
WIDTH = 0.6
NUM_ANGLES = 64


def turned(x: Tensor, angle: Tensor) -> Tensor:
    """Points [B, 2] turned by angles [B, 1], in radians."""
    cos, sin = torch.cos(angle), torch.sin(angle)
    first, second = x.split(1, 1)
    return torch.cat([cos * first - sin * second, sin * first + cos * second], 1)


def rotation(half: float = 0.2) -> FunctionOrbit:
    """Turns whose range is learned from this start."""
    return FunctionOrbit(turned, -half, half, names=["angle"])


def rotated_points(
    num_data: int, half: float, *, seed: int, noise: float = 0.1
) -> tuple[np.ndarray, np.ndarray]:
    """Points of the plane and a function that averages over turns within ±`half`."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    x = normal(num_data, 2)
    places = (torch.arange(NUM_ANGLES, dtype=x.dtype) + 0.5) / NUM_ANGLES
    angles = half * (2 * places - 1)
    points = torch.stack([turned(x, angle.expand(num_data, 1)) for angle in angles], 1)
    covariance = average_covariances_among(RBF(1.0, 0.5).double(), points)
    covariance /= covariance.diagonal().mean()
    covariance.diagonal().add_(1e-9)
    y = torch.linalg.cholesky(covariance) @ normal(num_data, 1) + noise * normal(num_data, 1)
    return x.numpy(), y[:, 0].numpy()


def run(seed: int) -> dict[str, Any]:
    """The interval of one draw, and whether the true width is inside."""
    start = time.perf_counter()
    x, y = rotated_points(NUM_DATA, WIDTH, seed=seed)
    model = InvariantGPRegressor(rotation(), random_state=seed).fit(x, y)
    worth = ablate(model, x, y, random_state=seed)["angle"]
    assert worth.interval is not None
    assert worth.range is not None
    return {
        "num_data": NUM_DATA,
        "width": WIDTH,
        "learned": worth.range.high,
        "interval": worth.interval,
        "inside": worth.interval[0] <= WIDTH <= worth.interval[1],
        "removed": worth.removed,
        "removed_error": worth.removed_error,
        "seconds": round(time.perf_counter() - start, 1),
    }


def main() -> None:
    """All draws, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=list(range(50)))
    for seed in parser.parse_args().seeds:
        command, fit = "python -m experiments.intervals", functools.partial(run, seed)
        record_once(RESULTS, "interval", command, seed, fit)


if __name__ == "__main__":
    main()
