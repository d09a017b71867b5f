"""The kernel's variance where f is a log-odds, by labels of a subset that are left out in turn.

A bound of softmax is too loose to choose it: it charges every datum for the largest curvature that
there is, and would rather have an f near 0. Nor is there a closed form of leaving out one datum, as
Gaussian noise has: the others' local parameters have seen it. So a subset is cut into parts, each
predicted from all others; no inducing variables stand in between.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.kernels import RBF
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP, mean_pairs
from orbitgp.posterior.algebra import cholesky, solve_rows
from orbitgp.posterior.inducing import average_covariance
from orbitgp.training.fixed_point import Prior, Rows, fixed_point
from orbitgp.training.subsets import FEW_SAMPLES, NUM_DATA
from orbitgp.values import Prediction

VARIANCES = tuple(4.0**k for k in range(7))
NUM_PARTS = 4
JITTER = 1e-6


@torch.no_grad()
def settle_variance(
    model: InvariantGP, x: Tensor, y: Tensor, *, generator: torch.Generator
) -> None:
    """Take the variance under which left-out labels are likeliest."""
    kernel, likelihood = model.kernel, model.likelihood
    assert isinstance(kernel, RBF)
    assert isinstance(likelihood, LocalLikelihood)
    order = torch.randperm(len(x), generator=generator)[:NUM_DATA].to(x.device)
    labels = likelihood.labels_of(y[order])
    sample = mean_pairs.draw(model, x[order], FEW_SAMPLES, generator)
    unit = average_covariance(kernel, sample.points) / kernel.variance.item()
    unit.diagonal().add_(JITTER * unit.diagonal().mean())
    best, highest = VARIANCES[0], float("-inf")
    for variance in VARIANCES:
        score = left_out_score(likelihood, variance * unit, labels)
        if score <= highest:
            break
        best, highest = variance, score
    kernel.variance = best


@torch.no_grad()
def left_out_score(
    likelihood: LocalLikelihood, covariance: Float[Tensor, "N N"], labels: Int[Tensor, "N"]
) -> float:
    """Mean log probability of each label, given those of the other parts."""
    places, total = torch.arange(len(labels), device=labels.device), 0.0
    for part in range(NUM_PARTS):
        out = places % NUM_PARTS == part
        chances = likelihood.class_probabilities(predicted(likelihood, covariance, labels, out))
        own = chances[torch.arange(len(chances)), labels[out]]
        total += own.clamp(min=torch.finfo(own.dtype).tiny).log().sum().item()
    return total / len(labels)


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
