"""The kernel's variance where f is a log-odds, by labels of a subset that are left out in turn.

A bound of softmax is too loose to choose it: it charges every datum for the largest curvature that
there is, and would rather have an f near 0. Nor is there a closed form of leaving out one datum, as
Gaussian noise has: the others' local parameters have seen it. So a subset is cut into parts, each
predicted from all others; no inducing variables stand in between.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.kernels import RBF
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP
from orbitgp.posterior.algebra import cholesky, solve_rows
from orbitgp.posterior.inducing import average_covariance
from orbitgp.training.fixed_point import Prior, Rows, fixed_point
from orbitgp.training.subsets import subset_sizes
from orbitgp.values import Prediction

VARIANCES = tuple(4.0**k for k in range(7))
NUM_PARTS = 4
JITTER = 1e-6
NEGLIGIBLE = 0.02
"""Nats a datum that are not worth a looser bound."""


@torch.no_grad()
def settle_variance(
    model: InvariantGP, x: Tensor, y: Tensor, *, generator: torch.Generator
) -> None:
    """Take the variance under which left-out labels are likeliest.

    A larger one, whose bound is looser, only if it is clearly better: a hundred times the variance
    and a predictive variance that grows with it may say nearly the same of every label.
    """
    kernel, likelihood = model.kernel, model.likelihood
    assert isinstance(kernel, RBF)
    assert isinstance(likelihood, LocalLikelihood)
    num_data, num_samples = subset_sizes(len(x), dense=False)
    order = torch.randperm(len(x), generator=generator)[:num_data].to(x.device)
    labels = likelihood.labels_of(y[order])
    noise = model.orbit_noise(1, num_samples, generator=generator, group_size=num_samples)
    points = model.sample_orbit_at(x[order], noise).points
    unit = average_covariance(kernel, points) / kernel.variance.item()
    unit.diagonal().add_(JITTER * unit.diagonal().mean())
    best, highest = VARIANCES[0], left_out_scores(likelihood, VARIANCES[0] * unit, labels)
    for variance in VARIANCES[1:]:
        scores = left_out_scores(likelihood, variance * unit, labels)
        gain = scores - highest
        if gain.mean() <= max(gain.std() / math.sqrt(len(gain)), NEGLIGIBLE):
            break
        best, highest = variance, scores
    kernel.variance = best


@torch.no_grad()
def left_out_scores(
    likelihood: LocalLikelihood, covariance: Float[Tensor, "N N"], labels: Int[Tensor, "N"]
) -> Float[Tensor, "N"]:
    """log probability of each label, given those of the other parts."""
    places = torch.arange(len(labels), device=labels.device)
    scores = torch.empty(len(labels), dtype=torch.float64, device=labels.device)
    for part in range(NUM_PARTS):
        out = places % NUM_PARTS == part
        chances = likelihood.class_probabilities(predicted(likelihood, covariance, labels, out))
        own = chances.gather(1, labels[out].unsqueeze(1)).squeeze(1)
        scores[out] = own.clamp(min=torch.finfo(own.dtype).tiny).log()
    return scores


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
