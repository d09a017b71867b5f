"""The evidence of a subset, its gradient, and where learning ends."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import one_hot

from orbitgp import (
    RBF,
    Affine,
    FunctionOrbit,
    GaussianNoise,
    Identity,
    Rotation,
    UniformRange,
    compose,
)
from orbitgp.hyperparameters.learn import (
    Landscape,
    best_length,
    climb,
    fine_scan,
    lost_without,
    scan,
    scan_each,
    search_width,
)
from orbitgp.hyperparameters.parameters import NARROWEST, Parameters
from orbitgp.hyperparameters.subset_evidence import Subset, best_scales, scales_with_gradient
from orbitgp.likelihoods.gaussian import Gaussian
from orbitgp.orbit_model import OrbitModel

pytestmark = pytest.mark.usefixtures("untyped")


def bars(num_data=40, seed=0):
    """Bars that lie or stand, anywhere, and their one-hot labels."""
    generator = torch.Generator().manual_seed(seed)
    images = 0.05 * torch.rand(num_data, 8, 8, generator=generator, dtype=torch.float64)
    labels = torch.randint(2, (num_data,), generator=generator)
    places = torch.randint(1, 7, (num_data,), generator=generator)
    for image, label, place in zip(images, labels, places, strict=True):
        image[(slice(None), place) if label else (place, slice(None))] += 1.0
    return images, one_hot(labels).double()


def landscape(orbit, num_draws=4, max_ratio=300.0, data=None):
    x, targets = bars() if data is None else data
    model = OrbitModel(orbit=orbit, kernel=RBF(1.0, 3.0).double(), likelihood=Gaussian(0.1))
    noise = None
    if not isinstance(orbit, Identity):
        noise = orbit.shared_noise(num_draws, generator=torch.Generator().manual_seed(1))
    subset = Subset(x, targets, noise)
    return Landscape(model, Parameters(model), subset, max_ratio)


@pytest.mark.parametrize("max_ratio", [300.0, 2.0])
@pytest.mark.parametrize(
    "orbit",
    [
        lambda: Affine(-0.1, 0.1),
        lambda: Affine(-0.1, 0.1, symmetric=False),
        lambda: Affine(-0.1, 0.1, learn_high=[True, False] * 3, learn_low=[True, False] * 3),
        lambda: Rotation(-0.3, 0.5),
        lambda: GaussianNoise(0.1, event_shape=(8, 8)),
        Identity,
    ],
)
def test_gradient_of_the_evidence(orbit, max_ratio):
    """By central differences, inside the bound of the ratio and on it."""
    ground = landscape(orbit().double(), max_ratio=max_ratio)
    z = ground.parameters.vector()
    scales, gradient = ground.with_gradient(z)
    assert scales.evidence == pytest.approx(ground.at(z).evidence, abs=1e-8)
    step = 1e-4
    for place in range(len(z)):
        ends = []
        for sign in (1, -1):
            other = z.copy()
            other[place] += sign * step
            ends.append(ground.at(other).evidence)
        slope = (ends[0] - ends[1]) / (2 * step)
        assert gradient[place] == pytest.approx(slope, rel=1e-3, abs=1e-2), place


def test_scales_are_the_best_there_are():
    x, y = bars()
    covariance = torch.exp(-0.05 * torch.cdist(x.flatten(1), x.flatten(1)).square())
    found = best_scales(covariance, y, 300.0)
    eye = torch.eye(len(x), dtype=torch.float64)

    def evidence(ratio, noise):
        matrix = noise * (ratio * covariance + eye)
        normal = torch.distributions.MultivariateNormal(torch.zeros(len(x)).double(), matrix)
        return normal.log_prob(y.mT).sum().item()

    assert evidence(found.ratio, found.noise) == pytest.approx(found.evidence, abs=1e-8)
    for ratio in (0.9, 1.1):
        for noise in (0.9, 1.0, 1.1):
            worse = evidence(min(ratio * found.ratio, 300.0), noise * found.noise)
            assert worse < found.evidence + 1e-6


def test_the_gradient_of_the_covariance_is_symmetric():
    x, y = bars()
    covariance = torch.exp(-0.05 * torch.cdist(x.flatten(1), x.flatten(1)).square())
    _, gradient = scales_with_gradient(covariance, y, 300.0)
    torch.testing.assert_close(gradient, gradient.mT)


def test_parameters_are_a_vector_and_back():
    orbit = Affine(-0.1, 0.2, learn_low=False, symmetric=False)
    model = OrbitModel(orbit=orbit, kernel=RBF(1.0, 2.0), likelihood=Gaussian())
    parameters = Parameters(model)
    z = parameters.vector()
    np.testing.assert_allclose(z, [math.log(0.2)] * 6 + [math.log(2.0)], rtol=1e-5)
    parameters.assign(z + 0.3)
    np.testing.assert_allclose(parameters.vector(), z + 0.3, rtol=1e-5)
    assert orbit.ranges.low.tolist() == pytest.approx([-0.1] * 6)
    assert parameters.bounds[0][1] == pytest.approx(math.log(math.pi))


def shifted(num_data=60, width=0.2, seed=0):
    """Bumps whose place does not matter within a width, of two shapes."""
    random = np.random.default_rng(seed)
    labels = random.integers(2, size=num_data)
    time = np.linspace(-1, 1, 40)
    places = random.uniform(-width, width, num_data)
    sizes = np.where(labels, 0.08, 0.16)
    series = np.exp(-0.5 * ((time - places[:, None]) / sizes[:, None]) ** 2)
    series += 0.05 * random.standard_normal(series.shape)
    return torch.from_numpy(series), one_hot(torch.from_numpy(labels)).double()


def move(x, shift):
    """Linear interpolation at moved times."""
    size = x.shape[1]
    places = (torch.arange(size).to(x) - shift * size / 2).clamp(0, size - 1.001)
    low = places.floor().long()
    part = places - low
    return x.gather(1, low) * (1 - part) + x.gather(1, low + 1) * part


def test_a_range_is_found_from_any_start():
    ends = []
    for start in (0.004, 0.03, 0.2, 0.6):
        orbit = FunctionOrbit(move, UniformRange(-start, start), names=["shift"]).double()
        ground = landscape(orbit, num_draws=16, data=shifted())
        z, _ = scan(ground, best_length(ground, ground.parameters.vector())[0])
        z, _ = fine_scan(ground, z)
        ends.append(climb(ground, z, max_steps=30, on_step=lambda *_: None))
    evidences, widths = [s.evidence for _, s in ends], [math.exp(z[0]) for z, _ in ends]
    assert max(evidences) - min(evidences) < 2, evidences
    assert max(widths) < 1.1 * min(widths), widths


def test_the_search_never_ends_below_no_invariance():
    """Labels that depend on the place, so that a wide shift does harm."""
    random = np.random.default_rng(0)
    places = random.uniform(-0.6, 0.6, 60)
    series = np.exp(-0.5 * ((np.linspace(-1, 1, 40) - places[:, None]) / 0.1) ** 2)
    data = torch.from_numpy(series), one_hot(torch.from_numpy((places > 0) * 1)).double()
    orbit = FunctionOrbit(move, UniformRange(-0.4, 0.4)).double()
    ground = landscape(orbit, data=data)
    z, found = search_width(ground, ground.parameters.vector())
    none = landscape(Identity(), data=data)
    alone = best_length(none, none.parameters.vector())[1]
    start = ground.at(ground.parameters.vector())
    assert found.evidence >= max(alone.evidence, start.evidence) - 1e-6
    off = np.array([math.log(NARROWEST), none.parameters.vector()[0]])
    off[1] = best_length(none, none.parameters.vector())[0][0]
    assert ground.at(off).evidence == pytest.approx(alone.evidence, abs=1e-3)
    assert ground.at(z).evidence == pytest.approx(found.evidence)


def test_ranges_that_do_harm_are_left_out():
    """A scan over each range alone takes the shift and leaves the change of sign."""

    def function(x, parameters):
        return move(x, parameters[:, :1]) * torch.cos(8 * parameters[:, 1:])

    orbit = FunctionOrbit(function, UniformRange([-0.1] * 2, [0.1] * 2)).double()
    ground = landscape(orbit, num_draws=16, data=shifted())
    start = ground.parameters.vector()
    z, found = scan_each(ground, start, start)
    assert z[0] > math.log(0.1)
    assert z[1] == math.log(NARROWEST)
    both = start.copy()
    both[:2] = z[0]
    none = landscape(Identity(), data=shifted())
    alone = best_length(none, none.parameters.vector())[1]
    assert found.evidence > max(alone.evidence, ground.at(both).evidence) + 5
    assert ground.at(z).evidence == pytest.approx(found.evidence)


def test_parts_of_a_composition_are_switched_off_in_turn():
    orbit = compose(Affine(-0.1, 0.1), Rotation(-0.3, 0.3))
    model = OrbitModel(orbit=orbit, kernel=RBF(1.0, 3.0), likelihood=Gaussian(0.1))
    parameters = Parameters(model)
    first, second = parameters.without_parts(parameters.vector())
    off = np.full(6, math.log(NARROWEST))
    np.testing.assert_allclose(first, [*off, math.log(0.3), math.log(3.0)], rtol=1e-5)
    np.testing.assert_allclose(second, [*[math.log(0.1)] * 6, off[0], math.log(3.0)], rtol=1e-5)
    assert Parameters(landscape(Affine(-0.1, 0.1)).model).without_parts(first) == []


def test_what_a_range_is_worth():
    """Of two parameters one does nothing."""

    def function(x, parameters):
        return move(x, parameters[:, :1]) + 0 * parameters[:, 1:]

    orbit = FunctionOrbit(function, UniformRange([-0.2] * 2, [0.2] * 2)).double()
    ground = landscape(orbit, num_draws=16, data=shifted())
    z = best_length(ground, ground.parameters.vector())[0]
    lost = lost_without(ground, z)
    assert lost[0] > 5
    assert abs(lost[1]) < 1e-6
    np.testing.assert_allclose(ground.parameters.vector(), z, rtol=1e-6)


def test_places_without_numbers_are_avoided():
    def function(x, parameter):
        return x + 0 * torch.log(0.5 - parameter)

    orbit = FunctionOrbit(function, UniformRange(-0.3, 0.3)).double()
    ground = landscape(orbit, data=shifted())
    z, found = scan(ground, ground.parameters.vector())
    assert math.isfinite(found.evidence)
    assert math.exp(z[0]) < 0.5
