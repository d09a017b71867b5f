"""Do `compare` and `discover` find the invariance that data were drawn with?

python -m experiments.known

Functions are drawn from the Gaussian process whose kernel averages over a known transformation, of
points in the plane or of images of three blobs. One result for each family and draw, as
`known-FAMILY-SEED.json`; `right` says whether both found the family and nothing else. Draws that
were recorded at the same commit are not run again.
"""

import argparse
import functools
import math
import time
from typing import Any

import joblib
import torch
from torch import Tensor

from experiments.record import RESULTS, record_once
from orbitgp import InvariantGPRegressor, Mirror, Orbit, Rotation, compare, discover
from orbitgp.evidence.kinds import image_transformations
from orbitgp.evidence.transformations import orbit_of
from orbitgp.kernels import RBF, average_covariances_among
from orbitgp.orbits.base import FiniteOrbit, Identity
from orbitgp.orbits.groups import SignFlips, coordinate_swap

SIZE, NUM_BLOBS = 12, 3
NUM_DATA = 200
NOISE = 0.1
NUM_DRAWS = 64
CLAIMED = 5.0
"""Nats that a candidate must have more than none."""

SHIFT = 2 * 2 / SIZE
"""Two pixels, in half-widths."""


def shift(half: float) -> Orbit:
    """Shifts to all sides, and nothing else."""
    parts = image_transformations((SIZE, SIZE))
    return orbit_of({part: half for part in parts if part.name == "shift"})


def turn(degrees: float) -> Rotation:
    """Rotations within ± so many degrees."""
    return Rotation(-math.radians(degrees), math.radians(degrees))


FAMILIES: dict[str, tuple[Orbit, str]] = {
    "swap": (coordinate_swap(0, 1, 2), "swap of columns 0 and 1"),
    "none": (Identity(), ""),
    "mirror": (Mirror(), "horizontal mirror"),
    "shift-2px": (shift(SHIFT), "shift"),
    "rotation-30": (turn(30), "rotation"),
    "rotation-90": (turn(90), "rotation"),
    "rotation-180": (turn(180), "rotation"),
}
"""The orbit that data are drawn with, and what `discover` calls it."""


def inputs(family: str, generator: torch.Generator) -> Tensor:
    """Points of a square, or images of blobs at random places."""
    if family == "swap":
        return 4 * torch.rand(NUM_DATA, 2, generator=generator, dtype=torch.float64) - 2
    places = 1.2 * torch.rand(NUM_DATA, NUM_BLOBS, 2, generator=generator) - 0.6
    grid = (torch.arange(SIZE) * 2 + 1) / SIZE - 1
    across, down = (places[..., k, None] - grid for k in range(2))
    blobs = torch.exp(-0.5 * (across.unsqueeze(-2) ** 2 + down.unsqueeze(-1) ** 2) / 0.2**2)
    return blobs.sum(1).clamp(max=1)


def drawn(family: str, seed: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets."""
    generator = torch.Generator().manual_seed(seed)
    x, orbit = inputs(family, generator), FAMILIES[family][0]
    if isinstance(orbit, FiniteOrbit):
        points = orbit.enumerate(x).points
    else:
        with torch.no_grad():
            points = orbit.at(x, orbit.shared_noise(NUM_DRAWS, generator=generator)).points
    points = points.flatten(2).double()
    typical = torch.pdist(points[:, 0]).median().item()
    covariance = average_covariances_among(RBF(1.0, typical / 2).double(), points)
    covariance /= covariance.diagonal().mean()
    covariance.diagonal().add_(1e-9)
    normal = torch.randn(NUM_DATA, 2, generator=generator, dtype=torch.float64)
    f = torch.linalg.cholesky(covariance) @ normal[:, 0]
    return x, f + NOISE * normal[:, 1]


def candidates(family: str) -> dict[str, str | Orbit]:
    """What `compare` is given."""
    if family == "swap":
        others = {f"sign of column {k}": SignFlips(k) for k in range(2)}
        return {"": "none", "swap of columns 0 and 1": coordinate_swap(0, 1, 2), **others}
    return {"": "none", "rotation": turn(10), "shift": shift(0.1), "horizontal mirror": Mirror()}


def run(family: str, seed: int) -> dict[str, Any]:
    """What both pick."""
    start = time.perf_counter()
    x, y = (part.numpy() for part in drawn(family, seed))
    truth = FAMILIES[family][1]
    here, plain = joblib.Parallel(1), InvariantGPRegressor(feature_map=None)
    compared = compare(candidates(family), x, y, estimator=plain, executor=here)
    best = compared.best.name if compared.difference("")[0] < -CLAIMED else ""
    found = discover(x, y, estimator=plain)
    return {
        "family": family,
        "picked": found.names,
        "compared": best,
        "right": found.names == [truth] * bool(truth) and best == truth,
        "nats": found.gain,
        "compared_nats": -compared.difference("")[0],
        "learned": found.estimator.orbit_.describe(),
        "num_data": len(x),
        "seconds": round(time.perf_counter() - start, 1),
    }


def main() -> None:
    """All draws that were chosen, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", nargs="*", default=list(FAMILIES))
    parser.add_argument("--seeds", type=int, nargs="*", default=list(range(20)))
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        for family in arguments.family:
            command = f"python -m experiments.known --family {family}"
            fit = functools.partial(run, family, seed)
            record_once(RESULTS, f"known-{family}", command, seed, fit)


if __name__ == "__main__":
    main()
