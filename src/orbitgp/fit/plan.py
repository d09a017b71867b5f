"""What a budget affords: exact inference or a bound, how many draws and inducing variables."""

import math
from dataclasses import dataclass, field

import torch

from orbitgp.devices import Rates, rates_of
from orbitgp.inference.full_data_mean import NUM_COLUMNS
from orbitgp.orbits.base import FiniteOrbit, Orbit

DRAWS = (64, 32, 16, 8, 4)
MAX_PAIRS = 1.3e6
"""N S², the base covariances that a prediction takes: some 4 ms of two threads."""

BOUND_DRAWS = (4, 8)
"""Of the bound: at least, and at most."""

LARGEST_ENUMERATED = 64
MAX_ENUMERATED = 4e7
"""N P² up to which a finite orbit is enumerated."""

EXACT_SHARE = 0.8
"""Of the budget, for the last factorisation; learning takes a minute whatever N is."""

MEAN_SHARE, INDUCING_SHARE = 0.6, 0.15
"""Of the budget, for a mean on all data, and for the inducing variables."""

MEAN_ROUNDS, ROUND = 60, 1.3
"""Products with K for a mean on all data, and the exponentials that an entry in each is worth."""

NUM_SOLVES = 8
"""Factorisations of M×M matrices while the ratio is chosen."""

FEWEST_POINTS = 500
"""Inducing variables, however small the budget."""


@dataclass(frozen=True)
class Plan:
    """Inference on N inputs with S draws each, or with all P points of a finite orbit.

    Exact without inducing variables; with M of them a bound, with `full_mean` one whose mean has a
    variable for every datum.
    """

    num_data: int
    num_draws: int
    enumerated: bool
    seconds: float
    """Of a solution."""
    num_points: int = 0
    full_mean: bool = False

    @property
    def kind(self) -> str:
        """Of the evidence: "exact", or a lower "bound"."""
        return "bound" if self.num_points else "exact"

    @property
    def num_bytes(self) -> float:
        """The covariance, its factor, and a copy of either; or half a covariance; or Kuu."""
        if not self.num_points:
            return 3 * 8.0 * self.num_data**2
        columns = 2 * 8.0 * NUM_COLUMNS * self.num_data
        mean = 4 * self.num_data**2 / 2 + columns if self.full_mean else 0.0
        return mean + 6 * 8.0 * self.num_points**2

    def describe(self, seconds: float, device: str = "cpu") -> str:
        """For people who wait; `seconds` are those of the whole fit."""
        where = "" if device == "cpu" else f" on {device}"
        draws = "all points" if self.enumerated else f"{self.num_draws} draws"
        sizes = f"{self.num_data:,} inputs × {draws} of their orbits"
        taken = f"about {max(seconds, 1):.0f} s, {max(self.num_bytes / 1e9, 0.1):.1f} GB"
        if not self.num_points:
            return f"exact inference{where}: {sizes}, {taken}"
        mean = " and a mean on all data" if self.full_mean else ""
        return (
            f"a bound on the evidence{where}: {sizes}, {self.num_points:,} inducing variables"
            f"{mean}, {taken}"
        )


@dataclass(frozen=True)
class Resources:
    """What a fit may use: seconds, bytes, a device, and how many processes share the work."""

    seconds: float
    memory: float
    processes: int = 1
    rates: Rates = field(default_factory=lambda: rates_of(torch.device("cpu")))


def exact_plan(
    orbit: Orbit, *, num_data: int, num_features: int, resources: Resources
) -> Plan | None:
    """The plan of exact inference; None where the budget or the memory does not allow it."""
    enumerated = is_enumerated(orbit, num_data)
    fits = [count for count in DRAWS if num_data * count**2 <= MAX_PAIRS]
    draws = int(orbit.size) if enumerated else orbit.num_shared(fits[0] if fits else DRAWS[-1])
    taken = solution_seconds(num_data, draws, num_features, resources.rates)
    plan = Plan(num_data, draws, enumerated, taken)
    affordable = taken <= EXACT_SHARE * resources.seconds and plan.num_bytes <= resources.memory
    return plan if affordable else None


def is_enumerated(orbit: Orbit, num_data: int) -> bool:
    """Whether all points of an orbit are few enough."""
    few = isinstance(orbit, FiniteOrbit) and orbit.size <= LARGEST_ENUMERATED
    return few and num_data * orbit.size**2 <= MAX_ENUMERATED


def inducing_plan(
    orbit: Orbit,
    *,
    num_data: int,
    num_resident: int,
    num_features: int,
    resources: Resources,
    num_inducing: int | None,
    num_grams: float = 1.0,
    full_mean: bool = True,
) -> Plan:
    """The plan of a bound; the same M for all orbits, so that their bounds can be compared.

    A mean on all data takes its time first. G counts the passes of N M² operations.
    """
    usual = min(max(int(math.sqrt(MAX_PAIRS / num_data)), BOUND_DRAWS[0]), BOUND_DRAWS[1])
    enumerated = is_enumerated(orbit, num_data) and orbit.size <= usual
    draws = orbit.num_shared(usual)
    rates = resources.rates
    mean_seconds = full_mean_seconds(num_data, usual, num_features, rates)
    full_mean = full_mean and num_inducing is None and num_resident == num_data
    full_mean &= resources.processes == 1 and mean_seconds <= MEAN_SHARE * resources.seconds
    full_mean &= Plan(num_data, 1, False, 0.0, 1, True).num_bytes <= resources.memory

    def seconds(num_points: int) -> float:
        shared = num_data * num_points * (usual**2 * entry_seconds(num_features, rates))
        shared += num_grams * 3 * num_data * num_points**2 / rates.float64_flops
        own = (num_points * usual) ** 2 / 2 * entry_seconds(num_features, rates)
        own += (3 + NUM_SOLVES) * num_points**3 / rates.float64_flops
        return shared / resources.processes + own

    # of a stream, half of the sample in memory is left to estimate what is unexplained
    largest = num_resident if num_resident == num_data else max(1, num_resident // 2)
    num_points = min(largest, FEWEST_POINTS)
    if num_inducing is None:
        budget = INDUCING_SHARE * resources.seconds
        sizes = (int(FEWEST_POINTS * 1.1**power) for power in range(50))
        fits = [
            size
            for size in (*sizes, largest)
            if size <= largest and seconds(size) <= budget and 48 * size**2 <= resources.memory
        ]
        num_points = max([num_points, *fits])
    else:
        num_points = min(largest, num_inducing)
    total = seconds(num_points) + (mean_seconds if full_mean else 0.0)
    return Plan(num_data, draws, enumerated, total, num_points, full_mean)


def entry_seconds(num_features: int, rates: Rates) -> float:
    """Of one base covariance: its product and its exponential."""
    return 1 / rates.entries + 2 * num_features / rates.flops


def solution_seconds(num_data: int, num_draws: int, num_features: int, rates: Rates) -> float:
    """Of one covariance of all data, its factorisation and what leaves each datum out."""
    return kernel_seconds(num_data, num_draws, num_features, rates) + factor_seconds(
        num_data, rates
    )


def kernel_seconds(num_data: int, num_draws: int, num_features: int, rates: Rates) -> float:
    """Of the covariance of averages over S points."""
    return (num_data * num_draws) ** 2 / 2 * entry_seconds(num_features, rates)


def factor_seconds(num_data: int, rates: Rates) -> float:
    """Of a factorisation, and what is solved with it."""
    return num_data**3 / rates.float64_flops


def full_mean_seconds(num_data: int, num_draws: int, num_features: int, rates: Rates) -> float:
    """Of a mean on all data by conjugate gradients, for a few ratios."""
    entry = num_draws**2 * entry_seconds(num_features, rates) + MEAN_ROUNDS * ROUND / rates.entries
    return num_data**2 / 2 * entry
