"""The evidence of a subset against a multivariate normal, and the scales that it leads to."""

import pytest
import torch
from torch.distributions import MultivariateNormal

from orbitgp import RBF, Affine, CyclicShifts, Gaussian, InducingPosterior, InvariantGP
from orbitgp.kernels import covariance
from orbitgp.posterior.inducing import average_covariance
from orbitgp.training import subsets
from orbitgp.training.subsets import best_scales, settle
from tests.conftest import assert_close

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


def test_all_inputs_share_their_draws_and_none_where_orbits_are_whole(generator):
    def model(orbit):
        points = torch.zeros(1, 4)
        parts = {"kernel": RBF(), "posterior": InducingPosterior(points, 1)}
        return InvariantGP(orbit=orbit, likelihood=Gaussian(0.1), **parts)

    assert model(CyclicShifts(4)).orbit_noise(1, 4, generator=generator) is None
    turned, x = model(Affine(-0.3, 0.3)), torch.randn(3, 4, 4, generator=generator)
    noise = turned.orbit_noise(1, 5, generator=generator, group_size=5)
    assert noise.shape == (1, 5, 6)
    assert len(noise[0].unique(dim=0)) == 5
    shared = turned.sample_orbit_at(x, noise).points
    each = [turned.sample_orbit_at(image.unsqueeze(0), noise).points for image in x]
    assert_close(shared.detach(), torch.cat(each).detach())


@pytest.mark.usefixtures("untyped")
def test_scales_settle_where_the_data_came_from(generator, monkeypatch):
    """From a lengthscale 4 times too long, and ranges that are too wide."""
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
    sizes = {"NUM_DATA": 30, "NUM_SAMPLES": (4, 12), "NUM_POINTS": 120, "MANY_DATA": 5}
    for name, value in sizes.items():
        monkeypatch.setattr(subsets, name, value)
    trials = []

    def watched(kernel, points):
        trials.append(tuple(points.shape[:2]))
        return average_covariance(kernel, points)

    monkeypatch.setattr(subsets, "average_covariance", watched)
    widths = {}
    for count, size in {8: (8, 12), 20: (20, 6), 80: (30, 4)}.items():
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
        assert set(trials) == {size}
        trials.clear()
    assert widths[80] <= 0.01 + 1e-6
    assert max(widths[8], widths[20]) > 0.011
