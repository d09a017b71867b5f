"""Predictions: exact on finite orbits, with honest errors on sampled ones."""

import pytest
import torch

from orbitgp import (
    RBF,
    Affine,
    CyclicShifts,
    Gaussian,
    GaussianNoise,
    Identity,
    InducingPosterior,
    InputError,
    InvariantGP,
    InvariantKernel,
    OneHotGaussian,
    Orbit,
    elbo,
)
from orbitgp.kernels import covariance
from orbitgp.orbit_model import check_part
from orbitgp.ustatistics import mean_weights
from tests.conftest import assert_close, assert_mean
from tests.models import random_model, take_best_q
from tests.reference.noise_orbit import exact_moments
from tests.reference.slow import slow_moments

pytestmark = pytest.mark.usefixtures("float64")


def noise_model(generator):
    points = torch.randn(5, 2, generator=generator)
    orbit = GaussianNoise(0.4, event_shape=(2,))
    return random_model(orbit, generator, points=points), torch.randn(4, 2, generator=generator)


def test_whole_orbits_are_predicted_exactly(generator):
    model = random_model(CyclicShifts(3), generator, points=torch.randn(5, 3, generator=generator))
    x = torch.randn(4, 3, generator=generator)
    prediction = model.predict(x, batch_size=3)
    model.posterior.log_narrowing.data.zero_()  # that of f at the data, not at new inputs
    sample = model.sample_orbit(x, None, generator=None)
    mean, _, variance = slow_moments(model, sample.points, mean_weights(3))
    assert_close(prediction.mean, mean.detach(), tolerance=1e-6)
    assert_close(prediction.variance, variance.detach(), tolerance=1e-6)
    assert (prediction.mean_error == 0).all()
    assert (prediction.variance_error == 0).all()


def test_full_data_prediction_is_that_of_the_exact_gp(generator):
    orbit, noise = CyclicShifts(3), 0.05
    x, y = torch.randn(10, 3, generator=generator), torch.randn(10, 1, generator=generator)
    points = orbit.enumerate(x).points.flatten(0, 1)
    model = InvariantGP(
        orbit=orbit,
        kernel=RBF(1.3, 1.1),
        posterior=InducingPosterior(points, 1, jitter=1e-9),
        likelihood=Gaussian(noise),
    )
    take_best_q(model, x, y)
    test = torch.randn(5, 3, generator=generator)
    prediction = model.predict(test)
    kernel = InvariantKernel(model.kernel, orbit)
    with torch.no_grad():
        gram = covariance(kernel, x, x) + noise * torch.eye(10)
        cross = covariance(kernel, test, x)
        mean = cross @ torch.linalg.solve(gram, y)
        spread = covariance(kernel, test, test) - cross @ torch.linalg.solve(gram, cross.T)
    assert_close(prediction.mean, mean, tolerance=1e-5)
    assert_close(prediction.variance[:, 0], spread.diagonal(), tolerance=1e-5)
    draws = model.predict_f_samples(test, 20_000, generator=generator)[..., 0]
    assert_mean(draws, mean, "mean of draws")
    centred = draws - mean[:, 0]
    assert_mean(centred[:, :, None] * centred[:, None, :], spread, "joint covariance of draws")


def test_monte_carlo_errors_are_the_spread_of_repeated_predictions(generator):
    model, x = noise_model(generator)
    repeats = [model.predict(x, num_samples=64, generator=generator) for _ in range(400)]
    for name in ("mean", "variance"):
        values = torch.stack([getattr(p, name) for p in repeats])
        errors = torch.stack([getattr(p, f"{name}_error") for p in repeats])
        # both sides estimate the variance of one prediction
        square = (values - values.mean(0)) ** 2 * 400 / 399
        assert_mean((square - errors**2)[..., 0], torch.zeros(4), f"{name}: spread² − error²")


def test_prediction_agrees_with_the_closed_form_within_its_error(generator):
    model, x = noise_model(generator)
    model.posterior.log_narrowing.data.zero_()  # that of f at the data, not at new inputs
    exact = exact_moments(model, x)
    prediction = model.predict(x, num_samples=4000, generator=generator)
    z = (prediction.mean - exact.mean) / prediction.mean_error
    assert z.abs().max() < 4
    z = (prediction.variance - exact.variance) / prediction.variance_error
    assert z.abs().max() < 4


def test_variance_is_never_negative(generator):
    """Points seen often, tiny noise, float32 inputs: rounding at its worst."""
    x = torch.randn(200, 2, generator=generator).float()
    model = InvariantGP(
        orbit=GaussianNoise(0.01, event_shape=(2,)).float(),
        kernel=RBF(lengthscale=3.0).float(),
        posterior=InducingPosterior(x[:60], 1),
        likelihood=Gaussian(1e-5),
    )
    y = torch.randn(200, generator=generator)
    take_best_q(model, x, y, num_samples=2, generator=generator)
    prediction = model.predict(x, num_samples=2, generator=generator)
    assert (prediction.variance >= 0).all()
    assert torch.isfinite(prediction.mean).all()


def test_same_generator_same_prediction(generator):
    model, x = noise_model(generator)
    first, second = (
        model.predict(x, num_samples=8, generator=torch.Generator().manual_seed(1)) for _ in "12"
    )
    assert torch.equal(first.mean, second.mean)


def test_missing_draws_are_asked_for(generator):
    model, x = noise_model(generator)
    with pytest.raises(InputError, match="give num_samples"):
        model.predict(x)
    with pytest.raises(InputError, match="pass generator"):
        model.predict(x, num_samples=4)
    with pytest.raises(InputError, match="at least 2"):
        model.predict(x, num_samples=1, generator=generator)
    with pytest.raises(InputError, match="at least 1"):
        model.predict(x, num_samples=0, generator=generator)


def test_more_samples_than_points_are_the_whole_orbit(generator):
    """So that one loop serves finite and infinite orbits alike."""
    model = random_model(CyclicShifts(3), generator, points=torch.randn(5, 3, generator=generator))
    x = torch.randn(4, 3, generator=generator)
    assert torch.equal(model.predict(x, num_samples=8).mean, model.predict(x).mean)


def test_memory_of_predict_does_not_hold_a_matrix_for_each_input(generator):
    """256 inputs at M = 1000 would be 2 GB of copies of the factor; the answer must be quick."""
    points = torch.randn(1000, 2, generator=generator)
    model = InvariantGP(
        orbit=GaussianNoise(0.1, event_shape=(2,)),
        kernel=RBF(lengthscale=0.1),
        posterior=InducingPosterior(points, 1),
        likelihood=Gaussian(),
    )
    x = torch.randn(256, 2, generator=generator)
    with torch.profiler.profile(profile_memory=True) as profiler:
        model.predict(x, num_samples=2, generator=generator)
    largest = max(event.self_cpu_memory_usage for event in profiler.events())
    assert largest < 100e6


def test_parts_of_the_wrong_kind_are_refused():
    with pytest.raises(InputError, match="needs an instance of Orbit; got <class"):
        check_part(Affine, Orbit)  # the class, where an instance was meant


def test_mismatches_are_named_at_the_door(generator):
    model, x = noise_model(generator)
    draws = {"num_samples": 2, "generator": generator}
    with pytest.raises(InputError, match=r"float\(\) / 255"):
        model.predict(torch.zeros(3, 2, dtype=torch.uint8), **draws)
    with pytest.raises(InputError, match="targets must be finite"):
        elbo(model, x, torch.full((4, 2), torch.nan), num_data=4, **draws)
    with pytest.raises(InputError, match="num_data counts all"):
        elbo(model, x, torch.zeros(4, 2), num_data=3, **draws)
    with pytest.raises(InputError, match="num_outputs=3"):
        elbo(model, x, torch.zeros(4, 3), num_data=4, **draws)
    model.posterior.points.data = torch.zeros(5, 7)
    with pytest.raises(InputError, match="7 coordinates"):
        model.predict(x, **draws)
    model, x = noise_model(generator)
    model.likelihood = Gaussian([0.1, 0.2])
    with pytest.raises(InputError, match="shared_covariance=False"):
        take_best_q(model, x, torch.zeros(4, 2), **draws)


@pytest.mark.parametrize(
    ("shape", "orbit"),
    [
        ((1, 6, 6), Affine()),
        ((3, 6, 6), Affine()),
        ((12,), CyclicShifts(12)),
        ((4, 3), CyclicShifts(4, dim=0)),
        ((5,), Identity()),
    ],
)
def test_inputs_of_any_shape(shape, orbit, generator):
    """Images, series, point sets, vectors; with a feature map, inducing points live behind it."""
    x = torch.randn(9, *shape, generator=generator).float()
    y = torch.randint(3, (9,), generator=generator)
    num_features = x[0].numel()
    features = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(num_features, 2)).float()
    model = InvariantGP(
        orbit=orbit.float(),
        kernel=RBF().float(),
        posterior=InducingPosterior(torch.randn(4, 2, generator=generator).float(), 3),
        likelihood=OneHotGaussian(3),
        feature_map=features,
    )
    draws = {"num_samples": 1 if orbit.size == 1 else 4, "generator": generator}
    take_best_q(model, x, y, **draws)
    prediction = model.predict(x, **draws)
    assert prediction.mean.shape == (9, 3)
    probabilities = model.likelihood.class_probabilities(prediction)
    assert_close(probabilities.sum(1), torch.ones(9))
