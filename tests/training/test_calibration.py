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
    PolyaGamma,
    Softmax,
    mean_pairs,
    solve,
    statistics,
)
from orbitgp.likelihoods.base import log_of_own
from orbitgp.training.calibration import (
    calibrate_codes,
    calibrate_odds,
    fitted_pieces,
    highest,
    left_out,
    left_out_codes,
)
from orbitgp.training.group import ALONE
from orbitgp.training.passes import Resident, pass_statistics
from orbitgp.training.solving import Solved
from orbitgp.values import Prediction
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
    rows = torch.arange(10, 200)
    prediction, labels = left_out_codes(everything, Resident(x, y), rows, generator=generator)
    assert torch.equal(labels, y[10:])

    def log_probability():
        return log_of_own(model.likelihood.class_probabilities(prediction), labels).mean().item()

    before = log_probability()
    calibrate_codes(model.likelihood, prediction, labels)
    print(f"factor {model.likelihood.spread.item():.3f}: {before:.4f} → {log_probability():.4f}")
    assert log_probability() > before + 1e-3
    assert model.likelihood.spread != 1


@pytest.mark.parametrize("factor", [0.5, 4.0])
def test_log_odds_that_are_too_small_or_too_large_are_found_out(factor, generator):
    f = 3 * torch.randn(1000, 2, generator=generator)
    labels = torch.multinomial(Softmax(3).log_probabilities(f).exp(), 1, generator=generator)[:, 0]
    likelihood = Softmax(3)
    said = Prediction.exact(f / factor, torch.full_like(f, 1e-6))
    calibrate_odds(likelihood, said, labels)
    assert 0.7 < likelihood.factor.item() / factor < 1.4, likelihood.factor


def test_noisy_log_odds_are_taken_with_their_variance(generator):
    f = 3 * torch.randn(4000, 1, generator=generator)
    labels = (torch.rand(4000, 1, generator=generator) < f.sigmoid()).long()[:, 0]
    # given m = f + noise of variance v_n, f is N(κm, κv_n), κ = 9 / (9 + v_n)
    v = torch.where(torch.arange(4000) % 2 == 0, 0.01, 30.0).unsqueeze(1)
    m = f + v.sqrt() * torch.randn(4000, 1, generator=generator)
    shrunk = 9 / (9 + v)
    likelihood = PolyaGamma()
    calibrate_odds(likelihood, Prediction.exact(shrunk * m, shrunk * v), labels)
    assert likelihood.spread.item() >= 0.25
    assert 0.8 < likelihood.factor.item() < 1.25


@pytest.mark.parametrize("likelihood", [PolyaGamma(), OneHotGaussian(2)])
def test_nobody_is_surer_than_the_labels_that_were_left_out_allow(likelihood, generator):
    """All of a hundred are right: the next may be wrong once in a hundred times or more."""
    labels = torch.arange(100) % 2
    f = (2 * labels - 1.0).unsqueeze(1)
    if isinstance(likelihood, PolyaGamma):
        calibrate_odds(likelihood, Prediction.exact(f, torch.zeros_like(f)), labels)
        left_out = Prediction.exact(f, torch.zeros_like(f))
    else:
        left_out = Prediction.exact(likelihood.encode(labels), torch.full((100, 2), 1e-3))
        calibrate_codes(likelihood, left_out, labels)
    wrong = 1 - log_of_own(likelihood.class_probabilities(left_out), labels).exp()
    print(f"{wrong.min():.4f} … {wrong.max():.4f}")
    assert (wrong > 0.002).all()
    assert (wrong < 0.02).all()


def test_uphill_is_to_the_place_that_no_neighbour_is_higher_than():
    tried = []

    def score(place):
        tried.append(place)
        return -((place[0] - 7) ** 2) - (place[1] - 2) ** 2 - (place[0] - 7) * (place[1] - 2)

    assert highest(score, (0, 5), (10, 6)) == (7, 2)
    assert len(tried) == len(set(tried)) < 40
