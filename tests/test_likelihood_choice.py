"""The classifier with each of its likelihoods."""

import statistics

import numpy as np
import pytest

from orbitgp import InputError, InvariantGPClassifier, load, save
from orbitgp.fit.log_odds import bound_of_subset
from orbitgp.fit.problem import NUM_DRAW_SETS
from orbitgp.likelihoods.polya_gamma import PolyaGamma
from orbitgp.likelihoods.softmax import Softmax
from tests.conftest import QUICK
from tests.test_estimators import bars

pytestmark = pytest.mark.usefixtures("untyped")


def three_kinds(num_data, seed=0):
    """Images with a bar that stands, a bar that lies, or a diagonal."""
    images, labels = bars(num_data, seed)
    random = np.random.default_rng(seed + 1)
    labels = labels.copy().astype("<U8")
    for place in np.flatnonzero(random.random(num_data) < 1 / 3):
        images[place] = 0.05 * random.random((8, 8))
        np.fill_diagonal(images[place][int(random.integers(3)) :], 1.0)
        labels[place] = "slanted"
    return images, labels


def classifier(likelihood, **options):
    options = {"orbit": "affine", "settings": QUICK, "random_state": 0} | options
    return InvariantGPClassifier(likelihood=likelihood, **options)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("polya-gamma", PolyaGamma), ("softmax", Softmax)],
)
def test_two_classes_are_learned_by_each(name, kind, tmp_path):
    (X, y), (X_test, y_test) = bars(80), bars(200, seed=1)
    model = classifier(name).fit(X, y)
    assert type(model.model_.likelihood) is kind
    assert model.score(X_test, y_test) > 0.9
    assert np.isfinite([model.evidence_, model.evidence_error_]).all()
    assert 80 * np.log(0.5) < model.evidence_ < 0  # better than guessing, and a log probability
    save(model, tmp_path / "model.orbitgp")
    back = load(tmp_path / "model.orbitgp")
    assert back.likelihood == name
    assert (back.predict_proba(X_test) == model.predict_proba(X_test)).all()


def test_three_classes_are_learned():
    (X, y), (X_test, y_test) = three_kinds(120), three_kinds(200, seed=5)
    model = classifier("softmax").fit(X, y)
    probabilities = model.predict_proba(X_test)
    assert probabilities.shape == (200, 3)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-6)
    assert model.score(X_test, y_test) > 0.85
    assert 120 * np.log(1 / 3) < model.evidence_ < 0


def test_the_error_of_a_bound_is_its_own_spread_over_draws(monkeypatch):
    """Not that of the density of one-hot labels."""
    seen = []

    def spy(*arguments):
        seen.append(bound_of_subset(*arguments))
        return seen[-1]

    monkeypatch.setattr("orbitgp.fit.checks.bound_of_subset", spy)
    X, y = bars(60)
    model = classifier("softmax", orbit="rotation").fit(X, y)
    assert len(seen) == NUM_DRAW_SETS
    assert seen[0] == pytest.approx(model.evidence_, rel=1e-3)  # the draws of the fit
    assert model.evidence_error_ == pytest.approx(statistics.stdev(seen))
    assert model.evidence_error_ > 0


def test_a_likelihood_that_does_not_suit_is_refused():
    X, y = three_kinds(40)
    with pytest.raises(InputError, match="polya-gamma' is for 2 classes; got 3"):
        classifier("polya-gamma").fit(X, y)
    with pytest.raises(InputError, match="likelihood must be one of auto, gaussian"):
        classifier("probit").fit(X, y)
    batches = [(X[:20], y[:20]), (X[20:], y[20:])]
    with pytest.raises(InputError, match="a stream needs likelihood='gaussian'"):
        classifier("softmax").fit_stream(batches)
