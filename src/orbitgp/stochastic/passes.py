"""Passes over all data with the final hyperparameters: the best q(u), its bound, left-out data."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.distributed.group import Group
from orbitgp.inference.inducing import without_own
from orbitgp.inference.passes import Examples, check_coverage, chunk_generator
from orbitgp.kernels import average_variances
from orbitgp.model import InvariantGP, Pairs, mean_pairs, unbiased_pairs
from orbitgp.posterior.algebra import solve_rows
from orbitgp.posterior.inducing import averaged, cross_covariance, kl, moments
from orbitgp.stochastic.natural import NaturalParameters
from orbitgp.stochastic.terms import natural_terms
from orbitgp.values import OrbitSample, Prediction, WhitenedGaussian


@torch.no_grad()
def best_q(
    model: InvariantGP, examples: Examples, *, num_draws: int, seed: int, group: Group
) -> NaturalParameters:
    """The best q(u) for all data and the hyperparameters as they are, in one pass."""
    factor = model.posterior.prior_factor(model.kernel)
    size, num_outputs = len(factor), model.posterior.num_outputs
    gram = factor.new_zeros(len(model.posterior.scale), size, size)
    linear, count = factor.new_zeros(size, num_outputs), factor.new_zeros(1)
    for chunk in examples.chunks(group.rank, group.size):
        sample = _drawn(model, chunk.x, num_draws, mean_pairs, seed, chunk.number)
        bound = model.likelihood.quadratic_bound(chunk.x, chunk.y)
        own_gram, own_linear = natural_terms(model, factor, sample, bound, mean_pairs)
        gram += own_gram
        linear += own_linear
        count += len(chunk.x)
    group.add_(gram, linear, count)
    check_coverage(count.item(), examples.num_data)
    return NaturalParameters.optimum(gram, linear)


@torch.no_grad()
def bound_of_all(
    model: InvariantGP,
    q: WhitenedGaussian,
    examples: Examples,
    *,
    num_draws: int,
    group_size: int,
    seed: int,
    group: Group,
) -> tuple[float, float]:
    """The bound of all data in nats, an unbiased estimate, and its standard error.

    Two halves of the draws of each input estimate its term. Their difference says how much the mean
    of both depends on the draws.
    """
    factor, pairs = model.posterior.prior_factor(model.kernel), unbiased_pairs(group_size)
    sums = factor.new_zeros(3)
    for chunk in examples.chunks(group.rank, group.size):
        likelihood_bound = model.likelihood.quadratic_bound(chunk.x, chunk.y)
        sample = _drawn(model, chunk.x, 2 * num_draws, pairs, seed, chunk.number)
        halves = []
        for half in _halves(sample):
            covariances = model.covariances(half, pairs)
            whitened = solve_rows(factor, covariances.groups.flatten(0, 1))
            halves.append(likelihood_bound.expectation(moments(covariances, q, whitened)))
        first, second = halves
        variance = 0.25 * (first - second).square().sum()
        sums += torch.stack([0.5 * (first + second).sum(), variance, sums.new_tensor(len(first))])
    group.add_(sums)
    expected, variance, count = sums.tolist()
    check_coverage(count, examples.num_data)
    return expected - kl(q).item(), math.sqrt(variance)


def _halves(sample: OrbitSample) -> tuple[OrbitSample, OrbitSample]:
    """Two halves of the draws; a whole orbit, which has no error, twice.

    They are independent, but for different points of a finite orbit, whose halves differ more than
    independent ones: there the standard error is a little too large.
    """
    if sample.is_whole:
        return sample, sample
    first, second = sample.points.chunk(2, 1)
    return OrbitSample(first, sample.orbit_size), OrbitSample(second, sample.orbit_size)


def _drawn(
    model: InvariantGP, x: Tensor, num_draws: int, pairs: Pairs, seed: int, number: int
) -> OrbitSample:
    """Orbit samples of a chunk, the same whichever process takes it."""
    return pairs.draw(model, x, num_draws, chunk_generator(seed, number))


@torch.no_grad()
def left_out(
    model: InvariantGP,
    q: WhitenedGaussian,
    x: Float[Tensor, "T *event"],
    y: Tensor,
    noise: Float[Tensor, "1 S K"] | None,
    *,
    batch_size: int = 256,
) -> Prediction:
    """Return f at each of these data, as q(u) would have it without that one."""
    factor = model.posterior.prior_factor(model.kernel)
    parts = zip(x.split(batch_size), y.split(batch_size), strict=True)
    return Prediction.concatenated(
        [_left_out(model, q, factor, *part, noise=noise) for part in parts]
    )


def _left_out(
    model: InvariantGP,
    q: WhitenedGaussian,
    factor: Float[Tensor, "M M"],
    x: Float[Tensor, "T *event"],
    y: Tensor,
    *,
    noise: Float[Tensor, "1 S K"] | None,
) -> Prediction:
    sample = model.sample_orbit_at(x, noise)
    points = averaged(model.posterior.points)
    means = cross_covariance(model.kernel, sample, points).double().mean(1)
    whitened = solve_rows(factor, means)
    spreads = [(whitened @ scale).square().sum(1) for scale in q.scale]
    retained = torch.stack(spreads, 1)
    explained = whitened.square().sum(1)
    remaining = (average_variances(model.kernel, sample.points) - explained).clamp(min=0)
    bound = model.likelihood.quadratic_bound(x, y)
    return without_own(bound, whitened @ q.mean, retained, remaining.unsqueeze(1))
