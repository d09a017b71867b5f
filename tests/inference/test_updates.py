import pytest
import torch

from orbitgp import (
    RBF,
    Gaussian,
    GaussianNoise,
    GradientUpdate,
    InducingPosterior,
    InvariantGP,
    NaturalUpdate,
    NumericalError,
    Rotation,
    elbo,
)
from tests.conftest import assert_close

pytestmark = pytest.mark.usefixtures("float64")


def model_and_data(generator):
    x = torch.randn(40, 2, generator=generator)
    y = torch.sin(2 * x[:, 0])
    model = InvariantGP(
        orbit=GaussianNoise(0.2, event_shape=(2,)),
        kernel=RBF(),
        posterior=InducingPosterior(x[:15], 1),
        likelihood=Gaussian(0.1),
    )
    return model, x, y


def bound(model, x, y):
    draws = {"num_samples": 64, "generator": torch.Generator().manual_seed(9)}
    with torch.no_grad():
        return elbo(model, x, y, num_data=40, **draws).value


def test_gradient_update_climbs_the_bound(generator):
    model, x, y = model_and_data(generator)
    before = bound(model, x, y)
    update = GradientUpdate(
        model, torch.optim.Adam(model.parameters(), 0.02), 40, num_samples=4, generator=generator
    )
    returned = [update.step(x[i::4], y[i::4]).value.item() for _ in range(50) for i in range(4)]
    after = bound(model, x, y)
    assert after > before + 10
    assert sum(returned[-20:]) > sum(returned[:20])


def test_natural_update_is_better_than_the_prior_and_no_worse_twice(generator):
    model, x, y = model_and_data(generator)
    before = bound(model, x, y)
    update = NaturalUpdate(model, num_data=40, num_samples=64, generator=generator)
    update.step(x, y)
    once = bound(model, x, y)
    assert once > before + 10
    NaturalUpdate(model, 40, num_samples=64, generator=generator, step_size=0.5).step(x, y)
    assert bound(model, x, y) > once - 1


def test_a_bound_that_is_not_finite_moves_nothing(generator):
    model, x, y = model_and_data(generator)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    update = GradientUpdate(
        model, torch.optim.Adam(model.parameters(), 0.1), 40, num_samples=2, generator=generator
    )
    with pytest.raises(NumericalError, match="no step was taken"):
        update.step(x, y * 1e200)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_gradient_update_includes_the_prior_of_the_ranges(generator):
    """The same step with and without a prior differs by lr · ∂ log prior / ∂ raw / N."""
    images, targets = torch.rand(6, 5, 5, generator=generator), torch.zeros(6)
    prior = torch.distributions.Exponential(torch.tensor(3.0))
    orbits = [Rotation(-0.3, 0.2), Rotation(-0.3, 0.2, prior=prior)]
    (slope,) = torch.autograd.grad(orbits[1].log_prior(), orbits[1].ranges.raw)
    for orbit in orbits:
        model = InvariantGP(
            orbit=orbit,
            kernel=RBF(lengthscale=3.0),
            posterior=InducingPosterior(images.flatten(1), 1),
            likelihood=Gaussian(),
        )
        optimizer = torch.optim.SGD(orbit.parameters(), 0.5)
        draws = torch.Generator().manual_seed(4)
        GradientUpdate(model, optimizer, 6, num_samples=2, generator=draws).step(images, targets)
    assert_close(orbits[1].ranges.raw - orbits[0].ranges.raw, 0.5 * slope / 6)
