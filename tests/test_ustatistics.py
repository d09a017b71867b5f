"""The pair estimates against exact double means, by enumerating every sample: no Monte Carlo."""

import itertools
import math

import pytest
import torch

from orbitgp.errors import InputError
from orbitgp.ustatistics import (
    group_sums,
    mean_weights,
    pair_gram,
    pair_mean,
    pair_mean_of_products,
    pair_weights,
)
from tests.conftest import assert_close

P = 6


def schemes():
    """(S, G, P of the formula): subsets and whole orbits, and distributions (P = ∞)."""
    for samples in range(2, P + 1):
        for group in range(1, samples + 1):
            if samples % group == 0:
                if group < samples or samples == P:
                    yield samples, group, P
                if group < samples:
                    yield samples, group, math.inf


def all_draws(samples, size):
    """Every ordered draw of S of the P points, each as likely as the next."""
    if size == math.inf:  # independent draws
        return torch.tensor(list(itertools.product(range(P), repeat=samples)))
    return torch.tensor(list(itertools.permutations(range(P), samples)))


@pytest.mark.parametrize(("samples", "group", "size"), list(schemes()))
def test_expectation_over_every_draw_is_the_double_mean(samples, group, size, generator):
    vectors = torch.randn(P, 3, generator=generator, dtype=torch.float64)  # k(Z, x_a), M = 3
    pairs = torch.randn(P, P, generator=generator, dtype=torch.float64)  # r(x_a, x_a')
    weights = pair_weights(samples, orbit_size=size, group_size=group)
    draws = all_draws(samples, size)

    estimates = pair_mean(pairs[draws[:, :, None], draws[:, None, :]], weights)
    assert_close(estimates.mean(), pairs.mean(), tolerance=1e-12)

    groups = group_sums(vectors[draws], weights.group_size)
    squares = pair_mean_of_products(groups, weights)
    assert_close(squares.mean(0), vectors.mean(0) ** 2, tolerance=1e-12)

    precision = torch.ones(len(draws), 1, dtype=torch.float64)
    gram = pair_gram(groups, precision, weights)[0] / len(draws)
    mean = vectors.mean(0)
    assert_close(gram, mean.outer(mean), tolerance=1e-12)


@pytest.mark.parametrize("samples", [2, 3, 5])
def test_group_size_one_is_the_formula_of_the_paper(samples):
    weights = pair_weights(samples, orbit_size=P)
    # App. B (8), divided by P² since ours are means
    assert weights.across == pytest.approx(P * (P - 1) / (samples * (samples - 1)) / P**2)
    assert weights.within == pytest.approx(P / samples / P**2)
    limit = pair_weights(samples)
    assert (limit.across, limit.within) == (pytest.approx(1 / (samples * (samples - 1))), 0)


def test_whole_orbit_weighs_every_pair_alike():
    for group in (1, 2, 3, 6):
        weights = pair_weights(P, orbit_size=P, group_size=group)
        assert (weights.across, weights.within) == (pytest.approx(1 / P**2),) * 2


@pytest.mark.parametrize("group", [1, 2, 4])
def test_uses_agree_with_slow_loops(group, generator):
    vectors = torch.randn(5, 8, 3, generator=generator, dtype=torch.float64)
    precision = torch.rand(5, 2, generator=generator, dtype=torch.float64)
    weights = pair_weights(8, group_size=group)
    slow = torch.zeros(2, 3, 3, dtype=torch.float64)
    squares = torch.zeros(5, 3, dtype=torch.float64)
    for n, s, t in itertools.product(range(5), range(8), range(8)):
        weight = weights.within if s // group == t // group else weights.across
        product = vectors[n, s].outer(vectors[n, t])
        slow += weight * precision[n][:, None, None] * product
        squares[n] += weight * product.diagonal()
    groups = group_sums(vectors, weights.group_size)
    assert_close(pair_gram(groups, precision, weights), slow)
    assert_close(pair_mean_of_products(groups, weights), squares)


def test_mean_weights_give_a_positive_gram(generator):
    vectors = torch.randn(4, 3, 10, generator=generator, dtype=torch.float64)
    weights = mean_weights(3)
    gram = pair_gram(group_sums(vectors, weights.group_size), torch.ones(4, 1).double(), weights)[0]
    assert torch.linalg.eigvalsh(gram).min() > -1e-12
    unbiased = pair_weights(3)
    gram = pair_gram(group_sums(vectors, unbiased.group_size), torch.ones(4, 1).double(), unbiased)[
        0
    ]
    assert torch.linalg.eigvalsh(gram).min() < -1e-3  # why q(u) is not fitted with these


@pytest.mark.parametrize(
    ("samples", "arguments", "message"),
    [
        (1, {}, "at least 2"),
        (7, {"orbit_size": 6}, "at most 6"),
        (6, {"group_size": 4}, "divide"),
        (4, {"group_size": 4}, "two groups"),
        (0, {}, "divide"),
    ],
)
def test_impossible_weights_say_why(samples, arguments, message):
    with pytest.raises(InputError, match=message):
        pair_weights(samples, **arguments)
