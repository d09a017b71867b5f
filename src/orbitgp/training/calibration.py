"""Class probabilities that are right on average, from leave-one-out predictions of training data.

A Gaussian posterior knows what it would have said of a datum that it had not seen (Rasmussen and
Williams 2006, 5.4.2): with μ and s the mean and the retained variance at x_n, and the leverage
h = s/σ² < 1,

    μ₋ₙ = (μ − h y_n) / (1 − h),     s₋ₙ = s / (1 − h).

So the variance that suits class probabilities can be chosen by the probability of left-out labels.
That holds for the orbit points that the datum was fitted with, so these are drawn again. A mean
with a variable for every datum (`whole_mean.py`) leaves out some of them and solves once more.
"""

import functools
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from orbitgp.likelihoods.base import log_of_own
from orbitgp.likelihoods.gaussian import OneHotGaussian
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP, mean_pairs
from orbitgp.objective import stream_samples
from orbitgp.posterior.algebra import solve_rows
from orbitgp.training.climbing import highest
from orbitgp.training.passes import CHUNK, Examples, chunk_generator
from orbitgp.training.solving import NUM_VARIANCES, Solved
from orbitgp.values import OrbitSample, Prediction

FACTORS = tuple(2 ** (k / 2) for k in range(-14, 5))
EXCESSES = (0.0, *(2 ** (k / 2) for k in range(-22, -3)))
USUAL = (1 / 16, 2**-5.5)
"""Where the search for both begins."""
ODDS_FACTORS = tuple(2 ** (k / 4) for k in range(-12, 25))
ODDS_SPREADS = (1.0, 0.25, 0.0625, 0.0)
NEGLIGIBLE = 0.005
"""Nats a datum for which nobody gives up a variance, or a tighter bound."""

MAX_LEVERAGE = 0.999

Piece = tuple[OrbitSample, Tensor, Tensor]
"""Orbit points of some data, their inputs and their targets."""


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


def scores_of_best_factor(
    likelihood: LocalLikelihood, f: Float[Tensor, "N C"], labels: Int[Tensor, "N"]
) -> Float[Tensor, "N"]:
    """log p of each label, were f known, with the factor of f under which all are likeliest."""
    trials = [log_of_own(likelihood.log_probabilities(c * f).exp(), labels) for c in ODDS_FACTORS]
    return max(trials, key=lambda scores: scores.mean().item())


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


@torch.no_grad()
def left_out_codes(
    solved: Solved, examples: Examples, rows: Int[Tensor, "K"], *, generator: torch.Generator
) -> tuple[Prediction, Int[Tensor, "L"]]:
    """f at these data as q(u) would have it without each, and their labels; in order of the data.

    Of a stream, whose rows nobody knows, some serve.
    """
    chosen = torch.zeros(examples.num_data, dtype=torch.bool)
    if len(examples.x) == examples.num_data:
        chosen[rows.cpu()] = True
    else:
        part = NUM_VARIANCES / examples.num_data
        chosen = torch.rand(examples.num_data, generator=generator) < part
        if not chosen.any():
            chosen[:] = True
    pieces = list(gathered(_some(fitted_pieces(solved, examples), chosen)))
    labels = torch.cat([y for _, _, y in pieces]).long()
    return left_out(solved.model, pieces, solved.prior_factor), labels


def fitted_pieces(solved: Solved, examples: Examples) -> Iterator[Piece]:
    """All data with the orbit points that they were fitted with."""
    keyed = (
        (chunk.x, chunk.y, chunk_generator(solved.seed, chunk.number))
        for chunk in examples.chunks(0, 1)
    )
    return stream_samples(solved.model, keyed, num_samples=solved.num_samples, weigh=mean_pairs)


def _some(pieces: Iterable[Piece], rows: Bool[Tensor, "N"]) -> Iterator[Piece]:
    """These rows of all data, which the pieces hold in order."""
    start = 0
    for sample, x, y in pieces:
        chosen = rows[start : start + len(x)].to(x.device)
        start += len(x)
        if chosen.any():
            yield replace(sample, points=sample.points[chosen]), x[chosen], y[chosen]


def gathered(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The same data in pieces of `CHUNK` or more: each of them costs a reading of M×M matrices."""
    waiting: list[Piece] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(len(x) for _, x, _ in waiting) >= CHUNK:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(pieces: list[Piece]) -> Piece:
    samples, x, y = zip(*pieces, strict=True)
    points = torch.cat([sample.points for sample in samples])
    return replace(samples[0], points=points), torch.cat(x), torch.cat(y)


@torch.no_grad()
def left_out(
    model: InvariantGP, pieces: Iterable[Piece], prior_factor: Float[Tensor, "M M"]
) -> Prediction:
    """The posterior of f at each of these data, as it would be without that one."""
    q, parts = model.posterior.q, []
    for sample, x, y in pieces:
        covariances = model.covariances(sample, mean_pairs)
        bound = model.likelihood.quadratic_bound(x, y)
        whitened = solve_rows(prior_factor, covariances.mean)
        mean, retained = whitened @ q.mean, (whitened @ q.scale[0]).square().sum(1, keepdim=True)
        unexplained = covariances.variance.unsqueeze(1) - whitened.square().sum(1, keepdim=True)
        leverage = (bound.precision * retained).clamp(max=MAX_LEVERAGE)
        mean = (mean - leverage * bound.targets) / (1 - leverage)
        variance = (unexplained + retained / (1 - leverage)).clamp(min=0).expand_as(mean)
        parts.append(Prediction.exact(mean, variance))
    return Prediction.concatenated(parts)
