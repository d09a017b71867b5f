"""The sizes of inference: exact or a bound, how many draws and inducing variables.

They depend on the data and on the settings alone, so that every machine learns the same model.
"""

import math
from dataclasses import dataclass
from typing import Any

from orbitgp.errors import InputError
from orbitgp.fit.settings import TrainingSettings
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

MAX_GRAM = 7e11
"""G N M², which limits M: the products of G passes, some 45 s of two threads."""

FEWEST_POINTS = 500
"""The number of inducing variables that even the largest data have."""

MEMORY_SHARE = 0.8
"""The part of the memory that matrices may take; data and orbit points need the rest."""


@dataclass(frozen=True)
class Work:
    """The data that inference is for: N of them, of which some or all are in memory.

    `can_be_exact` says whether the likelihood is Gaussian and the data are no stream. G passes
    over all data (`num_grams`) take N M² operations each.
    """

    orbit: Orbit
    num_data: int
    num_resident: int
    can_be_exact: bool = True
    num_grams: float = 1.0

    @property
    def most_points(self) -> int:
        """The largest M: half of a sample remains to estimate what M variables leave open."""
        whole = self.num_resident == self.num_data
        return self.num_resident if whole else max(1, self.num_resident // 2)


@dataclass(frozen=True)
class Plan:
    """Inference on N inputs with S draws each, or with all P points of a finite orbit.

    Inference is exact without inducing variables. M of them make a bound; with `full_mean` its
    mean has a variable for every datum.
    """

    num_data: int
    num_draws: int
    enumerated: bool
    num_points: int = 0
    full_mean: bool = False
    num_grams: float = 1.0

    @property
    def kind(self) -> str:
        """The kind of the evidence: "exact", or a lower "bound"."""
        return "bound" if self.num_points else "exact"

    @property
    def sizes(self) -> dict[str, Any]:
        """The fields of `TrainingSettings` that give this plan on any machine."""
        return {
            "num_draws": self.num_draws,
            "num_inducing": self.num_points,
            "full_mean": self.full_mean,
        }

    @property
    def num_bytes(self) -> float:
        """The covariance, its factor, and a copy of either; or half a covariance; or Kuu."""
        if not self.num_points:
            return 3 * 8.0 * self.num_data**2
        columns = 2 * 8.0 * NUM_COLUMNS * self.num_data
        mean = 4 * self.num_data**2 / 2 + columns if self.full_mean else 0.0
        return mean + 6 * 8.0 * self.num_points**2

    def describe(self, seconds: float, device: str = "cpu") -> str:
        """A line for people who wait; `seconds` are those of the whole fit."""
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


def plan_of(work: Work, settings: TrainingSettings) -> Plan:
    """Return the plan with the sizes that the settings give, or else with the usual ones.

    M does not depend on the orbit, so that bounds can be compared.
    """
    if not _num_points(work, settings):
        enumerated = is_enumerated(work.orbit, work.num_data)
        draws = int(work.orbit.size) if enumerated else _exact_draws(work, settings)
        return Plan(work.num_data, draws, enumerated)
    usual = bound_draws(work, settings)
    enumerated = is_enumerated(work.orbit, work.num_data) and work.orbit.size <= usual
    return Plan(
        work.num_data,
        work.orbit.num_shared(usual),
        enumerated,
        _num_points(work, settings),
        _has_full_mean(work, settings),
        work.num_grams,
    )


def is_enumerated(orbit: Orbit, num_data: int) -> bool:
    """Return whether all points of an orbit are few enough."""
    few = isinstance(orbit, FiniteOrbit) and orbit.size <= LARGEST_ENUMERATED
    return few and num_data * orbit.size**2 <= MAX_ENUMERATED


def bound_draws(work: Work, settings: TrainingSettings) -> int:
    """Return the number of draws of a bound, before an orbit rounds it."""
    if settings.num_draws is not None:
        return settings.num_draws
    fewest, most = BOUND_DRAWS
    return min(max(int(math.sqrt(MAX_PAIRS / work.num_data)), fewest), most)


def _exact_draws(work: Work, settings: TrainingSettings) -> int:
    """Return the number of draws that exact inference shares."""
    fits = [count for count in DRAWS if work.num_data * count**2 <= MAX_PAIRS]
    usual = fits[0] if fits else DRAWS[-1]
    return work.orbit.num_shared(usual if settings.num_draws is None else settings.num_draws)


def _num_points(work: Work, settings: TrainingSettings) -> int:
    """Return M; 0 for exact inference."""
    given = settings.num_inducing
    if given is None:
        return usual_points(work, settings)
    if not given and not work.can_be_exact:
        raise InputError(
            "exact inference (inference='exact' or num_inducing=0) needs likelihood='gaussian' and "
            "data in memory; got a stream or another likelihood: use inference='inducing'"
        )
    return min(work.most_points, given)


def usual_points(work: Work, settings: TrainingSettings) -> int:
    """Return M by the number of data: G N M² ≤ 7·10¹¹, from 500 to `max_inducing`."""
    if work.can_be_exact and work.num_data <= settings.max_exact:
        return 0
    most = int(math.sqrt(MAX_GRAM / (work.num_grams * work.num_data)))
    return min(max(most, FEWEST_POINTS), settings.max_inducing, work.most_points)


def _has_full_mean(work: Work, settings: TrainingSettings) -> bool:
    """Return whether the mean of a bound has a variable for every datum."""
    if settings.full_mean is None:
        few = work.num_data <= settings.max_full_mean
        return work.can_be_exact and settings.num_inducing is None and few
    if settings.full_mean and not work.can_be_exact:
        raise InputError(
            "full_mean=True needs likelihood='gaussian' and data in memory; got a stream or "
            "another likelihood: give False or None"
        )
    return bool(settings.full_mean)


def check_memory(plan: Plan, memory: float) -> None:
    """Refuse a plan whose matrices do not fit into this many bytes, and say what would fit."""
    usable = MEMORY_SHARE * memory
    if plan.num_bytes <= usable:
        return
    points = max(1, min(int(math.sqrt(usable / (6 * 8))), plan.num_points or plan.num_data))
    if not plan.num_points:
        what = f"exact inference with {plan.num_data:,} inputs"
        exact = int(math.sqrt(usable / (3 * 8)))
        remedy = f"num_inducing={points} fits, and exact inference with up to {exact:,} inputs"
    elif plan.full_mean:
        what = f"a mean on all {plan.num_data:,} inputs"
        remedy = f"num_inducing={points} fits, whose mean has no variable for every input"
    else:
        what = f"a bound with {plan.num_points:,} inducing variables"
        remedy = f"num_inducing={points} fits"
    raise InputError(
        f"{what} needs {_gigabytes(plan.num_bytes)} of memory, but only {_gigabytes(usable)} of "
        f"{_gigabytes(memory)} can be used; {remedy}"
    )


def _gigabytes(num_bytes: float) -> str:
    return f"{num_bytes / 1e9:.3g} GB"
