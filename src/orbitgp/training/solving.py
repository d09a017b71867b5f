"""Stage two: solve once with many inducing variables, and weigh the evidence."""

import math
import os

import torch
from torch import Tensor

from orbitgp.likelihoods.gaussian import NOISE_FLOOR, Gaussian
from orbitgp.model import InvariantGP, mean_pairs, unbiased_pairs
from orbitgp.posterior.algebra import cholesky
from orbitgp.posterior.closed_form import solve, statistics
from orbitgp.posterior.inducing import kl
from orbitgp.training.group import ALONE, Group
from orbitgp.training.passes import Examples, Resident, pass_seed, pass_statistics, pass_total
from orbitgp.training.scales import best_scales, take
from orbitgp.training.starts import orbit_points, with_points
from orbitgp.ustatistics import mean_weights
from orbitgp.values import OrbitCovariances, SufficientStatistics

NUM_FRESH = 8
"""Orbit samples of each input that judge a solved q(u)."""


FLOPS = {"float32": 100e9, "float64": 35e9}
"""Operations a second of one thread, to turn a time budget into a size."""

ENTRIES = 0.25e9
"""Exponentials, with the passes over memory around them, a second of one thread."""


def affordable_points(
    num_data: int,
    num_features: int,
    *,
    num_averaged: int,
    seconds: float,
    memory: float,
    processes: int = 1,
) -> int:
    """The largest M whose solve and evidence fit into the budget, by counting operations.

    With E = M J (J + 24) N base covariances, of D features each, on W processes,

        time ≈ (E / entries + 2 E D / f32 + 6 N M² / f64) / W + 20 M³ / f64,   memory ≈ 8 · 8 M²
    """
    threads = torch.get_num_threads()

    def fits(m: int) -> bool:
        entries = m * num_averaged * (num_averaged + 24) * num_data
        kernel = entries / ENTRIES + 2 * entries * num_features / FLOPS["float32"]
        shared = kernel + 6 * num_data * m**2 / FLOPS["float64"]
        total = shared / processes + 20 * m**3 / FLOPS["float64"]
        return total <= seconds * threads and 64 * m**2 <= memory

    low, high = 1, 1 << 16
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def default_memory(processes: int = 1) -> float:
    """A process's part of an eighth of the machine's memory."""
    here = min(processes, int(os.environ.get("LOCAL_WORLD_SIZE", processes)))
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 8 / max(here, 1)


@torch.no_grad()
def solve_large(
    model: InvariantGP,
    examples: Examples,
    *,
    num_points: int,
    num_averaged: int,
    generator: torch.Generator,
    group: Group = ALONE,
) -> InvariantGP:
    """Stage two: the same kernel, noise and ranges with many inducing variables and the best q(u).

    Each variable is f at one of the data in memory, averaged over J points of its orbit. What these
    data say of f is then in Kuu already; if they are all there are, only the others take a pass.
    """
    x, y = examples.x, examples.y
    order = torch.randperm(len(x), generator=generator).to(x.device)
    own, others = order[:num_points], order[num_points:]
    draws = {"num_averaged": num_averaged, "generator": generator}
    points = orbit_points(model.orbit, model.feature_map, x[own], **draws)
    large = with_points(model, points)
    kuu = large.posterior.prior_covariance(large.kernel)
    chosen = {"num_samples": points.shape[1], "weigh": mean_pairs, "group": group}
    if not isinstance(examples, Resident):
        fitting = pass_statistics(large, examples, seed=pass_seed(generator), **chosen)
    else:
        fitting = _statistics_of_own(kuu, large, x[own], y[own])
        if len(others):
            rest = Resident(x[others], y[others])
            fitting += pass_statistics(large, rest, seed=pass_seed(generator), **chosen)
    factor = cholesky(kuu, "Kuu")
    if not isinstance(large.likelihood, Gaussian):
        large.posterior.assign(solve(fitting, factor))
        return large
    fresh = pass_statistics(
        large,
        examples,
        num_samples=NUM_FRESH,
        weigh=unbiased_pairs(NUM_FRESH // 2),
        seed=pass_seed(generator),
        group=group,
    )
    take(large, best_scales(fitting, fresh, factor, large.likelihood.noise.item()))
    return large


def _statistics_of_own(
    kuu: Tensor, model: InvariantGP, x: Tensor, y: Tensor
) -> SufficientStatistics:
    """Statistics of the data that the inducing variables stand on, f(x_n) = u_n: no new draws."""
    bound = model.likelihood.quadratic_bound(x, y)
    weights = mean_weights(1)
    return statistics(OrbitCovariances(kuu.unsqueeze(1), kuu.diagonal(), weights), bound)


@torch.no_grad()
def evidence_of_nothing(likelihood: Gaussian, x: Tensor, y: Tensor, num_data: int) -> float:
    """log p(y) of the best constant with the noise that suits it: what a collapsed model has."""
    bound = likelihood.quadratic_bound(x, y)
    targets = bound.linear / bound.precision
    noise = (targets - targets.mean(0)).square().mean().clamp(min=NOISE_FLOOR).item()
    return -0.5 * num_data * targets.shape[1] * (math.log(2 * math.pi * noise) + 1)


def evidence(
    model: InvariantGP,
    examples: Examples,
    *,
    num_samples: int,
    generator: torch.Generator,
    group: Group = ALONE,
) -> tuple[float, float]:
    """The bound of all data on fresh draws, and its standard error from two independent sets."""
    value, error = pass_total(
        model,
        examples,
        num_samples=num_samples,
        weigh=unbiased_pairs(num_samples // 2),
        seeds=(pass_seed(generator), pass_seed(generator)),
        group=group,
    )
    return value - kl(model.posterior.q).item(), error
