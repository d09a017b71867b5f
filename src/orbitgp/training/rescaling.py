"""Kernel variance and noise with a solve, where every scale has its best q(u) in closed form.

If the kernel's variance v is multiplied by n and the noise σ² by n/ρ, the statistics (P, Q) of the
data are multiplied by ρ and Kuu by n: the mean of f depends on ρ alone. So with m̃ and U of the q(u)
for ρ, R = Σ (y − f)², d the variance of f that u leaves unexplained and s the one that q(u)
retains, the bound is

    −½ NC log(2πσ²n/ρ) − (ρR/σ² + |m̃|²) / 2n − ½ Cρ Σ (νd + s)/σ² − NC KL_f(ν) − ½ C KL_U,

whose best n and ν are closed form: n = (ρR/σ² + |m̃|²) / NC and ν = 1 / (1 + ρ mean d/σ²).
"""

import copy
import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.kernels import RBF
from orbitgp.likelihoods.gaussian import NOISE_FLOOR, Gaussian
from orbitgp.model import InvariantGP, unbiased_pairs
from orbitgp.posterior.algebra import excess_of_scale, solve_rows
from orbitgp.posterior.closed_form import solve
from orbitgp.posterior.inducing import best_narrowing, conditional_kl
from orbitgp.training.solving import Solved
from orbitgp.training.starts import with_points
from orbitgp.values import WhitenedGaussian

NUM_SAMPLES = 8
RATIOS = tuple(5.0**-k for k in range(1, 6))
"""What v/σ² is multiplied by to find the highest bound, until it falls."""


@dataclass(frozen=True)
class Draws:
    """Fresh draws at some data: targets, L⁻¹k of two half-sets, and unbiased k_f(x, x)."""

    targets: Float[Tensor, "T C"]
    whitened: Float[Tensor, "T 2 M"]
    variance: Float[Tensor, "T"]


@dataclass(frozen=True)
class Rescaled:
    """Factors n of the kernel's variance and n/ρ of the noise, their best q, and its bound."""

    variance: float
    noise: float
    q: WhitenedGaussian
    bound: float


@torch.no_grad()
def fresh_draws(solved: Solved, x: Tensor, y: Tensor, *, generator: torch.Generator) -> Draws:
    """What the scales are judged on."""
    model, weigh = solved.model, unbiased_pairs(NUM_SAMPLES // 2)
    covariances = model.covariances(weigh.draw(model, x, NUM_SAMPLES, generator), weigh)
    targets = model.likelihood.quadratic_bound(x, y).targets
    groups = covariances.groups / covariances.weights.group_size
    if groups.shape[1] == 1:  # whole orbits: both halves are exact
        groups = groups.expand(-1, 2, -1)
    rows = solve_rows(solved.prior_factor, groups.flatten(0, 1))
    return Draws(targets, rows.unflatten(0, groups.shape[:2]), covariances.variance)


@torch.no_grad()
def rescaled(solved: Solved, draws: Draws, ratio: float, num_data: int) -> Rescaled:
    """The best n, ν and q(u) for one ρ, and an estimate of the bound."""
    likelihood = solved.model.likelihood
    assert isinstance(likelihood, Gaussian)
    noise = likelihood.noise.item() / ratio
    q = solve(solved.statistics * ratio, solved.prior_covariance, solved.prior_factor)
    first, second = draws.whitened.unbind(1)
    num_outputs = q.mean.shape[1]
    count = num_data * num_outputs
    part = num_data / len(first)
    residual = ((draws.targets - first @ q.mean) * (draws.targets - second @ q.mean)).sum()
    least = 2 * NOISE_FLOOR / noise
    best = (part * residual / noise + q.mean.square().sum()).item() / count
    n = max(best, least)
    unexplained = part * (draws.variance - (first * second).sum(1)).sum() / noise
    scale = q.scale[0]
    retained = part * ((first @ scale) * (second @ scale)).sum() / noise
    narrowing = best_narrowing(unexplained, num_data)
    q = replace(q, mean=q.mean / math.sqrt(n), narrowing=narrowing)
    spread = narrowing * unexplained + retained + excess_of_scale(q.scale)
    bound = -0.5 * count * (math.log(2 * math.pi * noise * n) + 1) - 0.5 * num_outputs * spread
    bound = bound - count * conditional_kl(q)
    # a residual that is estimated as nothing, or less, is no reason to believe in no noise
    return Rescaled(n, n / ratio, q, bound.item() if n == best else -math.inf)


@torch.no_grad()
def highest_bound(solved: Solved, draws: Draws, start: Rescaled, num_data: int) -> Rescaled:
    """The scales at which the bound is highest, from the given ones towards more noise.

    Few inducing variables leave variance unexplained, which the bound can only take for noise.
    """
    best = start
    for ratio in RATIOS:
        other = rescaled(solved, draws, ratio, num_data)
        if other.bound <= best.bound:
            break
        best = other
    return best


@torch.no_grad()
def assign_scales(model: InvariantGP, scales: Rescaled) -> None:
    """Multiply variance and noise by these factors, and take the q(u) that goes with them."""
    kernel, likelihood = model.kernel, model.likelihood
    assert isinstance(kernel, RBF)
    assert isinstance(likelihood, Gaussian)
    kernel.variance = kernel.variance.detach() * scales.variance
    likelihood.assign_noise(likelihood.noise.detach() * scales.noise)
    model.posterior.assign(scales.q)


@torch.no_grad()
def with_scales(solved: Solved, scales: Rescaled) -> Solved:
    """The same inducing variables with these scales."""
    model = solved.model
    parts = {"kernel": model.kernel, "likelihood": model.likelihood}
    other = with_points(model, **copy.deepcopy(parts))
    assign_scales(other, scales)
    return replace(
        solved, model=other, prior_factor=solved.prior_factor * math.sqrt(scales.variance)
    )
