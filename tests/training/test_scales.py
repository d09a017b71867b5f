"""Scales that are found without another pass, against passes at those scales."""

import pytest
import torch

from orbitgp import (
    RBF,
    Affine,
    Gaussian,
    InducingPosterior,
    InvariantGP,
    mean_pairs,
    solve,
    unbiased_pairs,
)
from orbitgp import stream_statistics as take_statistics
from orbitgp.posterior.closed_form import expected_log_likelihood
from orbitgp.posterior.inducing import kl
from orbitgp.training.scales import best_scales, settle
from tests.conftest import assert_close

pytestmark = pytest.mark.usefixtures("float64")


def problem(generator, variance=1.0, noise=0.2, lengthscale=2.0):
    x = torch.rand(40, 5, 5, generator=generator)
    y = torch.stack([x.mean((1, 2)) * 9, x[:, 2, 2]], 1)
    y = y - y.mean(0) + 0.1 * torch.randn(40, 2, generator=generator)
    model = InvariantGP(
        orbit=Affine(-0.1, 0.1),
        kernel=RBF(variance, lengthscale),
        posterior=InducingPosterior(x.flatten(1)[:20], 2, jitter=0.0),
        likelihood=Gaussian(noise),
    )
    return model, x, y


def both(model, x, y, seed=3):
    draws = {"num_samples": 4, "generator": torch.Generator().manual_seed(seed)}
    fitting = take_statistics(model, [(x, y)], weigh=mean_pairs, **draws)
    fresh = take_statistics(model, [(x, y)], weigh=unbiased_pairs(2), **draws)
    return fitting, fresh, model.posterior.prior_factor(model.kernel).detach()


@pytest.mark.parametrize(("variance", "ratio"), [(1.0, 1.0), (0.2, 4.0), (20.0, 0.25)])
def test_scales_are_those_of_a_model_that_has_them(generator, variance, ratio):
    model, x, y = problem(generator, variance=variance)
    found = best_scales(*both(model, x, y), 0.2, ratios=(ratio,) * (ratio != 1))
    assert found.variance / found.noise == pytest.approx(ratio)
    model.kernel.variance = variance * found.variance
    model.likelihood.assign_noise(torch.tensor([0.2 * found.noise]))
    fitting, fresh, factor = both(model, x, y)
    q = solve(fitting, factor)
    assert_close(found.q.mean, q.mean, tolerance=1e-8)
    assert_close(found.q.scale, q.scale, tolerance=1e-8)
    bound = expected_log_likelihood(fresh, q, factor) - kl(q)
    assert found.bound == pytest.approx(bound.item(), rel=1e-9)


def test_the_noise_is_the_best_one(generator):
    model, x, y = problem(generator)
    fitting, fresh, factor = both(model, x, y)
    found = best_scales(fitting, fresh, factor, 0.2, ratios=())

    def bound(n):
        model.kernel.variance = n  # v/n stays at 1
        model.likelihood.assign_noise(torch.tensor([0.2 * n]))
        fitting, fresh, factor = both(model, x, y)
        q = solve(fitting, factor)
        return (expected_log_likelihood(fresh, q, factor) - kl(q)).item()

    assert found.bound >= max(bound(found.noise * factor) for factor in (0.9, 1.1)) - 1e-9


def test_settling_brings_a_wrong_lengthscale_back(generator):
    """From three times too long or too short, by evidence."""
    x = torch.rand(150, 5, 5, generator=generator)
    y = torch.sin(4 * x.flatten(1)[:, :2]).sum(1, keepdim=True)
    scales = {}
    for start in (0.5, 5.0):
        model, _, _ = problem(generator, lengthscale=start)
        model.posterior = InducingPosterior(x.flatten(1)[:20], 1)
        settle(model, x, y, density=0.5, num_samples=4, generator=generator)
        scales[start] = model.kernel.lengthscale.item()
    assert scales[0.5] > 0.7
    assert scales[5.0] < 3.6
    assert 0.5 < scales[0.5] / scales[5.0] < 2
