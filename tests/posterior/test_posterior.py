"""Moments, statistics, KL and the closed form against slow loops and against each other."""

import pytest
import torch

from orbitgp import (
    CyclicShifts,
    Gaussian,
    GaussianNoise,
    InducingPosterior,
    InputError,
    NumericalError,
    elbo,
    elbo_from_statistics,
    statistics,
    stream_statistics,
)
from orbitgp.kernels import RBF
from orbitgp.model import mean_pairs, unbiased_pairs
from orbitgp.posterior.algebra import (
    add_jitter,
    cholesky,
    excess_of_scale,
    whiten,
    whiten_rows,
)
from orbitgp.posterior.inducing import kl, moments
from orbitgp.stochastic.closed_form import solve
from orbitgp.stochastic.natural import NaturalParameters
from orbitgp.values import SufficientStatistics, WhitenedGaussian
from tests.conftest import assert_close
from tests.models import random_model, random_q
from tests.reference.slow import slow_gaussian_elbo, slow_kl, slow_moments

pytestmark = pytest.mark.usefixtures("float64")

LIKELIHOODS = [Gaussian(0.3), Gaussian([0.3, 0.7])]


def shift_model(generator, likelihood=None, num_points=7):
    points = torch.randn(num_points, 3, generator=generator)
    return random_model(CyclicShifts(3), generator, points=points, likelihood=likelihood)


def data(generator, num_data=6):
    x = torch.randn(num_data, 3, generator=generator)
    return x, torch.randn(num_data, 2, generator=generator)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("group_size", [1, 2])
def test_moments_and_elbo_equal_slow_loops(likelihood, group_size, generator):
    points = torch.randn(5, 3, generator=generator)
    orbit = GaussianNoise(0.4, event_shape=(3,))
    model = random_model(orbit, generator, points=points, likelihood=likelihood)
    x, y = data(generator, 3)
    sample = orbit.sample(x, 4, generator=torch.Generator().manual_seed(5))
    covariances = model.covariances(sample, unbiased_pairs(group_size))
    kuu = model.posterior.prior_covariance(model.kernel)
    whitened = whiten_rows(kuu, covariances.groups.flatten(0, 1))
    ours = moments(covariances, model.posterior.q, whitened)
    slow = slow_moments(model, sample.points, covariances.weights)
    for mine, theirs in zip((ours.mean, ours.mean_square, ours.variance), slow, strict=True):
        assert_close(mine.expand_as(theirs), theirs, tolerance=1e-6)
    bound = elbo(
        model,
        x,
        y,
        num_data=3,
        num_samples=4,
        generator=torch.Generator().manual_seed(5),
        group_size=group_size,
    )
    assert_close(bound.kl, slow_kl(model), tolerance=1e-6)
    assert_close(bound.value, slow_gaussian_elbo(model, y, slow), tolerance=1e-6)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("num_samples", [2, None])
def test_statistics_and_moments_give_the_same_bound(likelihood, num_samples, shared, generator):
    model = shift_model(generator, likelihood)
    model.posterior = InducingPosterior(model.posterior.points, 2, shared_covariance=shared)
    model.posterior.assign(random_q(generator, 7, 2, 1 if shared else 2))
    x, y = data(generator)
    draws = {"num_samples": num_samples}
    direct = elbo(model, x, y, num_data=30, generator=torch.Generator().manual_seed(3), **draws)
    batch = statistics(
        model,
        x,
        y,
        generator=torch.Generator().manual_seed(3),
        pairs=unbiased_pairs(1),
        **draws,
    )
    indirect = elbo_from_statistics(model, batch, num_data=30)
    assert_close(direct.value, indirect.value)
    gradients = [torch.autograd.grad(e.value, list(model.parameters())) for e in (direct, indirect)]
    for mine, theirs in zip(*gradients, strict=True):
        assert_close(mine, theirs, tolerance=1e-7)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_closed_form_is_the_stationary_point_of_the_gradient(likelihood, generator):
    model = shift_model(generator, likelihood)
    x, y = data(generator)
    batch = statistics(model, x, y, num_samples=None, generator=None, pairs=mean_pairs)
    before = elbo_from_statistics(model, batch, num_data=6).value
    model.posterior.assign(solve(batch, model.posterior.prior_covariance(model.kernel)))
    bound = elbo(model, x, y, num_data=6, num_samples=None, generator=None).value
    gradients = torch.autograd.grad(bound, [model.posterior.mean, model.posterior.scale])
    assert sum(g.square().sum() for g in gradients).sqrt() <= 1e-8
    assert bound > before + 1


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_natural_step_of_size_one_is_the_closed_form(likelihood, generator):
    model = shift_model(generator, likelihood)
    batch = statistics(model, *data(generator), num_samples=None, generator=None, pairs=mean_pairs)
    factor = model.posterior.prior_factor(model.kernel).detach()
    optimum = solve(batch, model.posterior.prior_covariance(model.kernel).detach())
    landed = best(batch, factor).gaussian()
    assert_close(landed.mean, optimum.mean)
    assert_close(landed.scale @ landed.scale.mT, optimum.scale @ optimum.scale.mT)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_natural_step_follows_the_natural_gradient(likelihood, generator):
    """Mean parameters η = (m, S + mmᵀ):  natural gradient of L = ∂L/∂η, a step in (S⁻¹m, −½S⁻¹)."""
    model = shift_model(generator, likelihood, num_points=3)
    batch = statistics(model, *data(generator), num_samples=None, generator=None, pairs=mean_pairs)
    q, rho = model.posterior.q, 0.3
    scales = q.scale.detach().expand(2, -1, -1)
    means = q.mean.detach()
    first = means.clone().requires_grad_()
    second = torch.stack([u @ u.T + m.outer(m) for u, m in zip(scales, means.T, strict=True)])
    second.requires_grad_()
    spreads = [s - m.outer(m) for s, m in zip(second, first.T, strict=True)]
    roots = torch.stack([torch.linalg.cholesky(s.flip(0, 1)).flip(0, 1) for s in spreads])
    model.posterior = _Fixed(model.posterior, WhitenedGaussian(first, roots))
    separate = _one_gram_each(batch)
    bound = elbo_from_statistics(model, separate, num_data=6).value
    slope_first, slope_second = torch.autograd.grad(bound, [first, second])
    factor = model.posterior.prior_factor(model.kernel).detach()
    start = WhitenedGaussian(means, scales.contiguous())
    step = natural_of(start).toward(best(separate, factor), rho).gaussian()
    for c in range(2):
        spread = scales[c] @ scales[c].T
        precision = torch.linalg.inv(spread)
        expected = precision - 2 * rho * slope_second[c]
        assert_close(torch.linalg.inv(step.scale[c] @ step.scale[c].T), expected, tolerance=1e-7)
        target = precision @ means[:, c] + rho * slope_first[:, c]
        assert_close(expected @ step.mean[:, c], target, tolerance=1e-7)


def best(batch, factor):
    """The best q(u) of a batch, whose gram is whitened as a whole."""
    linear = torch.linalg.solve_triangular(factor, batch.linear, upper=False)
    return NaturalParameters.optimum(whiten(factor, batch.gram), linear)


def natural_of(q):
    precision = torch.linalg.inv(q.scale @ q.scale.mT)
    return NaturalParameters(precision, torch.einsum("rmk,kr->mr", precision, q.mean))


class _Fixed(torch.nn.Module):
    """A posterior whose q is given from outside, for gradients in other coordinates."""

    def __init__(self, posterior, q):
        super().__init__()
        self.points, self.jitter, self.q = posterior.points, posterior.jitter, q

    prior_covariance = InducingPosterior.prior_covariance
    prior_factor = InducingPosterior.prior_factor


def _one_gram_each(batch):
    grams = batch.gram.expand(2, -1, -1).contiguous()
    return SufficientStatistics(
        batch.constant, batch.linear, grams, batch.variance.expand(2).contiguous(), batch.num_data
    )


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_seven_uneven_shards_add_up_to_the_whole(likelihood, generator):
    model = shift_model(generator, likelihood)
    x, y = data(generator, 50)
    whole = statistics(model, x, y, num_samples=None, generator=None, pairs=mean_pairs)
    sizes = [1, 2, 3, 5, 8, 13, 18]
    shards = [
        statistics(model, a, b, num_samples=None, generator=None, pairs=mean_pairs)
        for a, b in zip(x.split(sizes), y.split(sizes), strict=True)
    ]
    wired = [SufficientStatistics.from_bytes(shard.to_bytes()) for shard in shards]
    total = sum(wired)
    assert total.num_data == 50
    for name in ("constant", "linear", "gram", "variance"):
        mine, theirs = getattr(total, name), getattr(whole, name)
        assert (mine - theirs).abs().max() <= 1e-12 * theirs.abs().max()


def test_mean_statistics_never_give_an_indefinite_solve(generator):
    """Few samples, float32 kernels, tiny noise: the case that broke the unbiased Gram."""
    x = torch.randn(400, 2, generator=generator).float()
    y = torch.randn(400, 1, generator=generator)
    orbit = GaussianNoise(0.5, event_shape=(2,))
    points = orbit.sample(x[:100], 1, generator=generator).points.detach().flatten(0, 1)
    model = random_model(
        orbit, generator, points=points, num_outputs=1, likelihood=Gaussian(1e-4), jitter=1e-6
    )
    prior = model.posterior.prior_covariance(model.kernel)
    batch = statistics(model, x, y, num_samples=2, generator=generator, pairs=mean_pairs)
    assert torch.isfinite(solve(batch, prior).scale).all()
    unbiased = statistics(model, x, y, num_samples=2, generator=generator, pairs=unbiased_pairs(1))
    with pytest.raises(NumericalError, match="smallest eigenvalue"):
        solve(unbiased, prior)


def test_whitened_rows_and_their_gradients(generator):
    square, rows = torch.randn(4, 4, generator=generator), torch.randn(3, 4, generator=generator)
    kuu = square @ square.T + torch.eye(4)
    factor = torch.linalg.cholesky(kuu)
    assert_close(whiten_rows(kuu, rows) @ factor.T, rows)
    symmetric = kuu.clone().requires_grad_()

    def whiten(matrix, rows):  # gradcheck moves one entry at a time; Kuu stays symmetric
        return whiten_rows((matrix + matrix.T) / 2, rows)

    assert torch.autograd.gradcheck(whiten, (symmetric, rows.requires_grad_()))
    assert torch.autograd.gradcheck(lambda matrix: add_jitter(matrix, 0.3), symmetric)
    expected = kuu + 0.3 * kuu.diagonal().mean() * torch.eye(4)
    assert_close(add_jitter(kuu, 0.3), expected)


def test_solve_can_be_differentiated(generator):
    model = shift_model(generator)
    batch = statistics(model, *data(generator), num_samples=None, generator=None, pairs=mean_pairs)
    q = solve(batch, model.posterior.prior_covariance(model.kernel))
    (gradient,) = torch.autograd.grad(q.mean.sum(), model.kernel.raw_lengthscale)
    assert torch.isfinite(gradient).all()


def test_a_model_cast_to_float32_keeps_its_algebra_in_float64(generator):
    model = shift_model(generator)
    x, y = data(generator)
    before = elbo(model, x, y, num_data=6, num_samples=None, generator=None).value
    after = elbo(model.float(), x, y, num_data=6, num_samples=None, generator=None).value
    assert after.dtype == torch.float64
    assert_close(after, before, tolerance=1e-4)


def test_a_stream_is_the_sum_of_its_pieces(generator):
    for likelihood in LIKELIHOODS:
        model = shift_model(generator, likelihood)
        x, y = data(generator, 50)
        draws = {"num_samples": None, "generator": None, "pairs": mean_pairs}
        whole = statistics(model, x, y, **draws)
        batches = zip(x.split(20), y.split(20), strict=True)
        streamed = stream_statistics(model, batches, memory=4 * 3 * 7 * 6, **draws)
        assert streamed.num_data == 50
        for name in ("constant", "linear", "gram", "variance"):
            assert_close(getattr(streamed, name), getattr(whole, name).detach())
    with pytest.raises(InputError, match="no batches"):
        stream_statistics(model, [], **draws)


def test_gradient_of_the_kl(generator):
    scale = random_q(generator, 4, 2, 2).scale.requires_grad_()
    assert torch.autograd.gradcheck(lambda u: excess_of_scale(u.triu()), scale)


def test_kl_of_the_prior_is_zero(generator):
    posterior = InducingPosterior(torch.randn(4, 2, generator=generator), 3)
    assert kl(posterior.q) == 0
    assert kl(random_q(generator, 4, 3)) > 0


def test_failed_factorisations_say_what_is_wrong():
    indefinite = torch.tensor([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(NumericalError, match=r"Kuu \(2×2\).*smallest eigenvalue is -1"):
        cholesky(indefinite, "Kuu")
    with pytest.raises(NumericalError, match="not finite"):
        cholesky(indefinite * torch.nan, "Kuu")


def test_duplicate_inducing_points_are_held_by_the_jitter(generator):
    points = torch.randn(5, 2, generator=generator).repeat(4, 1)
    factor = InducingPosterior(points, 1).prior_factor(RBF())
    assert torch.isfinite(factor).all()


def test_bad_arguments_say_what_to_do(generator):
    points = torch.zeros(3, 2)
    for bad in (points * torch.nan, points.byte(), points.reshape(3, 2, 1, 1), points[:0]):
        with pytest.raises(InputError, match=r"x.float\(\).flatten\(1\)"):
            InducingPosterior(bad, 1)
    with pytest.raises(InputError, match="jitter"):
        InducingPosterior(points, 1, jitter=-1.0)
    with pytest.raises(InputError, match="mean of shape"):
        InducingPosterior(points, 2).assign(random_q(generator, 3, 1))


def test_mean_pairs_are_exact_on_a_whole_orbit(generator):
    model = shift_model(generator)
    x, _ = data(generator)
    sample = model.sample_orbit(x, None, generator=None)
    plain = model.covariances(sample, mean_pairs)
    exact = model.covariances(sample, unbiased_pairs(1))
    assert_close(plain.variance, exact.variance)
    kuu, q = model.posterior.prior_covariance(model.kernel), model.posterior.q
    ours = moments(plain, q, whiten_rows(kuu, plain.groups.flatten(0, 1)))
    assert_close(ours.mean_square, ours.mean**2)
