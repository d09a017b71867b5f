"""What a budget affords: exact inference or a bound, with how many draws."""

from dataclasses import dataclass

import torch

from orbitgp.orbits.base import FiniteOrbit, Orbit
from orbitgp.processor import ENTRIES, FLOAT64_FLOPS, FLOPS

DRAWS = (64, 32, 16, 8, 4)
MAX_PAIRS = 1.3e6
"""N S², the base covariances that a prediction takes: some 4 ms of two threads."""

LARGEST_ENUMERATED = 64
MAX_ENUMERATED = 4e7
"""N P² up to which a finite orbit is enumerated."""

MAX_AXES = 128
"""Features that a projection leaves of many."""

SHARE = 0.8
"""Of the budget, for the last factorisation; learning takes a minute whatever N is."""


@dataclass(frozen=True)
class ExactPlan:
    """Exact inference on N inputs with S draws each, or with all P points of a finite orbit."""

    num_data: int
    num_draws: int
    enumerated: bool
    seconds: float
    """Of one covariance and its factorisation."""

    @property
    def num_bytes(self) -> float:
        """The covariance, its factor, and a copy of either."""
        return 3 * 8.0 * self.num_data**2

    def describe(self) -> str:
        """For people who wait."""
        draws = "all points" if self.enumerated else f"{self.num_draws} draws"
        size = f"{self.num_bytes / 1e9:.1f} GB"
        return (
            f"exact inference: {self.num_data:,} inputs × {draws} of their orbits; a solution "
            f"takes about {max(self.seconds, 1):.0f} s and {size}"
        )


def exact_plan(
    orbit: Orbit, *, num_data: int, num_features: int, seconds: float, memory: float
) -> ExactPlan | None:
    """The plan of exact inference; None where the budget or the memory does not allow it."""
    enumerated = (
        isinstance(orbit, FiniteOrbit)
        and orbit.size <= LARGEST_ENUMERATED
        and num_data * orbit.size**2 <= MAX_ENUMERATED
    )
    if enumerated:
        draws = int(orbit.size)
    else:
        fits = [count for count in DRAWS if num_data * count**2 <= MAX_PAIRS]
        draws = int(min(fits[0] if fits else DRAWS[-1], orbit.size))
    taken = solution_seconds(num_data, draws, min(num_features, MAX_AXES))
    plan = ExactPlan(num_data, draws, enumerated, taken)
    affordable = taken <= SHARE * seconds and plan.num_bytes <= memory
    return plan if affordable else None


def solution_seconds(num_data: int, num_draws: int, num_features: int) -> float:
    """Of one covariance of all data, its factorisation and what leaves each datum out."""
    entries = (num_data * num_draws) ** 2 / 2
    kernel = entries * (1 / ENTRIES + 2 * num_features / FLOPS)
    return (kernel + num_data**3 / FLOAT64_FLOPS) / torch.get_num_threads()
