"""Scales where f is a log-odds, by labels of a subset that are left out in turn.

A bound of softmax is too loose to choose them: it charges every datum for the largest curvature
that there is, and would rather have an f near 0. Nor is there a closed form of leaving out one
datum, as Gaussian noise has: the others' local parameters have seen it. So a subset is cut into
parts, each predicted from all others; no inducing variables stand in between.
"""

import functools
import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.kernels import RBF
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP
from orbitgp.posterior.algebra import cholesky, solve_rows
from orbitgp.posterior.inducing import average_covariance
from orbitgp.training.fixed_point import Prior, Rows, fixed_point
from orbitgp.training.subsets import MAX_POWER, STEP, subset_sizes
from orbitgp.values import Prediction

VARIANCES = tuple(4.0**k for k in range(7))
SPREADS = (1.0, *(4.0**-k for k in range(1, 5)), 0.0)
NUM_PARTS = 4
JITTER = 1e-6
NEGLIGIBLE = 0.02
"""Nats a datum that are worth neither a looser bound nor less variance than there is."""


@dataclass(frozen=True)
class Odds:
    """A kernel variance, a factor of the predictive variance, and log p of each left-out label."""

    variance: float
    spread: float
    scores: Float[Tensor, "N"]

    def clearly_better_than(self, other: "Odds") -> bool:
        """By more than a standard error, and by something."""
        gain = self.scores - other.scores
        error = gain.std().item() / math.sqrt(len(gain))
        return gain.mean().item() > max(error, NEGLIGIBLE)


@torch.no_grad()
def settle_odds(model: InvariantGP, x: Tensor, y: Tensor, *, generator: torch.Generator) -> None:
    """Take the lengthscale, variance and spread under which left-out labels are likeliest.

    Their best lengthscale is not that of codes: least squares hold every f to its code, while
    log-odds may grow where a kernel is long, and leave to few data what many should say.
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

    def trial(power: int) -> Odds:
        kernel.lengthscale = length * STEP**power
        unit = average_covariance(kernel, points) / kernel.variance.item()
        unit.diagonal().add_(JITTER * unit.diagonal().mean())
        return best_odds(likelihood, unit, labels)

    best = trial(power)
    for way in (1, -1):  # shorter; or longer, if not shorter
        while 0 <= way * power < MAX_POWER:
            found = trial(power + way)
            if found.scores.mean() <= best.scores.mean():
                break
            power, best = power + way, found
    kernel.lengthscale = length * STEP**power
    kernel.variance = best.variance
    likelihood.spread.fill_(best.spread)


def best_odds(
    likelihood: LocalLikelihood, unit: Float[Tensor, "N N"], labels: Int[Tensor, "N"]
) -> Odds:
    """The best variance for this covariance of a unit one, and the best spread with it.

    A larger one, whose bound is looser, only if it is clearly better.
    """
    best = odds_at(likelihood, unit, labels, VARIANCES[0])
    for variance in VARIANCES[1:]:
        found = odds_at(likelihood, unit, labels, variance)
        if not found.clearly_better_than(best):
            break
        best = found
    return best


def odds_at(
    likelihood: LocalLikelihood,
    unit: Float[Tensor, "N N"],
    labels: Int[Tensor, "N"],
    variance: float,
) -> Odds:
    """This variance with the spread that suits it: 1, unless less is clearly better."""
    left_out = left_out_predictions(likelihood, variance * unit, labels)
    by_part = torch.cat([labels[k::NUM_PARTS] for k in range(NUM_PARTS)])
    trials = [
        Odds(variance, spread, label_scores(likelihood, left_out, by_part, spread))
        for spread in SPREADS
    ]
    return functools.reduce(lambda a, b: b if b.clearly_better_than(a) else a, trials)


def left_out_predictions(
    likelihood: LocalLikelihood, covariance: Float[Tensor, "N N"], labels: Int[Tensor, "N"]
) -> Prediction:
    """f at each datum, given the labels of the other parts; part by part."""
    places = torch.arange(len(labels), device=labels.device) % NUM_PARTS
    parts = [predicted(likelihood, covariance, labels, places == k) for k in range(NUM_PARTS)]
    return Prediction.concatenated(parts)


def label_scores(
    likelihood: LocalLikelihood, prediction: Prediction, labels: Int[Tensor, "N"], spread: float
) -> Float[Tensor, "N"]:
    """log probability of each label."""
    wide = replace(prediction, variance=spread * prediction.variance)
    own = likelihood.mean_probabilities(wide).gather(1, labels.unsqueeze(1)).squeeze(1)
    return own.clamp(min=torch.finfo(own.dtype).tiny).log()


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
