"""Leave-one-out predictions against models that never saw the datum."""

import pytest
import torch

from orbitgp import (
    RBF,
    Affine,
    CyclicShifts,
    InducingPosterior,
    InvariantGP,
    OneHotGaussian,
    mean_pairs,
    solve,
    statistics,
)
from orbitgp.training.calibration import calibrate, fitted_pieces, left_out
from orbitgp.training.group import ALONE
from orbitgp.training.passes import Resident, pass_statistics
from orbitgp.training.solving import Solved
from tests.conftest import assert_close

pytestmark = pytest.mark.usefixtures("float64")


def problem(generator, num_data=30):
    x = torch.randn(num_data, 4, generator=generator)
    y = (x.sum(1) + 0.7 * torch.randn(num_data, generator=generator) > 0).long()
    model = InvariantGP(
        orbit=CyclicShifts(4),
        kernel=RBF(1.0, 1.5),
        posterior=InducingPosterior(x[:10], 2, jitter=0.0),
        likelihood=OneHotGaussian(2, noise=0.1),
    )
    fit(model, x, y)
    return model, x, y


def fit(model, x, y):
    batch = statistics(model, x, y, num_samples=None, generator=None, weigh=mean_pairs)
    model.posterior.assign(solve(batch, model.posterior.prior_covariance(model.kernel).detach()))


def solved(model, x, y):
    prior = model.posterior.prior_covariance(model.kernel).detach()
    batch = statistics(model, x, y, num_samples=None, generator=None, weigh=mean_pairs)
    return Solved(model, batch, prior, torch.linalg.cholesky(prior), seed=4)


def test_left_out_is_what_a_model_without_the_datum_says(generator):
    model, x, y = problem(generator)
    everything = solved(model, x, y)
    pieces = list(fitted_pieces(everything, Resident(x, y)))
    found = left_out(model, pieces, everything.prior_factor)
    for place in range(5):
        others = torch.arange(len(x)) != place
        fit(model, x[others], y[others])
        expected = model.predict(x[place : place + 1])
        assert_close(found.mean[place : place + 1], expected.mean, tolerance=1e-8)
        assert_close(found.variance[place : place + 1], expected.variance, tolerance=1e-8)


def test_pieces_are_the_draws_of_the_fit(generator):
    """The same statistics from them as from the pass with that seed."""
    x = torch.rand(700, 3, 3, generator=generator)
    y = torch.arange(700) % 2
    model = InvariantGP(
        orbit=Affine(-0.3, 0.3),
        kernel=RBF(1.0, 1.5),
        posterior=InducingPosterior(x[:10].flatten(1), 2),
        likelihood=OneHotGaussian(2),
    )
    draws = {"num_samples": 8, "weigh": mean_pairs, "seed": 4, "group": ALONE}
    expected = pass_statistics(model, Resident(x, y), **draws)
    prior = model.posterior.prior_covariance(model.kernel).detach()
    whole = Solved(model, expected, prior, torch.linalg.cholesky(prior), seed=4)
    pieces = fitted_pieces(whole, Resident(x, y))
    means = [(model.covariances(sample, mean_pairs).mean, y) for sample, _, y in pieces]
    bounds = [model.likelihood.quadratic_bound(x[: len(y)], y).linear for _, y in means]
    linear = sum(mean.mT @ bound for (mean, _), bound in zip(means, bounds, strict=True))
    assert_close(linear, expected.linear)


def test_calibration_raises_the_probability_of_left_out_labels(generator):
    model, x, y = problem(generator, 200)
    everything = solved(model, x, y)
    prediction = left_out(model, fitted_pieces(everything, Resident(x, y)), everything.prior_factor)

    def log_probability():
        found = model.likelihood.class_probabilities(prediction)
        return found[torch.arange(len(y)), y].log().mean().item()

    before = log_probability()
    calibrate(everything, Resident(x, y), torch.arange(10, 200), generator=generator)
    print(f"factor {model.likelihood.spread.item():.3f}: {before:.4f} → {log_probability():.4f}")
    assert log_probability() > before + 1e-3
    assert model.likelihood.spread != 1
