"""Stage two: solve once with many inducing variables, and weigh the evidence."""

import math
import os
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.features import Projection
from orbitgp.gaussians import rounded
from orbitgp.kernels import RBF
from orbitgp.likelihoods.gaussian import NOISE_FLOOR, Gaussian
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP, mean_pairs
from orbitgp.posterior.algebra import cholesky
from orbitgp.posterior.closed_form import solve
from orbitgp.posterior.inducing import kl
from orbitgp.processor import FLOAT64_FLOPS, covariance_seconds
from orbitgp.training.fixed_point import Prior, fixed_point, rows_of
from orbitgp.training.group import ALONE, Group
from orbitgp.training.passes import Examples, Resident, pass_seed, pass_statistics
from orbitgp.training.starts import orbit_points, with_points
from orbitgp.training.weighing import cost_of_variance, earned_by_mean
from orbitgp.values import SufficientStatistics

NUM_SAMPLES = 8
"""Orbit samples of each input in the pass that q(u) is made of, at least."""

NUM_VARIANCES = 2048
"""Data that tell what variance is left, which costs M² for each."""

NUM_PROJECTED = 4000
"""Orbit points that tell along which axes features vary."""

MAX_LEFT_OUT = 0.03
"""Squared lengthscales of variance that may be left out with all other axes."""

MAX_ROUNDING = 0.01
"""Lengthscales by which rounding may move a point; beyond it, no kernel is coarse."""


def fitting_samples(num_averaged: int) -> int:
    """Orbit samples of each input in the pass that q(u) is made of: never fewer than J."""
    return max(NUM_SAMPLES, num_averaged)


def affordable_points(
    num_data: int,
    num_features: int,
    *,
    num_averaged: int,
    seconds: float,
    memory: float,
    processes: int = 1,
    num_grams: float = 1.0,
) -> int:
    """The largest M whose solve and evidence fit into the budget, by counting operations.

    With E = 2 N M J max(8, J) + 3 M² J² base covariances, of D features each, on W processes,

        time ≈ (E / entries + 2 E D / kernel + G N M² / f64) / W + 14 M³ / f64,   memory ≈ 8 · 8 M²

    G counts grams, and what else costs N M².
    """
    threads = torch.get_num_threads()

    def fits(m: int) -> bool:
        entries = (
            2 * fitting_samples(num_averaged) * num_data * m * num_averaged
            + 3 * (m * num_averaged) ** 2
        )
        shared = (
            entries * covariance_seconds(num_features) + num_grams * num_data * m**2 / FLOAT64_FLOPS
        )
        total = shared / processes + 14 * m**3 / FLOAT64_FLOPS
        return total <= seconds * threads and 64 * m**2 <= memory

    low, high = 1, 1 << 16
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def default_memory(processes: int = 1) -> float:
    """A process's part of a quarter of the machine's memory."""
    here = min(processes, int(os.environ.get("LOCAL_WORLD_SIZE", processes)))
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 4 / max(here, 1)


@dataclass(frozen=True)
class Solved:
    """A model, and all that its q(u) is made of."""

    model: InvariantGP
    statistics: SufficientStatistics
    prior_covariance: Float[Tensor, "M M"]
    prior_factor: Float[Tensor, "M M"]
    seed: int
    """Of the draws behind the statistics."""
    num_samples: int = NUM_SAMPLES
    """Of each input, behind the statistics."""


@torch.no_grad()
def solve_large(
    model: InvariantGP,
    examples: Examples,
    rows: Int[Tensor, "M"],
    *,
    num_averaged: int,
    generator: torch.Generator,
    group: Group = ALONE,
) -> Solved:
    """Stage two: the same kernel, noise and ranges with many inducing variables and the best q(u).

    Each variable is f at one of these rows of the data in memory, averaged over J points of its
    orbit.
    """
    draws = {"num_averaged": num_averaged, "generator": generator}
    points = orbit_points(model, examples.x[rows], **draws)
    large = with_points(model, points)
    prior = large.posterior.prior_covariance(large.kernel)
    seed = pass_seed(generator)
    num_samples = fitting_samples(num_averaged)
    draws = {"num_samples": num_samples, "weigh": mean_pairs, "seed": seed, "group": group}
    fitting = pass_statistics(large, examples, **draws)
    factor = cholesky(prior, "Kuu")
    if not isinstance(large.likelihood, Gaussian):  # else with the scales that suit it
        large.posterior.assign(solve(fitting, prior, factor))
    return Solved(large, fitting, prior, factor, seed, num_samples)


@torch.no_grad()
def solve_local(
    model: InvariantGP,
    examples: Resident,
    rows: Int[Tensor, "M"],
    *,
    num_averaged: int,
    generator: torch.Generator,
) -> tuple[InvariantGP, Prior, Resident]:
    """Stage two where the bound has local parameters.

    Returns the data with those that q(u) was fitted with, which no later draw depends on. Data that
    already carry some, of a model that is nearly the same, take fewer rounds.
    """
    likelihood = model.likelihood
    assert isinstance(likelihood, LocalLikelihood)
    draws = {"num_averaged": num_averaged, "generator": generator}
    large = with_points(model, orbit_points(model, examples.x[rows], **draws))
    prior = Prior.of(large.posterior, large.kernel)
    draws = {"num_samples": fitting_samples(num_averaged), "seed": pass_seed(generator)}
    data, carried = rows_of(large, examples, **draws), likelihood.local_of(examples.y)
    found = fixed_point(likelihood, data, prior, local=carried)
    large.posterior.assign(found.q)
    return large, prior, Resident(examples.x, likelihood.carry(data.labels, found.local))


@torch.no_grad()
def projected(
    model: InvariantGP, x: Float[Tensor, "N *event"], *, generator: torch.Generator
) -> InvariantGP:
    """The same model on the few axes in feature space that hold nearly all variance of orbits."""
    kernel, points = model.kernel, model.posterior.points
    assert isinstance(kernel, RBF)
    if points.dtype != torch.float32 or kernel.lengthscale.numel() > 1:
        return model
    order = torch.randperm(len(x), generator=generator)[:NUM_PROJECTED]
    features = orbit_points(model, x[order.to(x.device)], num_averaged=1, generator=generator)
    left_out = MAX_LEFT_OUT * kernel.lengthscale.square().item()
    projection = Projection.of(features.flatten(0, 1), left_out)
    return with_points(model, projection(points.detach()).unsqueeze(1), projection=projection)


@torch.no_grad()
def make_coarse(model: InvariantGP) -> None:
    """Evaluate the kernel at rounded points from here on, if rounding moves them hardly at all."""
    kernel, points = model.kernel, model.posterior.points.flatten(0, -2)
    assert isinstance(kernel, RBF)
    if points.dtype != torch.float32 or kernel.lengthscale.numel() > 1:
        return
    moved = torch.linalg.vector_norm(points - rounded(points), dim=-1).max()
    kernel.coarse = bool(moved <= MAX_ROUNDING * kernel.lengthscale.squeeze())


@torch.no_grad()
def evidence_of_nothing(likelihood: Gaussian, x: Tensor, y: Tensor, num_data: int) -> float:
    """log p(y) of the best constant with the noise that suits it: what a collapsed model has."""
    targets = likelihood.quadratic_bound(x, y).targets
    noise = (targets - targets.mean(0)).square().mean().clamp(min=NOISE_FLOOR).item()
    return -0.5 * num_data * targets.shape[1] * (math.log(2 * math.pi * noise) + 1)


def evidence(
    model: InvariantGP,
    factor: Float[Tensor, "M M"],
    examples: Examples,
    *,
    generator: torch.Generator,
    group: Group = ALONE,
) -> tuple[float, float]:
    """The bound of all data on fresh draws, and its standard error; `factor` is L.

    What the mean of f makes of the data is added up over all of them; what its variance takes
    away, N M² operations for all, is estimated from some.
    """
    q, seeds = model.posterior.q, (pass_seed(generator), pass_seed(generator))
    earned = earned_by_mean(model, examples, q, factor, seeds=seeds, group=group)
    order = torch.randperm(len(examples.x), generator=generator)[:NUM_VARIANCES]
    some = Resident(examples.x[order], examples.y[order])
    counted = {"num_data": examples.num_data, "seed": pass_seed(generator), "group": group}
    cost = cost_of_variance(model, some, q, factor, **counted)
    return earned.value - cost.value - kl(q).item(), math.hypot(earned.error, cost.error)
