"""The stochastic bound and its gradient against the closed form of a Gaussian-noise orbit."""

import pytest
import torch

from orbitgp import Gaussian, GaussianNoise, elbo
from orbitgp.model import mean_pairs, unbiased_pairs
from orbitgp.posterior.algebra import whiten_rows
from orbitgp.posterior.inducing import kl, moments
from tests.conftest import assert_mean
from tests.models import random_model
from tests.reference.noise_orbit import exact_moments

pytestmark = pytest.mark.usefixtures("float64")

NUM_BATCHES, COPIES = 200, 100  # 20,000 independent draws of the orbit of each input


def setting(generator):
    """A model and 3 inputs with 2 outputs; the exact bound of all."""
    points = torch.randn(4, 2, generator=generator)
    orbit = GaussianNoise(0.5, event_shape=(2,))
    model = random_model(orbit, generator, points=points, likelihood=Gaussian(0.3))
    x = torch.randn(3, 2, generator=generator)
    y = torch.randn(3, 2, generator=generator)
    return model, x, y


def exact_elbo(model, x, y):
    bound = model.likelihood.quadratic_bound(x, y)
    return bound.expectation(exact_moments(model, x)).sum() - kl(model.posterior.q)


def value_and_gradients(model, bound):
    names, parameters = zip(*model.named_parameters(), strict=True)
    gradients = torch.autograd.grad(bound, parameters)
    pieces = {name: g.flatten() for name, g in zip(names, gradients, strict=True)}
    return {"elbo": bound.detach().reshape(1), **pieces}


@pytest.mark.parametrize(("num_samples", "group_size"), [(2, 1), (4, 1), (4, 2)])
def test_bound_and_every_gradient_are_unbiased(num_samples, group_size, generator):
    model, x, y = setting(generator)
    expected = value_and_gradients(model, exact_elbo(model, x, y))
    draws = []
    for _ in range(NUM_BATCHES):
        # a batch of copies is the mean of that many independent estimates
        estimate = elbo(
            model,
            x.repeat(COPIES, 1),
            y.repeat(COPIES, 1),
            num_data=3 * COPIES,
            num_samples=num_samples,
            generator=generator,
            group_size=group_size,
        )
        value = estimate.expected_log_likelihood / COPIES - estimate.kl
        draws.append(value_and_gradients(model, value))
    for name, value in expected.items():
        moving = (value != 0) | (draws[0][name] != 0)  # below U's diagonal all is exactly 0
        assert_mean(torch.stack([d[name] for d in draws])[:, moving], value[moving], name)


def repeated_moments(model, x, pairs, generator, num_draws=3000):
    """Independent estimates of the moments, each [num_draws, N, ·]."""
    with torch.no_grad():
        kuu = model.posterior.prior_covariance(model.kernel)
        sample = model.sample_orbit(x.repeat(num_draws, 1), 2, generator=generator)
        covariances = model.covariances(sample, pairs)
        whitened = whiten_rows(kuu, covariances.groups.flatten(0, 1))
        estimates = moments(covariances, model.posterior.q, whitened)
    names = ("mean", "mean_square", "variance")
    return {name: getattr(estimates, name).unflatten(0, (num_draws, -1)) for name in names}


def test_the_biased_weights_would_be_caught(generator):
    """The same z-test rejects the plug-in estimate, so it can fail."""
    model, x, _ = setting(generator)
    expected = exact_moments(model, x)
    for name, draws in repeated_moments(model, x, unbiased_pairs(1), generator).items():
        assert_mean(draws, getattr(expected, name), name)
    plug_in = repeated_moments(model, x, mean_pairs, generator)
    assert_mean(plug_in["mean"], expected.mean, "mean of the plug-in")
    with pytest.raises(AssertionError, match="z ="):
        assert_mean(plug_in["variance"], expected.variance, "variance of the plug-in")


def test_unbiased_variance_estimates_do_go_negative(generator):
    """They must: clamping them would bias the bound."""
    model, _, _ = setting(generator)
    model.posterior.scale.data.mul_(0.01)
    draws = repeated_moments(model, model.posterior.points, unbiased_pairs(1), generator)
    assert (draws["variance"] < 0).any()
