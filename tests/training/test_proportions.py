"""Gradients of exact evidence against autograd, and the proportions that they lead to."""

import pytest
import torch
from torch.distributions import MultivariateNormal

from orbitgp import (
    RBF,
    Affine,
    Gaussian,
    InducingPosterior,
    InvariantGP,
    LocalDeformation,
    compose,
)
from orbitgp.kernels import covariance
from orbitgp.posterior.inducing import average_covariance
from orbitgp.training import proportions, subsets
from orbitgp.training.proportions import balance, covariance_gradients, evidence_gradient
from orbitgp.training.subsets import best_scales
from tests.conftest import assert_close


def test_gradient_of_the_evidence_is_that_of_a_multivariate_normal(generator, float64):
    x, y = torch.randn(12, 2, generator=generator), torch.randn(12, 3, generator=generator)
    unit = covariance(RBF(1.0, 0.7), x, x).detach().requires_grad_()
    found = evidence_gradient(unit.detach(), y, 100.0)
    scales = best_scales(unit.detach(), y, 100.0)
    spread = scales.variance * unit + scales.noise * torch.eye(12)
    exact = MultivariateNormal(torch.zeros(12), spread, validate_args=False).log_prob(y.mT).sum()
    (expected,) = torch.autograd.grad(exact, unit)
    assert_close(found, 0.5 * (expected + expected.mT))


def test_gradients_of_average_covariances_are_those_of_autograd(generator, float64, monkeypatch):
    monkeypatch.setattr(proportions, "BLOCK", 3)  # so that blocks are cut
    points = torch.randn(7, 4, 3, generator=generator, requires_grad=True)
    upstream = torch.randn(7, 7, generator=generator)
    upstream = upstream + upstream.mT
    kernel = RBF(1.0, 1.3)
    slopes, by_length = covariance_gradients(kernel, points.detach(), upstream)
    total = (upstream * average_covariance(kernel, points)).sum()
    expected, raw = torch.autograd.grad(total, [points, kernel.raw_lengthscale])
    assert_close(slopes, expected)
    slope = torch.autograd.grad(kernel.lengthscale.log().sum(), kernel.raw_lengthscale)[0]
    assert_close(by_length, (raw / slope).sum())


def shifted_model(orbit):
    """Of images 8×8, with a kernel that is fast."""
    return InvariantGP(
        orbit=orbit,
        kernel=RBF(1.0, 6.0, coarse=True),
        posterior=InducingPosterior(torch.zeros(1, 64), 2),
        likelihood=Gaussian(0.1),
    )


def shift(place):
    """An affine orbit of which one range alone is learned: 4 along the rows, 5 across."""
    flags = [k == place for k in range(6)]
    ends = [0.2 * flag for flag in flags]
    return Affine([-end for end in ends], ends, learn_low=flags, learn_high=flags)


@pytest.fixture
def bars(generator, monkeypatch):
    """Targets know where a bar stands from the left, not how high; both shifts are learned."""
    for name, value in {
        "NUM_DATA": 80,
        "NUM_JUDGES": 100,
        "NUM_SAMPLES": 8,
        "NUM_STEPS": 12,
    }.items():
        monkeypatch.setattr(proportions, name, value)
    monkeypatch.setattr(subsets, "MANY_DATA", 50)
    places = torch.rand(120, 2, generator=generator) * 4 + 2
    at = torch.arange(8.0)
    columns, rows = (torch.exp(-((at - place[:, None]) ** 2)) for place in places.unbind(1))
    y = torch.stack([places[:, 0].sin(), places[:, 0].cos()], 1).double()
    orbit = compose(shift(4), shift(5))
    return shifted_model(orbit), rows[:, :, None] * columns[:, None, :], y


def test_a_range_that_the_data_have_grows_beside_one_that_they_have_not(bars, generator):
    model, images, y = bars
    before = {name: p.clone() for name, p in model.likelihood.state_dict().items()}
    balance(model, images, y, max_ratio=300.0, generator=generator)
    along, across = (part.high.max().item() for part in subsets.learned_ranges(model.orbit))
    print(along, across, model.kernel.lengthscale)
    assert across > 3 * along
    for part in subsets.learned_ranges(model.orbit):
        assert_close(part.low, -part.high)
    assert all(torch.equal(p, before[n]) for n, p in model.likelihood.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def test_what_other_data_do_not_confirm_is_undone(bars, generator, monkeypatch):
    model, images, y = bars
    found = proportions._gradients
    monkeypatch.setattr(
        proportions, "_gradients", lambda *given: [-gradient for gradient in found(*given)]
    )
    before = model.orbit.describe(), model.kernel.lengthscale.item()
    balance(model, images, y, max_ratio=300.0, generator=generator)
    assert (model.orbit.describe(), model.kernel.lengthscale.item()) == before


def test_an_orbit_that_is_no_composition_keeps_its_proportions(generator):
    model = shifted_model(Affine(-0.3, 0.3))
    images, y = torch.rand(300, 8, 8, generator=generator), torch.zeros(300, 2)
    state, before = generator.get_state(), model.orbit.describe()
    balance(model, images, y, max_ratio=300.0, generator=generator)
    assert torch.equal(state, generator.get_state())
    assert model.orbit.describe() == before


@pytest.mark.parametrize(("num_data", "coarse"), [(40, True), (300, False)])
def test_few_data_and_slow_kernels_keep_their_proportions(num_data, coarse, generator):
    images, y = torch.rand(num_data, 8, 8, generator=generator), torch.zeros(num_data, 2)
    model = shifted_model(compose(Affine(-0.1, 0.1), LocalDeformation(0.02)))
    model.kernel.coarse = coarse
    before = model.orbit.describe()
    balance(model, images, y, max_ratio=300.0, generator=generator)
    assert model.orbit.describe() == before


def test_a_feature_map_without_gradients_leaves_the_ranges_alone(bars, generator):
    class Numb(torch.nn.Module):
        def forward(self, x):
            return x.detach().flatten(1)

    model, images, y = bars
    model.feature_map = Numb()
    before = model.orbit.describe()
    balance(model, images, y, max_ratio=300.0, generator=generator)
    assert model.orbit.describe() == before


def test_an_end_that_is_frozen_at_0_stays_there_and_the_other_is_learned(bars, generator):
    model, images, y = bars
    one_sided = Affine(0.0, 0.2, learn_low=False)
    model.orbit = compose(shift(4), one_sided)
    balance(model, images, y, max_ratio=300.0, generator=generator)
    assert torch.equal(one_sided.ranges.low, torch.zeros(6))
    assert torch.isfinite(one_sided.ranges.high).all()
    assert (one_sided.ranges.high - 0.2).abs().max() > 0.02


def test_covariances_that_rounding_has_made_indefinite_have_a_gradient(generator, float64):
    points = torch.randn(30, 1, generator=generator)
    unit = covariance(RBF(1.0, 3.0), points, points).detach().float().double()
    assert torch.linalg.eigvalsh(unit).min() < 0
    assert torch.isfinite(evidence_gradient(unit, points.sin(), 1e12)).all()
