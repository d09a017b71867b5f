"""One factorisation of the covariance of all data: ratio, posterior, and evidence."""

import copy
import functools
import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import NumericalError
from orbitgp.exact_model import ExactInvariantGP
from orbitgp.kernels import (
    Kernel,
    average_covariances,
    average_covariances_among,
    scaled_kernel,
)
from orbitgp.likelihoods.gaussian import Gaussian, Scales, scales_at
from orbitgp.orbit_model import OrbitModel
from orbitgp.posterior.algebra import cholesky
from orbitgp.posterior.exact import ExactPosterior, ExactSolution, solve_exactly

STEP = 10**0.25
MAX_STEPS = 24
"""Of the ratio v/σ², uphill from where a search starts."""

CHUNK = 512
"""Inputs whose orbit points are computed at a time."""


@torch.no_grad()
def orbit_points(
    model: OrbitModel, x: Float[Tensor, "N *event"], noise: Float[Tensor, "1 S K"] | None
) -> Float[Tensor, "N S D"]:
    """φ(T_s x) for draws that all inputs share."""
    return torch.cat([model.sample_orbit_at(part, noise).points for part in x.split(CHUNK)])


@torch.no_grad()
def evidence_at(
    covariance: Float[Tensor, "N N"], targets: Float[Tensor, "N C"], ratio: float
) -> Scales:
    """The evidence for one r = v/σ², with the best σ²; −∞ where rounding leaves no factor."""
    matrix = ratio * covariance
    matrix.diagonal().add_(1)
    try:
        factor = cholesky(matrix, "the covariance of the data")
    except NumericalError:
        return Scales(ratio, 1.0, -math.inf)
    half = torch.linalg.solve_triangular(factor, targets, upper=False)
    volume = 2 * factor.diagonal().log().sum().item()
    return scales_at(half.square().sum().item(), volume, (len(targets), targets.shape[1]), ratio)


def climbed_ratio(
    scales_at_ratio: Callable[[float], Scales], start: float, largest: float
) -> Scales:
    """The best ratio uphill from a start, and then at the vertex of the parabola around it.

    From a start that is too large for rounding it goes down first, and it ends a step away from
    ratios that are.
    """

    @functools.cache
    def at(power: int) -> Scales:
        return scales_at_ratio(min(start * STEP**power, largest))

    best = 0
    while at(best).evidence == -math.inf and best > -MAX_STEPS:
        best -= 1
    for way in (1, -1):
        while abs(best + way) <= MAX_STEPS and at(best + way).evidence > at(best).evidence:
            best += way
    low, middle, high = (at(best + way).evidence for way in (-1, 0, 1))
    if high == -math.inf:
        return at(best - 1)
    bend = low - 2 * middle + high
    if not math.isfinite(bend) or not bend < 0:
        return at(best)
    vertex = best + 0.5 * (low - high) / bend
    refined = scales_at_ratio(min(start * STEP**vertex, largest))
    return max(at(best), refined, key=lambda scales: scales.evidence)


def with_scales(model: OrbitModel, scales: Scales) -> tuple[Kernel, Gaussian]:
    """Copies of the kernel, times v = r σ², and of the likelihood, with noise σ²."""
    likelihood = copy.deepcopy(model.likelihood)
    assert isinstance(likelihood, Gaussian)
    likelihood.assign_noise(torch.full_like(likelihood.noise.detach(), scales.noise))
    return scaled_kernel(model.kernel, scales.ratio * scales.noise), likelihood


@torch.no_grad()
def exact_posterior(
    model: OrbitModel,
    x: Float[Tensor, "N *event"],
    targets: Float[Tensor, "N C"],
    noise: Float[Tensor, "1 S K"] | None,
    scales: Scales,
    covariance: Float[Tensor, "N N"],
) -> tuple[ExactInvariantGP, ExactSolution]:
    """The model with these scales, given all data; their covariance is known, and used up."""
    points = orbit_points(model, x, noise)
    kernel, likelihood = with_scales(model, scales)
    # as files will have it: the factor that is left after parameters are rounded
    one = points[:1], points[:1]
    first, scaled = (average_covariances(k, *one).item() for k in (model.kernel, kernel))
    solution = solve_exactly(covariance.mul_(scaled / first), targets, likelihood.noise.item())
    posterior = ExactPosterior.of(points, solution, noise)
    parts = model.parts(kernel=kernel, likelihood=likelihood)
    return ExactInvariantGP(**parts, posterior=posterior), solution


@torch.no_grad()
def condition(
    kernel: Kernel, points: Float[Tensor, "N S D"], targets: Float[Tensor, "N C"], noise: float
) -> ExactSolution:
    """The posterior and the evidence of the averages of g over these points."""
    return solve_exactly(average_covariances_among(kernel, points), targets, noise)


@torch.no_grad()
def exact_evidence(model: ExactInvariantGP, x: Float[Tensor, "N *event"], y: Tensor) -> float:
    """log p(y) of a fitted model, in nats, computed anew from the model and its data."""
    likelihood = model.likelihood
    assert isinstance(likelihood, Gaussian)
    targets = likelihood.quadratic_bound(x, y).targets
    points = orbit_points(model, x, model.posterior.noise)
    return condition(model.kernel, points, targets, likelihood.noise.item()).evidence
