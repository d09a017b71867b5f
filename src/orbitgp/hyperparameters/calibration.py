"""Class probabilities that are right on average, from predictions of data that were left out."""

import functools
import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.hyperparameters.grid import highest
from orbitgp.likelihoods.base import Likelihood, log_of_own
from orbitgp.likelihoods.gaussian import OneHotGaussian
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.values import Prediction

FACTORS = tuple(2 ** (k / 2) for k in range(-14, 5))
EXCESSES = (0.0, *(2 ** (k / 2) for k in range(-22, -3)))
USUAL = (1 / 16, 2**-5.5)
"""Where the search for both begins."""
ODDS_FACTORS = tuple(2 ** (k / 4) for k in range(-12, 25))
ODDS_SPREADS = (1.0, 0.25, 0.0625, 0.0)
NEGLIGIBLE = 0.005
"""Nats a datum for which nobody gives up a variance, or a tighter bound."""


def calibrate(likelihood: Likelihood, left_out: Prediction, y: Tensor) -> None:
    """Calibrate the likelihood of classes; one of numbers has nothing to calibrate."""
    if isinstance(likelihood, OneHotGaussian):
        calibrate_codes(likelihood, left_out, y)
    elif isinstance(likelihood, LocalLikelihood):
        calibrate_odds(likelihood, left_out, likelihood.labels_of(y))


@torch.no_grad()
def calibrate_codes(
    likelihood: OneHotGaussian, left_out: Prediction, labels: Int[Tensor, "N"]
) -> None:
    """Take the variance of a new code under which these labels are likeliest."""

    def score(places: tuple[int, ...]) -> float:
        likelihood.spread.fill_(FACTORS[places[0]])
        likelihood.excess.fill_(EXCESSES[places[1]])
        return cautious_scores(likelihood.class_probabilities(left_out), labels).mean().item()

    start = FACTORS.index(USUAL[0]), EXCESSES.index(USUAL[1])
    score(highest(score, start, (len(FACTORS), len(EXCESSES))))


@torch.no_grad()
def calibrate_odds(
    likelihood: LocalLikelihood, left_out: Prediction, labels: Int[Tensor, "N"]
) -> None:
    """Take the factors of f and of its variance under which these labels are likeliest.

    Less variance than there is only if that is clearly better.
    """

    def scores(spread: float, factor: float) -> Float[Tensor, "N"]:
        likelihood.spread.fill_(spread)
        likelihood.factor.fill_(factor)
        return cautious_scores(likelihood.class_probabilities(left_out), labels)

    def best_factor(spread: float) -> float:
        def score(place: tuple[int, ...]) -> float:
            return scores(spread, ODDS_FACTORS[place[0]]).mean().item()

        return ODDS_FACTORS[highest(score, (ODDS_FACTORS.index(1.0),), (len(ODDS_FACTORS),))[0]]

    trials = [(spread, best_factor(spread)) for spread in ODDS_SPREADS]
    found = [(scores(*trial), trial) for trial in trials]
    best = functools.reduce(lambda a, b: b if clearly_better(b[0], a[0]) else a, found)
    scores(*best[1])


def cautious_scores(
    probabilities: Float[Tensor, "N C"], labels: Int[Tensor, "N"]
) -> Float[Tensor, "N"]:
    """log p of each label, and for each the share of one more datum whose label is any.

    Where all labels that were left out are right, nothing else would bound how sure to be.
    """
    any_label = probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log().mean(1)
    return log_of_own(probabilities, labels) + any_label / len(labels)


def clearly_better(scores: Float[Tensor, "N"], than: Float[Tensor, "N"]) -> bool:
    """By more than a standard error, and by something."""
    gain = scores - than
    error = gain.std().item() / math.sqrt(len(gain))
    return gain.mean().item() > max(error, NEGLIGIBLE)
