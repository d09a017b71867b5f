"""q(u) and local parameters in turn, against the mode, a long chain and importance sampling."""

import math

import pytest
import torch

from orbitgp import (
    RBF,
    Identity,
    InducingPosterior,
    InvariantGP,
    PolyaGamma,
    Softmax,
    elbo,
)
from orbitgp.fit.log_odds import highest_variance, left_out_log_odds
from orbitgp.inference.coordinate_ascent import MAX_ROUNDS, Prior, Rows, fixed_point, rows_of
from orbitgp.kernels import covariance
from orbitgp.posterior.inducing import averaged
from tests.conftest import assert_close

pytestmark = pytest.mark.usefixtures("float64")


def problem(likelihood, generator, num_data=40, num_points=None):
    """Labels drawn from the model, with inducing points on all data or on some."""
    x = torch.randn(num_data, 2, generator=generator)
    kernel = RBF(variance=4.0, lengthscale=0.9)
    root = torch.linalg.cholesky(covariance(kernel, x, x) + 1e-9 * torch.eye(num_data)).detach()
    f = root @ torch.randn(num_data, likelihood.num_outputs, generator=generator)
    chances = likelihood.log_probabilities(f).exp()
    labels = torch.multinomial(chances, 1, generator=generator)[:, 0]
    posterior = InducingPosterior(
        x[:num_points],
        likelihood.num_outputs,
        shared_covariance=likelihood.num_precisions == 1,
        jitter=1e-9,
    )
    model = InvariantGP(orbit=Identity(), kernel=kernel, posterior=posterior, likelihood=likelihood)
    return model, x, labels


def solved(model, x, labels):
    points = averaged(model.posterior.points).detach()
    rows = rows_of(model, x, labels, points, None)
    prior = Prior.of(model.posterior.prior_covariance(model.kernel).detach())
    return fixed_point(model.likelihood, rows, prior), rows, prior


def test_the_softmax_mean_is_the_mode(generator):
    model, x, labels = problem(Softmax(4), generator, num_points=15)
    found, rows, prior = solved(model, x, labels)
    assert 3 < found.num_rounds < 100
    alpha = torch.linalg.solve_triangular(prior.factor.mT, found.q.mean, upper=True)
    alpha.requires_grad_()
    chosen = model.likelihood.log_probabilities(rows.mean @ alpha)[torch.arange(40), labels]
    log_joint = chosen.sum() - 0.5 * (alpha * (prior.covariance @ alpha)).sum()
    (slope,) = torch.autograd.grad(log_joint, alpha)
    # in whitened coordinates, where a unit is a standard deviation of the prior
    slope = torch.linalg.solve_triangular(prior.factor, slope, upper=False)
    assert slope.abs().max() < 0.02
    assert_close(found.local, rows.mean @ alpha.detach(), tolerance=1e-9)


@pytest.mark.parametrize("likelihood", [PolyaGamma(), Softmax(4)], ids=lambda each: repr(each)[:8])
def test_no_other_posterior_or_local_parameters_have_a_higher_bound(likelihood, generator):
    model, x, labels = problem(likelihood, generator, num_points=15)
    found, _, _ = solved(model, x, labels)

    def bound(local):
        targets = likelihood.with_local(labels, local)
        return elbo(model, x, targets, num_data=40, num_samples=1, generator=generator).value

    model.posterior.assign(found.q)
    best = bound(found.local).item()
    parameters = [model.posterior.mean, model.posterior.scale]
    slopes = torch.autograd.grad(bound(found.local), parameters)
    # what is left after rounds have ended with a change of μ below the tolerance
    assert max(slope.abs().max().item() for slope in slopes) < 0.05
    for _ in range(10):
        other = found.local + 0.2 * torch.randn(found.local.shape, generator=generator)
        assert bound(other).item() < best


def log_joint(likelihood, f, labels, factor):
    """log p(y | f) + log p(f) for rows of f [S, N]."""
    own = torch.arange(len(labels))
    fit = likelihood.log_probabilities(f.unsqueeze(-1))[:, own, labels].sum(1)
    white = torch.linalg.solve_triangular(factor, f.mT, upper=False)
    constant = factor.diagonal().log().sum() + 0.5 * len(labels) * math.log(2 * math.pi)
    return fit - 0.5 * white.square().sum(0) - constant


def test_two_classes_agree_with_a_long_chain_and_the_evidence(generator):
    """Elliptical slices (Murray et al. 2010) for the mean; importance samples for the evidence."""
    model, x, labels = problem(PolyaGamma(), generator, num_data=12)
    found, rows, prior = solved(model, x, labels)
    likelihood, own = model.likelihood, torch.arange(12)
    factor = torch.linalg.cholesky(prior.covariance)

    def fit(f):
        return likelihood.log_probabilities(f.unsqueeze(-1))[own, labels].sum()

    f, total, count = torch.zeros(12), torch.zeros(12), 0
    for step in range(6000):
        nu = factor @ torch.randn(12, generator=generator)
        height = fit(f) + torch.rand((), generator=generator).log()
        angle = 2 * math.pi * torch.rand((), generator=generator)
        low, high = angle - 2 * math.pi, angle
        while True:
            proposal = f * angle.cos() + nu * angle.sin()
            if fit(proposal) > height:
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = low + (high - low) * torch.rand((), generator=generator)
        f = proposal
        if step >= 500:
            total, count = total + f, count + 1
    chain = total / count
    alpha = torch.linalg.solve_triangular(prior.factor.mT, found.q.mean, upper=True)
    ours = (rows.mean @ alpha)[:, 0]
    print(f"means: largest difference {(ours - chain).abs().max():.3f} of {chain.abs().max():.3f}")
    # the bound is symmetric about 0 and so a little too cautious; the chain has its own error
    assert (ours - chain).abs().max() < 0.35
    assert torch.corrcoef(torch.stack([ours, chain]))[0, 1] > 0.99

    model.posterior.assign(found.q)
    targets = likelihood.with_local(labels, found.local)
    bound = elbo(model, x, targets, num_data=12, num_samples=1, generator=generator).value
    root = prior.factor @ found.q.scale[0]
    wide = torch.linalg.cholesky(1.3 * root @ root.mT)
    proposal = torch.distributions.MultivariateNormal(ours, scale_tril=wide)
    noise = torch.randn(100_000, 12, generator=generator)
    draws = ours + noise @ wide.mT
    weights = log_joint(likelihood, draws, labels, factor) - proposal.log_prob(draws)
    evidence = torch.logsumexp(weights, 0) - math.log(len(draws))
    relative = (weights - evidence).exp().std() / math.sqrt(len(draws))
    print(f"bound {bound:.4f}, evidence {evidence:.4f} ± {relative:.4f}")
    assert relative < 0.05
    assert bound < evidence + 4 * relative
    assert bound > evidence - 0.08 * evidence.abs()  # what such a bound loses at variance 4


def test_rounds_of_a_float32_kernel_with_a_large_variance_end(generator):
    x = torch.randn(300, 2, generator=generator)
    odd = torch.rand(300, generator=generator) < 0.02
    labels = ((x.prod(1) > 0) ^ odd).long()
    x, kernel = x.float(), RBF(variance=1e5, lengthscale=8.0).float()
    posterior = InducingPosterior(x[:100], 1)
    parts = {"kernel": kernel, "posterior": posterior, "likelihood": PolyaGamma()}
    found, rows, _ = solved(InvariantGP(orbit=Identity(), **parts), x, labels)
    assert rows.mean.dtype == torch.float32
    assert found.num_rounds < MAX_ROUNDS


@pytest.mark.parametrize("likelihood", [PolyaGamma(), Softmax(4)])
def test_the_variance_with_the_highest_bound_is_found(generator, likelihood):
    _, rows, prior = solved(*problem(likelihood, generator, num_data=30))
    unit = prior.covariance / 4
    best = highest_variance(likelihood, unit, rows.labels)

    def bound(variance):
        scaled = Prior.of(variance * unit)
        data = Rows(scaled.covariance, scaled.covariance.diagonal(), rows.labels)
        return fixed_point(likelihood, data, scaled).bound

    assert bound(best) > max(bound(v) for v in (best / 2, best * 2) if v >= 1)


@pytest.mark.parametrize("likelihood", [PolyaGamma(), Softmax(4)])
def test_left_out_is_near_what_the_others_alone_say(generator, likelihood):
    """But for local parameters that one label more or less would have moved."""
    model, x, labels = problem(likelihood, generator)
    found, rows, prior = solved(model, x, labels)
    left_out = left_out_log_odds(likelihood, rows, prior, found, torch.arange(40))
    within = found.moments.variance[:, :1].sqrt()
    for place in (3, 17, 30):
        kept = torch.arange(40) != place
        fewer = Rows(rows.mean[kept], rows.variance[kept], labels[kept])
        alone = fixed_point(likelihood, fewer, prior)
        alpha = torch.linalg.solve_triangular(prior.factor.mT, alone.q.mean, upper=True)
        expected = rows.mean[place] @ alpha
        seen = found.moments.mean[place]
        assert (left_out.mean[place] - expected).norm() < within[place]
        assert (left_out.mean[place] - expected).norm() < (seen - expected).norm()
        assert (left_out.variance[place] > found.moments.variance[place] * 0.999).all()
