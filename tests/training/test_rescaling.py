"""Scales that are found without another pass, against models that have them."""

import math
from dataclasses import replace

import pytest
import torch

from orbitgp import (
    RBF,
    Affine,
    Gaussian,
    InducingPosterior,
    InvariantGP,
    SignFlips,
    mean_pairs,
    solve,
)
from orbitgp.posterior.algebra import solve_rows
from orbitgp.posterior.inducing import kl, moments
from orbitgp.training.group import ALONE
from orbitgp.training.passes import Resident, pass_statistics
from orbitgp.training.rescaling import (
    bounds_along,
    fresh_draws,
    highest_bound,
    rescaled,
    with_scales,
)
from orbitgp.training.solving import Solved
from tests.conftest import assert_close

pytestmark = pytest.mark.usefixtures("float64")


def problem(generator, variance=1.0, noise=0.2):
    x = torch.rand(40, 5, 5, generator=generator)
    y = torch.stack([x.mean((1, 2)) * 9, x[:, 2, 2]], 1)
    y = y - y.mean(0) + 0.1 * torch.randn(40, 2, generator=generator)
    model = InvariantGP(
        orbit=Affine(-0.1, 0.1),
        kernel=RBF(variance, 2.0),
        posterior=InducingPosterior(x.flatten(1)[:20], 2, jitter=0.0),
        likelihood=Gaussian(noise),
    )
    return solved(model, x, y), x, y


def solved(model, x, y):
    draws = {"num_samples": 4, "weigh": mean_pairs, "seed": 3, "group": ALONE}
    statistics = pass_statistics(model, Resident(x, y), **draws)
    prior = model.posterior.prior_covariance(model.kernel).detach()
    factor = torch.linalg.cholesky(prior)
    model.posterior.assign(solve(statistics, prior, factor))
    return Solved(model, statistics, prior, factor, seed=3)


def bound_on(fresh, unit, model):
    """The bound by its definition, from draws that were taken with a variance of `unit`."""
    noise, q = model.likelihood.noise.item(), model.posterior.q
    grown = math.sqrt(model.kernel.variance.item() / unit)  # L⁻¹k grows as the root of the variance
    first, second = (grown * half for half in fresh.whitened.unbind(1))
    d = grown**2 * fresh.variance - (first * second).sum(1)
    s = ((first @ q.scale[0]) * (second @ q.scale[0])).sum(1)
    errors = (fresh.targets - first @ q.mean) * (fresh.targets - second @ q.mean)
    nu, count = q.narrowing, errors.numel()
    fit = -0.5 * count * math.log(2 * math.pi * noise) - errors.sum() / (2 * noise)
    spread = errors.shape[1] * (nu * d + s).sum() / (2 * noise)
    return (fit - spread - count * 0.5 * (nu - 1 - nu.log()) - kl(q)).item()


@pytest.mark.parametrize(("variance", "ratio"), [(1.0, 1.0), (0.2, 4.0), (20.0, 0.25)])
def test_scales_are_those_of_a_model_that_has_them(generator, variance, ratio):
    start, x, y = problem(generator, variance)
    draws = fresh_draws(start, x, y, generator=generator)
    found = rescaled(start, draws, ratio, len(x))
    assert found.variance / found.noise == pytest.approx(ratio)
    scaled = with_scales(start, found)
    again = solved(scaled.model, x, y).model.posterior.q  # q(u) from a pass at these scales
    assert_close(found.q.mean, again.mean, tolerance=1e-7)
    assert_close(found.q.scale, again.scale, tolerance=1e-7)
    scaled = with_scales(start, found)
    assert_close(scaled.prior_factor, scaled.model.posterior.prior_factor(scaled.model.kernel))
    direct = bound_on(draws, variance, scaled.model)
    assert found.bound == pytest.approx(direct, rel=1e-9)


@pytest.mark.parametrize("variance", [1e-3, 1.0, 1e3])
def test_bounds_of_many_ratios_are_those_of_each(generator, variance):
    start, x, y = problem(generator, variance)
    draws = fresh_draws(start, x, y, generator=generator)
    ratios = [1e-3, 0.25, 1.0, 4.0, 1e3]
    together = bounds_along(start, draws, torch.tensor(ratios), len(x))
    apart = [rescaled(start, draws, ratio, len(x)).bound for ratio in ratios]
    assert together.tolist() == pytest.approx(apart, rel=1e-7)


def test_no_bound_without_noise(generator):
    """A residual that is estimated as negative is one of too few draws."""
    start, x, y = problem(generator)
    draws = fresh_draws(start, x, y, generator=generator)
    half = 10 * draws.whitened[:, 0]
    apart = torch.stack([half, -half], 1)  # f and −f, where the targets are 0
    between = replace(draws, targets=torch.zeros_like(draws.targets), whitened=apart)
    assert bounds_along(start, between, torch.ones(1), len(x)).item() == -math.inf
    assert rescaled(start, between, 1.0, len(x)).bound == -math.inf


def test_products_of_the_halves_of_a_finite_orbit_are_unbiased(generator):
    """8 of 16 points in two halves of 4: no point is in both, which left alone is 16 σ off."""
    x, y = torch.randn(20, 4, generator=generator), torch.zeros(20, 1)
    model = InvariantGP(
        orbit=SignFlips(0, 1, 2, 3),
        kernel=RBF(1.0, 1.0),
        posterior=InducingPosterior(x[:6].clone(), 1),
        likelihood=Gaussian(0.1),
    )
    start = solved(model, x, y)
    everything = model.covariances(mean_pairs.draw(model, x, 16, generator), mean_pairs)
    exact = solve_rows(start.prior_factor, everything.mean).square().sum()
    products = torch.stack(
        [fresh_draws(start, x, y, generator=generator).whitened.prod(1).sum() for _ in range(400)]
    )
    error = products.std() / math.sqrt(len(products))
    z = ((products.mean() - exact) / error).item()
    print(f"{products.mean():.4f} ± {error:.4f}, exactly {exact:.4f}: z = {z:.2f}")
    assert abs(z) < 4


def test_noise_and_narrowing_are_the_best_ones(generator):
    start, x, y = problem(generator)
    draws = fresh_draws(start, x, y, generator=generator)
    found = rescaled(start, draws, 1.0, len(x))
    for factor in (0.9, 1.1):
        for part in ("scale", "narrowing"):
            model = with_scales(start, found).model
            if part == "scale":
                model.kernel.variance = model.kernel.variance.detach() * factor
                model.likelihood.assign_noise(model.likelihood.noise.detach() * factor)
                model.posterior.mean.data /= math.sqrt(factor)
            else:
                model.posterior.log_narrowing.data += math.log(factor)
            assert bound_on(draws, 1.0, model) < found.bound


def test_the_bound_is_searched_towards_more_noise(generator):
    start, x, y = problem(generator, noise=1e-3)
    draws = fresh_draws(start, x, y, generator=generator)
    first = rescaled(start, draws, 1.0, len(x))
    best = highest_bound(start, draws, first, len(x))
    print(f"bound {first.bound:.1f} → {best.bound:.1f}, v/σ² × {best.variance / best.noise:.4f}")
    assert best.bound > first.bound + 1
    assert best.variance / best.noise < 0.5


def test_moments_know_the_narrowing(generator):
    """What is retained stays, what is unexplained shrinks."""
    start, x, _ = problem(generator)
    model = start.model
    sample = model.sample_orbit(x[:5], 4, generator=generator)
    covariances = model.covariances(sample, mean_pairs)
    rows = torch.linalg.solve_triangular(start.prior_factor, covariances.mean.mT, upper=False).mT
    groups = rows * sample.num_samples
    whole = moments(covariances, model.posterior.q, groups)
    model.posterior.log_narrowing.data.fill_(math.log(0.25))
    narrowed = moments(covariances, model.posterior.q, groups)
    unexplained = covariances.variance - rows.square().sum(1)
    assert_close(whole.variance - narrowed.variance, 0.75 * unexplained[:, None])
    assert narrowed.divergence > whole.divergence == 0
