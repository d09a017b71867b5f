"""Evenly spread draws: uniform, independent between groups, and less noisy within."""

import pytest
import torch

from orbitgp import Affine, InputError, compose
from orbitgp.orbits.base import UNIT, even_uniforms
from orbitgp.orbits.groups import Mirror
from orbitgp.ustatistics import pair_mean_of_inner, pair_weights
from tests.conftest import assert_mean


def smooth(u):
    """A function on the cube with mean Π (e − 1) / 1, not symmetric about its middle."""
    return torch.exp(u.double()).prod(-1)


MEAN = torch.tensor((torch.e - 1) ** 3, dtype=torch.float64)


def test_every_point_is_uniform(generator):
    draws = even_uniforms((20_000, 8, 3), 4, generator=generator).double()
    assert draws.min() >= 0
    assert draws.max() < 1
    assert torch.equal((draws * UNIT).round(), draws * UNIT)
    powers = torch.cat([draws[:, 0], draws[:, 5] ** 2, draws[:, 7] ** 3], 1)
    assert_mean(powers, torch.tensor([1 / 2] * 3 + [1 / 3] * 3 + [1 / 4] * 3), "moments")


def test_group_means_are_unbiased_and_less_noisy(generator):
    even = smooth(even_uniforms((4000, 16, 3), 16, generator=generator)).mean(1)
    plain = smooth(even_uniforms((4000, 16, 3), 1, generator=generator)).mean(1)
    assert_mean(even, MEAN, "even")
    assert_mean(plain, MEAN, "independent")
    assert even.var() < plain.var() / 10


def test_pairs_across_groups_are_unbiased_and_within_are_not(generator):
    """Groups are independent of each other, so cross products estimate the squared mean."""
    values = smooth(even_uniforms((20_000, 8, 3), 4, generator=generator))
    groups = values.unflatten(1, (2, 4)).sum(2).unsqueeze(-1)
    across = pair_mean_of_inner(groups, pair_weights(8, group_size=4))
    assert_mean(across, MEAN**2, "across")
    ones = pair_mean_of_inner(values.unsqueeze(-1), pair_weights(8, group_size=1))
    with pytest.raises(AssertionError):
        assert_mean(ones, MEAN**2, "all pairs, as if the draws were independent")


def test_orbits_pass_groups_on(generator):
    orbit = compose(Mirror(), Affine(-0.1, 0.1))
    noise = orbit.noise(50, 8, generator=generator, group_size=8)
    assert noise.shape == (50, 8, 7)
    strata = (noise[..., 1:] * 8).long().sort(1).values
    assert torch.equal(strata, torch.arange(8)[None, :, None].expand(50, 8, 6))
    with pytest.raises(InputError, match="multiple of group_size"):
        orbit.sample(torch.rand(2, 5, 5), 6, generator=generator, group_size=4)
