"""Scales before the first step, and with every q(u): the bound is at its highest there."""

import copy

import pytest
import torch

from orbitgp import RBF, Affine, Gaussian, InducingPosterior, InvariantGP
from orbitgp.training.climbing import highest
from orbitgp.training.first_scales import take_first_scales
from orbitgp.training.group import ALONE
from orbitgp.training.refreshing import Refresh, has_free_scales

pytestmark = pytest.mark.usefixtures("float64")

NUM_DATA = 80


def problem(generator, lengthscale=2.0, noise=0.2):
    x = torch.rand(NUM_DATA, 5, 5, generator=generator)
    brightness = x.mean((1, 2))
    y = torch.stack([(20 * brightness).sin(), (15 * brightness).cos()], 1)
    y = y - y.mean(0) + 0.1 * torch.randn(NUM_DATA, 2, generator=generator)
    model = InvariantGP(
        orbit=Affine(-0.1, 0.1),
        kernel=RBF(1.0, lengthscale),
        posterior=InducingPosterior(x.flatten(1)[:40], 2),
        likelihood=Gaussian(noise),
    )
    return model, x, y


def ground(x, y, generator):
    """All data, so that q(u) is the best one for those that judge it."""
    counts = {"size": NUM_DATA, "num_samples": 8, "num_data": NUM_DATA}
    return Refresh.of(x, y, **counts, generator=generator, group=ALONE)


def scales_of(model):
    kernel = model.kernel
    return kernel.lengthscale.item(), kernel.variance.item(), model.likelihood.noise.tolist()


def bound_of(refresh, model):
    """With the best scales at the model's lengthscale."""
    return refresh.scales(refresh.solved(model)).bound


@pytest.mark.parametrize("factor", [1 / 3, 1.0, 3.0])
def test_no_lengthscale_has_more_evidence(generator, factor):
    model, x, y = problem(generator, lengthscale=2.0 * factor)
    begun = copy.deepcopy(model)
    draws = {"generator": torch.Generator().manual_seed(1), "group": ALONE}
    take_first_scales(model, x, y, num_data=NUM_DATA, **draws)
    judge = ground(x, y, torch.Generator().manual_seed(1))  # the same data and draws
    bounds = {}
    for power in range(-10, 11):
        other = copy.deepcopy(begun)
        other.kernel.lengthscale = begun.kernel.lengthscale.detach() * 0.8**power
        bounds[other.kernel.lengthscale.item()] = bound_of(judge, other)
    found = bound_of(judge, model)
    print(f"ℓ = {model.kernel.lengthscale.item():.2f}: {found:.2f} nats; {bounds}")
    assert found > max(bounds.values()) - 1  # their ratios are not the same ones
    assert found > bounds[begun.kernel.lengthscale.item()]


def test_a_refresh_takes_the_scales_of_the_highest_bound(generator):
    model, x, y = problem(generator, noise=2.0)
    refresh = ground(x, y, generator)
    before = bound_of(refresh, model)
    refresh.take(model, generator=generator)
    assert model.likelihood.noise.item() < 1.0
    assert bound_of(refresh, model) == pytest.approx(before, abs=1e-3)
    best = refresh.scales(refresh.solved(model)).q
    torch.testing.assert_close(model.posterior.q.mean, best.mean, rtol=1e-4, atol=1e-4)
    assert best.mean.any()
    state = copy.deepcopy(model.state_dict())
    refresh.take(model, generator=generator)  # the same data and draws: nothing is left to do
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, state[name], rtol=1e-4, atol=1e-4)


def test_judges_are_data_that_were_not_fitted(generator):
    _, x, y = problem(generator)
    counts = {"size": 50, "num_samples": 8, "num_data": NUM_DATA}
    refresh = Refresh.of(x, y, **counts, generator=generator, group=ALONE)
    fitted, judges = (data.x.flatten(1) for data in (refresh.examples, refresh.judges))
    assert len(fitted) == 50
    assert not (judges[:30, None] == fitted).all(-1).any()
    assert len(judges) == NUM_DATA


@pytest.mark.parametrize("held", ["variance", "noise", "noises", "lengthscale"])
def test_scales_that_are_not_learned_stay(generator, held):
    model, x, y = problem(generator)
    if held == "noises":
        model.likelihood = Gaussian([0.2, 0.3])
        model.posterior = InducingPosterior(x.flatten(1)[:40], 2, shared_covariance=False)
    else:
        kernel, likelihood = model.kernel, model.likelihood
        part = {"variance": kernel.raw_variance, "lengthscale": kernel.raw_lengthscale}
        part.get(held, likelihood.raw_noise).requires_grad_(False)
    assert has_free_scales(model) == (held == "lengthscale")
    before = scales_of(model)
    draws = {"generator": generator, "group": ALONE}
    take_first_scales(model, x, y, num_data=NUM_DATA, **draws)
    assert scales_of(model) == before
    ground(x, y, generator).take(model, generator=generator)
    assert (scales_of(model) == before) == (held != "lengthscale")
    assert model.posterior.mean.any()
    assert model.posterior.q.narrowing < 1


def test_a_climb_ends_where_no_neighbour_is_higher():
    def score(place):
        return -((place[0] - 7) ** 2) - (place[1] - 2) ** 2

    assert highest(score, (0, 5), (10, 6)) == (7, 2)
    assert highest(score, (0, 5), (4, 6)) == (3, 2)  # at the border
