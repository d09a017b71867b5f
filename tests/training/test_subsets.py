"""The evidence of a subset against a multivariate normal, and the scales that it leads to."""

import pytest
import torch
from torch.distributions import MultivariateNormal

from orbitgp import RBF, Affine, CyclicShifts, Gaussian, InducingPosterior, InvariantGP
from orbitgp.kernels import InvariantKernel, covariance
from orbitgp.model import unbiased_pairs
from orbitgp.training import subsets
from orbitgp.training.subsets import best_scales, settle, unbiased_covariance
from tests.conftest import assert_close, assert_mean

pytestmark = pytest.mark.usefixtures("float64")


def test_evidence_is_that_of_a_multivariate_normal(generator):
    x, y = torch.randn(12, 2, generator=generator), torch.randn(12, 3, generator=generator)
    unit = covariance(RBF(1.0, 0.7), x, x)
    found = best_scales(unit, y, max_ratio=100.0)
    spread = found.variance * unit + found.noise * torch.eye(12)
    exact = MultivariateNormal(torch.zeros(12), spread).log_prob(y.mT).sum()
    assert found.evidence == pytest.approx(exact.item(), rel=1e-9)
    for factor in (0.8, 1.25):  # the noise is the best one for its ratio
        other = MultivariateNormal(torch.zeros(12), factor * spread).log_prob(y.mT).sum()
        assert other < exact


def test_ratios_have_an_end(generator):
    """Targets without noise ask for a ratio without end."""
    x = torch.randn(30, 1, generator=generator)
    unit = covariance(RBF(1.0, 1.0), x, x)
    ends = [best_scales(unit, x.sin(), max_ratio=limit) for limit in (10.0, 1e4)]
    assert [round(end.variance / end.noise) for end in ends] == [10, 10_000]


def test_covariances_of_whole_orbits_are_exact(generator):
    x, orbit, kernel = torch.randn(5, 4, generator=generator), CyclicShifts(4), RBF(1.3, 0.9)
    points = orbit.enumerate(x)
    averages = unbiased_covariance(kernel, points, unbiased_pairs(2)(points))
    assert_close(averages, InvariantKernel(kernel, orbit)(x).to_dense())


def test_covariances_of_draws_are_unbiased(generator):
    x, orbit, kernel = torch.randn(3, 4, generator=generator), CyclicShifts(4), RBF(1.3, 0.9)
    draws = []
    for _ in range(400):
        points = orbit.sample(x, 2, generator=generator)
        draws.append(unbiased_covariance(kernel, points, unbiased_pairs(1)(points)).flatten())
    assert_mean(torch.stack(draws), InvariantKernel(kernel, orbit)(x).to_dense().flatten(), "K")


def test_scales_settle_where_the_data_came_from(generator, monkeypatch):
    """From a lengthscale 4 times too long, and ranges that are too wide."""
    monkeypatch.setattr(subsets, "NUM_DATA", 200)
    x = torch.randn(200, 1, 4, 4, generator=generator)
    truth = covariance(RBF(2.0, 4.0), x.flatten(1), x.flatten(1)) + 0.02 * torch.eye(200)
    y = torch.linalg.cholesky(truth) @ torch.randn(200, 4, generator=generator)
    model = InvariantGP(
        orbit=Affine(-0.3, 0.3, symmetric=True),
        kernel=RBF(1.0, 16.0),
        posterior=InducingPosterior(x.flatten(1)[:5], 4),
        likelihood=Gaussian(0.5),
    )
    settle(model, x, y, max_ratio=1e6, generator=generator)
    print(model.kernel.lengthscale, model.kernel.variance, model.likelihood.noise, model.orbit)
    assert 2.5 < model.kernel.lengthscale.item() < 6.5
    assert model.orbit.ranges.high.max() < 0.1


def test_many_data_are_judged_by_more_of_them_with_fewer_points(generator, monkeypatch):
    """And only few may have their ranges widened."""
    sizes = {"NUM_DATA": 20, "NUM_SAMPLES": 8, "MANY_DATA": 10, "MANY": (40, 4), "ENOUGH": 60}
    for name, value in sizes.items():
        monkeypatch.setattr(subsets, name, value)
    trials = []

    def unbiased(kernel, sample, weights):
        trials.append(sample.points.shape[:2])
        return unbiased_covariance(kernel, sample, weights)

    monkeypatch.setattr(subsets, "unbiased_covariance", unbiased)
    widths = {}
    for count in (30, 50, 80):
        images = torch.rand(count, 6, 6, generator=generator).float()
        y = images.flatten(1).mean(1, keepdim=True).double()
        model = InvariantGP(
            orbit=Affine(-0.01, 0.01).float(),
            kernel=RBF(1.0, 3.0, coarse=True).float(),
            posterior=InducingPosterior(images.flatten(1)[:5], 1),
            likelihood=Gaussian(0.1),
        )
        settle(model, images, y, max_ratio=1e4, generator=generator)
        widths[count] = model.orbit.ranges.high.max().item()
        assert set(trials) == {(40, 4) if count == 80 else (20, 8)}
        trials.clear()
    assert max(widths[50], widths[80]) <= 0.01 + 1e-6
