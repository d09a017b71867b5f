"""Inducing variables that are averages of g over pieces of orbits."""

import pytest
import torch

from orbitgp import (
    RBF,
    Gaussian,
    InducingPosterior,
    InvariantGP,
    InvariantKernel,
    coordinate_swap,
    elbo,
)
from orbitgp.kernels import covariance
from orbitgp.posterior.inducing import covariance_with_u
from tests.conftest import assert_close
from tests.models import take_best_q

pytestmark = pytest.mark.usefixtures("float64")


def test_covariances_are_means_over_the_points(generator):
    kernel, z = RBF(0.7, 1.3), torch.randn(4, 3, 2, generator=generator)
    x = torch.randn(5, 2, generator=generator)
    posterior = InducingPosterior(z, 1, jitter=0.0)
    with_u = torch.stack([covariance(kernel, x, z[m]).mean(1) for m in range(4)], 1)
    assert_close(covariance_with_u(kernel, x, z), with_u)
    among = [[covariance(kernel, a, b).mean() for b in z] for a in z]
    kuu = posterior.prior_covariance(kernel)
    assert_close(kuu, torch.stack([torch.stack(row) for row in among]))
    single = InducingPosterior(z[:, :1], 1, jitter=0.0).prior_covariance(kernel)
    assert_close(single, InducingPosterior(z[:, 0], 1, jitter=0.0).prior_covariance(kernel))


def test_kuu_in_blocks_is_kuu(generator, monkeypatch):
    kernel, z = RBF(0.7, 1.3), torch.randn(7, 3, 2, generator=generator)
    whole = InducingPosterior(z, 1).prior_covariance(kernel)
    monkeypatch.setattr("orbitgp.posterior.inducing.BLOCK", 50)
    assert_close(InducingPosterior(z, 1).prior_covariance(kernel), whole)


def test_averages_over_whole_orbits_of_all_data_give_the_exact_evidence(generator):
    """u = f(X): N inducing variables do what points of g take P N for."""
    x = torch.randn(15, 2, generator=generator)
    y = torch.sin(x).sum(1) + 0.1 * torch.randn(15, generator=generator)
    orbit, kernel = coordinate_swap(0, 1, 2), RBF(1.0, 0.8)
    exact = InvariantKernel(kernel, orbit)(x).to_dense() + 0.05 * torch.eye(15)
    log_evidence = torch.distributions.MultivariateNormal(torch.zeros(15), exact).log_prob(y)
    bounds = {}
    for name, points in {"averages": orbit.enumerate(x).points, "points": x}.items():
        model = InvariantGP(
            orbit=orbit,
            kernel=kernel,
            posterior=InducingPosterior(points, 1, jitter=0.0),
            likelihood=Gaussian(0.05),
        )
        take_best_q(model, x, y)
        bound = elbo(model, x, y, num_data=15, num_samples=None, generator=None)
        bounds[name] = bound.value.item()
    assert abs(bounds["averages"] - log_evidence.item()) < 1e-8
    assert bounds["points"] < log_evidence.item() - 1e-3


def test_gradients_reach_points_kernel_and_ranges(generator):
    kernel, z = RBF(0.7, 1.3), torch.randn(3, 2, 2, generator=generator, requires_grad=True)
    x = torch.randn(4, 2, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: covariance_with_u(kernel, a, b), (x, z))
