"""Class probabilities are calibrated on what was left out."""

import pytest
import torch

from orbitgp import RBF, OneHotGaussian, PolyaGamma, Softmax
from orbitgp.hyperparameters.calibration import calibrate, calibrate_codes, calibrate_odds
from orbitgp.hyperparameters.grid import highest
from orbitgp.inference.exact import condition
from orbitgp.likelihoods.base import log_of_own
from orbitgp.posterior.exact import leave_one_out
from orbitgp.values import Prediction

pytestmark = pytest.mark.usefixtures("float64")


def test_calibration_raises_the_probability_of_left_out_labels(generator):
    x = torch.randn(200, 4, generator=generator)
    y = (x.sum(1) + 0.7 * torch.randn(200, generator=generator) > 0).long()
    likelihood = OneHotGaussian(2, noise=0.1)
    targets = likelihood.encode(y)
    solution = condition(RBF(1.0, 1.5), x.unsqueeze(1), targets, 0.1)
    prediction = leave_one_out(solution, targets, 0.1, torch.arange(200))

    def log_probability():
        return log_of_own(likelihood.class_probabilities(prediction), y).mean().item()

    before = log_probability()
    calibrate(likelihood, prediction, y)
    print(f"factor {likelihood.spread.item():.3f}: {before:.4f} → {log_probability():.4f}")
    assert log_probability() > before + 1e-3
    assert likelihood.spread != 1


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
