"""The bound against GPyTorch's SVGP, and against the exact evidence of InvariantKernel."""

import math
from dataclasses import replace

import gpytorch
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from orbitgp import (
    RBF,
    Gaussian,
    Identity,
    InducingPosterior,
    InputError,
    InvariantGP,
    InvariantKernel,
    SignFlips,
    compose,
    coordinate_swap,
    elbo,
)
from orbitgp.kernels import covariance
from orbitgp.model import unbiased_pairs
from tests.conftest import assert_close
from tests.models import random_model, take_best_q

pytestmark = pytest.mark.usefixtures("float64")


def test_identity_orbit_is_gpytorchs_svgp(generator):
    x = torch.randn(20, 2, generator=generator)
    y = torch.randn(20, generator=generator)
    points = torch.randn(6, 2, generator=generator)
    model = random_model(Identity(), generator, points=points, num_outputs=1, jitter=1e-10)
    model.posterior.log_narrowing.data.zero_()
    ours = elbo(model, x, y, num_data=100, num_samples=1, generator=generator)

    class Svgp(gpytorch.models.ApproximateGP):
        def __init__(self):
            q = gpytorch.variational.CholeskyVariationalDistribution(6)
            strategy = gpytorch.variational.VariationalStrategy(
                self, points, q, jitter_val=1e-10 * 1.7
            )
            super().__init__(strategy)
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            mean = torch.zeros(x.shape[:-1])
            return gpytorch.distributions.MultivariateNormal(mean, self.kernel(x))

    theirs = Svgp()
    theirs.kernel.outputscale, theirs.kernel.base_kernel.lengthscale = 1.7, 0.8
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    likelihood.noise = 0.3
    q, strategy = model.posterior.q, theirs.variational_strategy
    strategy.variational_params_initialized.fill_(1)
    strategy._variational_distribution.variational_mean.data = q.mean.detach()[:, 0]
    root = torch.linalg.cholesky(q.scale[0] @ q.scale[0].T).detach()
    strategy._variational_distribution.chol_variational_covar.data = root
    mll = gpytorch.mlls.VariationalELBO(likelihood, theirs, num_data=100)
    expected = 100 * mll(theirs(x), y)
    print(f"ours {ours.value.item():.9f}, GPyTorch {expected.item():.9f}")
    assert_close(ours.value, expected, tolerance=1e-6)
    assert_close(ours.kl, strategy.kl_divergence(), tolerance=1e-6)


def log_evidence(kernel, noise, x, y):
    """log N(y; 0, Kff + σ²I), exactly."""
    kff = covariance(kernel, x, x) + noise * torch.eye(len(x))
    normal = torch.distributions.MultivariateNormal(torch.zeros(len(x)), kff)
    return normal.log_prob(y)


def symmetric_data(generator, num_data=12):
    x = torch.randn(num_data, 2, generator=generator)
    return x, torch.sin(2 * x.sum(1)) + 0.1 * torch.randn(num_data, generator=generator)


def invariant_model(orbit, points, noise=0.05, jitter=1e-9):
    return InvariantGP(
        orbit=orbit,
        kernel=RBF(1.3, 0.9),
        posterior=InducingPosterior(points, 1, jitter=jitter),
        likelihood=Gaussian(noise),
    )


ORBITS = [coordinate_swap(0, 1, 2), compose(coordinate_swap(0, 1, 2), SignFlips(0, 1))]


@pytest.mark.parametrize("orbit", ORBITS)
def test_inducing_points_on_every_orbit_point_give_the_exact_evidence(orbit, generator):
    x, y = symmetric_data(generator)
    points = orbit.enumerate(x).points.flatten(0, 1).unique(dim=0)
    model = invariant_model(orbit, points)
    take_best_q(model, x, y)
    bound = elbo(model, x, y, num_data=12, num_samples=None, generator=None).value
    exact = log_evidence(InvariantKernel(model.kernel, orbit), model.likelihood.noise, x, y)
    print(f"bound {bound.item():.6f}, evidence {exact.item():.6f}")
    assert abs(bound - exact) < 1e-3
    assert bound <= exact + 1e-6


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    num_points=st.integers(1, 15),
    spread=st.floats(0.05, 5.0),
    noise=st.floats(0.01, 2.0),
    which=st.sampled_from([0, 1]),
    best=st.booleans(),
    narrowing=st.floats(0.01, 2.0),
)
def test_the_bound_never_exceeds_the_evidence(
    seed, num_points, spread, noise, which, best, narrowing
):
    generator = torch.Generator().manual_seed(seed)
    x, y = symmetric_data(generator)
    points = spread * torch.randn(num_points, 2, generator=generator)
    model = invariant_model(ORBITS[which], points, noise, jitter=1e-6)
    if best:  # the largest bound there is for these points; else q is the prior
        take_best_q(model, x, y)
    bounds = []
    for nu in (1.0, narrowing):
        model.posterior.log_narrowing.data.fill_(math.log(nu))
        whole = elbo(model, x, y, num_data=12, num_samples=None, generator=None)
        bounds.append(whole.value.item())
    exact = log_evidence(InvariantKernel(model.kernel, ORBITS[which]), noise, x, y)
    assert max(bounds) <= exact + 1e-6


def test_the_best_narrowing_tightens_the_bound(generator):
    """Titsias (2025): −½ Σ d/σ² becomes −½ N log(1 + mean d/σ²)."""
    x, y = symmetric_data(generator)
    model = invariant_model(ORBITS[1], torch.randn(2, 2, generator=generator), jitter=1e-6)
    take_best_q(model, x, y)

    def bound():
        return elbo(model, x, y, num_data=12, num_samples=None, generator=None).value

    before, q = bound(), model.posterior.q
    sample = ORBITS[1].enumerate(x)
    covariances = model.covariances(sample, unbiased_pairs(1))
    whitened = torch.linalg.solve_triangular(
        model.posterior.prior_factor(model.kernel), covariances.mean.mT, upper=False
    )
    d = (covariances.variance - whitened.square().sum(0)).detach() / model.likelihood.noise.item()
    model.posterior.assign(replace(q, narrowing=1 / (1 + d.mean())))
    gained = bound() - before
    expected = 0.5 * (d.sum() - 12 * torch.log1p(d.mean()))
    print(f"gained {gained.item():.4f} nats")
    assert_close(gained, expected)
    assert gained > 1
    (slope,) = torch.autograd.grad(bound(), model.posterior.log_narrowing)
    assert abs(slope) < 1e-8


def test_evidence_is_that_of_gpytorchs_exact_marginal_likelihood(generator):
    """The oracle itself, against an independent implementation."""
    x, y = symmetric_data(generator)
    kernel = InvariantKernel(RBF(1.3, 0.9), ORBITS[0])

    class Model(gpytorch.models.ExactGP):
        def forward(self, x):
            mean = torch.zeros(len(x))
            return gpytorch.distributions.MultivariateNormal(mean, kernel(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    likelihood.noise = 0.05
    model = Model(x, y, likelihood)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    ours = log_evidence(kernel, 0.05, x, y)
    assert_close(ours, len(x) * mll(model(x), y), tolerance=1e-8)


def test_minibatches_average_to_the_whole(generator):
    """With equal batches the bound of all data is the mean of the batches' estimates."""
    x, y = symmetric_data(generator)
    model = invariant_model(ORBITS[0], x[:5])
    batches = [
        elbo(model, a, b, num_data=12, num_samples=None, generator=None).value
        for a, b in zip(x.split(4), y.split(4), strict=True)
    ]
    whole = elbo(model, x, y, num_data=12, num_samples=None, generator=None).value
    assert_close(torch.stack(batches).mean(), whole)


def test_bad_batches_say_what_is_wrong(generator):
    x, y = symmetric_data(generator)
    model = invariant_model(ORBITS[0], x[:5])
    with pytest.raises(InputError, match="12 inputs, 5 targets"):
        elbo(model, x, y[:5], num_data=12, num_samples=None, generator=None)
    model = invariant_model(ORBITS[1], x[:5])
    with pytest.raises(InputError, match="pass generator"):
        elbo(model, x, y, num_data=12, num_samples=2, generator=None)
