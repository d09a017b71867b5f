"""Class probabilities that are right on average, from leave-one-out predictions of training data.

A Gaussian posterior knows what it would have said of a datum that it had not seen (Rasmussen and
Williams 2006, 5.4.2): with μ and s the mean and the retained variance at x_n, and the leverage
h = s/σ² < 1,

    μ₋ₙ = (μ − h y_n) / (1 − h),     s₋ₙ = s / (1 − h).

So one factor of the predictive variance can be chosen by the probability of left-out labels. That
holds for the orbit points that the datum was fitted with, so these are drawn again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from orbitgp.likelihoods.gaussian import OneHotGaussian
from orbitgp.model import InvariantGP, mean_pairs
from orbitgp.objective import stream_samples
from orbitgp.posterior.algebra import solve_rows
from orbitgp.training.passes import CHUNK, Examples, chunk_generator
from orbitgp.training.solving import NUM_VARIANCES, Solved
from orbitgp.values import OrbitSample, Prediction

FACTORS = tuple(2 ** (k / 2) for k in range(-12, 5))
MAX_LEVERAGE = 0.999

Piece = tuple[OrbitSample, Tensor, Tensor]
"""Orbit points of some data, their inputs and their targets."""


@torch.no_grad()
def calibrate(
    solved: Solved,
    examples: Examples,
    others: Int[Tensor, "K"],
    *,
    generator: torch.Generator,
) -> None:
    """Take the factor of the variance of a new code under which left-out labels are likeliest.

    `others` are the data without an inducing variable of their own, which are like those still to
    come; where there are none, or nobody knows them, all serve.
    """
    likelihood = solved.model.likelihood
    assert isinstance(likelihood, OneHotGaussian)
    rows = torch.ones(examples.num_data, dtype=torch.bool)
    if len(others) and len(examples.x) == examples.num_data:
        rows = torch.zeros_like(rows)
        rows[others.cpu()] = True
    part = NUM_VARIANCES / rows.sum().item()
    rows &= torch.rand(len(rows), generator=generator) < part
    if not rows.any():
        rows[:] = True
    pieces = list(gathered(_some(fitted_pieces(solved, examples), rows)))
    prediction = left_out(solved.model, pieces, solved.prior_factor)
    labels = torch.cat([y for _, _, y in pieces]).long()
    own = torch.arange(len(labels)), labels

    def log_probability(factor: float) -> float:
        likelihood.spread.fill_(factor)
        found = likelihood.class_probabilities(prediction)[own]
        return found.clamp(min=torch.finfo(found.dtype).tiny).log().mean().item()

    likelihood.spread.fill_(max(FACTORS, key=log_probability))


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
