"""Scales where f is a log-odds, by labels of a subset that are left out in turn.

A bound of softmax is too loose to choose them: it charges every datum for the largest curvature
that there is, and would rather have an f near 0. But the first step towards the mode, which is
least squares (`ascent.py`), knows what it would say of each datum without it: with A = v K + σ²I,
a = A⁻¹ t and targets t

    f₋ₙ = t_n − a_n / (A⁻¹)_nn,

for every v at once by the eigenvectors of K. No inducing variables stand in between. Where a mean
on all data takes that v, the kernel itself may keep the one whose bound is highest.
"""

import functools
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.kernels import RBF
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP
from orbitgp.posterior.algebra import cholesky, solve_rows
from orbitgp.posterior.inducing import average_covariance, kl
from orbitgp.training.calibration import calibrate_odds, clearly_better, scores_of_best_factor
from orbitgp.training.fixed_point import Prior, Rows, fixed_point
from orbitgp.training.subsets import MAX_POWER, STEP, subset_sizes
from orbitgp.values import Moments, Prediction

VARIANCES = tuple(4.0**k for k in range(7))
NUM_PARTS = 4
FEW = 500
"""Data that tell which variance has the highest bound."""

JITTER = 1e-6


@dataclass(frozen=True)
class Odds:
    """A kernel variance, and log p of each left-out label with the factor of f that suits them."""

    variance: float
    scores: Float[Tensor, "N"]


@torch.no_grad()
def settle_odds(
    model: InvariantGP,
    x: Tensor,
    y: Tensor,
    *,
    apart: bool,
    max_power: int = MAX_POWER,
    generator: torch.Generator,
) -> float:
    """Take the lengthscale under which left-out labels are likeliest; with the v that is returned.

    The kernel's own variance is the same v, and class probabilities are calibrated with it, for a
    mean that rests on inducing variables; or if the mean is `apart`, the v of the highest bound.
    With a `max_power` of 0 the lengthscale stays what it is.
    """
    kernel, likelihood = model.kernel, model.likelihood
    assert isinstance(kernel, RBF)
    assert isinstance(likelihood, LocalLikelihood)
    num_data, num_samples = subset_sizes(len(x), dense=False)
    order = torch.randperm(len(x), generator=generator)[:num_data].to(x.device)
    labels = likelihood.labels_of(y[order])
    noise = model.orbit_noise(1, num_samples, generator=generator, group_size=num_samples)
    points = model.sample_orbit_at(x[order], noise).points
    length, power = kernel.lengthscale.detach().clone(), 0

    def unit_covariance(power: int) -> Float[Tensor, "N N"]:
        kernel.lengthscale = length * STEP**power
        unit = average_covariance(kernel, points) / kernel.variance.item()
        unit.diagonal().add_(JITTER * unit.diagonal().mean())
        return unit

    best = best_odds(likelihood, unit_covariance(power), labels)
    for way in (1, -1):  # shorter; or longer, if not shorter
        while 0 <= way * power < max_power:
            found = best_odds(likelihood, unit_covariance(power + way), labels)
            if found.scores.mean() <= best.scores.mean():
                break
            power, best = power + way, found
    unit = unit_covariance(power)
    if apart:
        kernel.variance = tightest_variance(likelihood, unit[:FEW, :FEW], labels[:FEW])
    else:
        kernel.variance = best.variance
        by_part = torch.cat([labels[k::NUM_PARTS] for k in range(NUM_PARTS)])
        left_out = left_out_predictions(likelihood, best.variance * unit, labels)
        calibrate_odds(likelihood, left_out, by_part)
    return best.variance


def tightest_variance(
    likelihood: LocalLikelihood, unit: Float[Tensor, "N N"], labels: Int[Tensor, "N"]
) -> float:
    """The variance with the highest bound for this covariance of a unit one."""
    best = VARIANCES[0], highest_bound(likelihood, VARIANCES[0] * unit, labels)
    for variance in VARIANCES[1:]:
        found = highest_bound(likelihood, variance * unit, labels)
        if found <= best[1]:
            break
        best = variance, found
    return best[0]


def highest_bound(
    likelihood: LocalLikelihood, covariance: Float[Tensor, "N N"], labels: Int[Tensor, "N"]
) -> float:
    """The bound of these data, with a variable for each, by the best q and local parameters."""
    prior = Prior(covariance, cholesky(covariance, "the covariance of a subset"))
    found = fixed_point(likelihood, Rows(covariance, covariance.diagonal(), labels), prior)
    mean = prior.factor @ found.q.mean
    kept = [(prior.factor @ scale).square().sum(1) for scale in found.q.scale]
    variance = torch.stack(kept, 1).expand_as(mean)
    bound = likelihood.bound_at(labels, found.local)
    expected = bound.expectation(Moments(mean, mean.square(), variance)).sum()
    return (expected - kl(found.q)).item()


def best_odds(
    likelihood: LocalLikelihood, unit: Float[Tensor, "N N"], labels: Int[Tensor, "N"]
) -> Odds:
    """The best variance for this covariance of a unit one; larger ones only if clearly better."""
    values, vectors = torch.linalg.eigh(unit)
    noise = 1 / likelihood.max_precision
    targets = noise * likelihood.flattest_bound(labels).linear
    turned, squares = vectors.mT @ targets, vectors.square()

    def at(variance: float) -> Odds:
        inverse = 1 / (variance * values.clamp(min=0) + noise)
        a, own = vectors @ (inverse.unsqueeze(1) * turned), squares @ inverse
        f = targets - a / own.unsqueeze(1)
        return Odds(variance, scores_of_best_factor(likelihood, f, labels))

    trials = [at(variance) for variance in VARIANCES]
    return functools.reduce(lambda a, b: b if clearly_better(b.scores, a.scores) else a, trials)


def left_out_predictions(
    likelihood: LocalLikelihood, covariance: Float[Tensor, "N N"], labels: Int[Tensor, "N"]
) -> Prediction:
    """f at each datum, given the labels of the other parts; part by part."""
    places = torch.arange(len(labels), device=labels.device) % NUM_PARTS
    parts = [predicted(likelihood, covariance, labels, places == k) for k in range(NUM_PARTS)]
    return Prediction.concatenated(parts)


def predicted(
    likelihood: LocalLikelihood,
    covariance: Float[Tensor, "N N"],
    labels: Int[Tensor, "N"],
    out: Tensor,
) -> Prediction:
    """f at the data that are left out, from all others."""
    known = covariance[~out][:, ~out]
    prior = Prior(known, cholesky(known, "the covariance of a subset"))
    q = fixed_point(likelihood, Rows(known, known.diagonal(), labels[~out]), prior).q
    whitened = solve_rows(prior.factor, covariance[out][:, ~out])
    mean = whitened @ q.mean
    left = covariance.diagonal()[out] - whitened.square().sum(1)
    kept = [(whitened @ scale).square().sum(1) for scale in q.scale]
    variance = (left.unsqueeze(1) + torch.stack(kept, 1)).clamp(min=0).expand_as(mean)
    return Prediction.exact(mean, variance)
