"""The time that inference takes, and the sizes that a budget of seconds buys on this machine."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from orbitgp.devices import Rates
from orbitgp.fit.plan import FEWEST_POINTS, MEMORY_SHARE, Plan, Work, bound_draws, plan_of
from orbitgp.fit.settings import TrainingSettings

EXACT_SHARE = 0.8
"""Of the budget, for the last factorisation; learning takes a minute whatever N is."""

MEAN_SHARE, INDUCING_SHARE = 0.6, 0.15
"""Of the budget, for a mean on all data, and for the inducing variables."""

MEAN_ROUNDS, ROUND = 60, 1.3
"""Products with K for a mean on all data, and the exponentials that an entry in each is worth."""

NUM_SOLVES = 8
"""Factorisations of M×M matrices while the ratio is chosen."""


@dataclass(frozen=True)
class Resources:
    """What a fit may use: seconds, bytes, a device, and the processes that share the work."""

    seconds: float
    memory: float
    rates: Rates
    num_features: int
    processes: int = 1


def affordable(work: Work, settings: TrainingSettings, resources: Resources) -> TrainingSettings:
    """Return the settings with the sizes that the resources buy, where none are given."""
    if settings.num_inducing is not None:
        return settings
    if work.can_be_exact and settings.max_exact and resources.processes == 1:
        exact = replace(settings, num_inducing=0)
        plan = plan_of(work, exact)
        in_time = exact_seconds(plan, resources) <= EXACT_SHARE * resources.seconds
        if in_time and _fits(plan, resources):
            return exact
    draws = bound_draws(work, settings)
    mean = Plan(work.num_data, draws, False, 1, True)
    full_mean = work.can_be_exact and resources.processes == 1 and _fits(mean, resources)
    full_mean &= full_mean_seconds(mean, resources) <= MEAN_SHARE * resources.seconds
    if settings.full_mean is not None:
        full_mean = settings.full_mean
    num_points = _affordable_points(work, draws, resources)
    return replace(settings, num_inducing=num_points, full_mean=bool(full_mean))


def _affordable_points(work: Work, draws: int, resources: Resources) -> int:
    """Return the largest M, however small the budget at least 500."""

    def plans() -> Iterator[Plan]:
        for size in (*(int(FEWEST_POINTS * 1.1**power) for power in range(50)), work.most_points):
            if size <= work.most_points:
                yield Plan(work.num_data, draws, False, size, False, work.num_grams)

    budget = INDUCING_SHARE * resources.seconds
    fits = (p for p in plans() if bound_seconds(p, resources) <= budget and _fits(p, resources))
    fewest = min(work.most_points, FEWEST_POINTS)
    return max([fewest, *(plan.num_points for plan in fits)])


def _fits(plan: Plan, resources: Resources) -> bool:
    return plan.num_bytes <= MEMORY_SHARE * resources.memory


def exact_seconds(plan: Plan, resources: Resources) -> float:
    """Return the time of one covariance of all data and its factorisation."""
    return kernel_seconds(plan.num_data, plan.num_draws, resources) + factor_seconds(
        plan.num_data, resources
    )


def bound_seconds(plan: Plan, resources: Resources) -> float:
    """Return the time of a bound with M inducing variables, without that of a mean on all data."""
    num_data, num_points, rates = plan.num_data, plan.num_points, resources.rates
    shared = num_data * num_points * plan.num_draws**2 * entry_seconds(resources)
    shared += plan.num_grams * 3 * num_data * num_points**2 / rates.float64_flops
    own = kernel_seconds(num_points, plan.num_draws, resources)
    own += (3 + NUM_SOLVES) * factor_seconds(num_points, resources)
    return shared / resources.processes + own


def full_mean_seconds(plan: Plan, resources: Resources) -> float:
    """Return the time of a mean on all data by conjugate gradients."""
    entry = plan.num_draws**2 * entry_seconds(resources)
    entry += MEAN_ROUNDS * ROUND / resources.rates.entries
    return plan.num_data**2 / 2 * entry


def entry_seconds(resources: Resources) -> float:
    """Return the time of one base covariance: its product and its exponential."""
    return 1 / resources.rates.entries + 2 * resources.num_features / resources.rates.flops


def kernel_seconds(num_data: int, num_draws: int, resources: Resources) -> float:
    """Return the time of the covariance of averages over S points."""
    return (num_data * num_draws) ** 2 / 2 * entry_seconds(resources)


def factor_seconds(num_data: int, resources: Resources) -> float:
    """Return the time of a factorisation, and of what is solved with it."""
    return num_data**3 / resources.rates.float64_flops
