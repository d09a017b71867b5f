"""`inference=`: every kind fits, is saved and resumed; contradictions are refused at the door."""

import numpy as np
import pytest

from orbitgp import (
    InputError,
    InvariantGPClassifier,
    InvariantGPRegressor,
    StochasticSettings,
    load,
    save,
)
from orbitgp.callbacks.base import Callback
from orbitgp.data.stream import ArrayStream
from tests.conftest import QUICK
from tests.files.crash import bars

pytestmark = pytest.mark.usefixtures("untyped")
SHORT = StochasticSettings(num_steps=40, batch_size=20, num_inducing=30, checkpoint_every=10)


def classifier(inference, **parameters):
    settings = SHORT if inference == "stochastic" else QUICK
    options = {"settings": settings, "random_state": 0, "feature_map": None, **parameters}
    return InvariantGPClassifier("rotation", inference=inference, **options)


@pytest.mark.parametrize(
    ("inference", "kind"),
    [("auto", "exact"), ("exact", "exact"), ("inducing", "bound"), ("stochastic", "bound")],
)
def test_every_kind_fits_and_is_saved(inference, kind, tmp_path):
    images, labels = bars(60)
    model = classifier(inference).fit(images, labels)
    assert model.evidence_kind_ == kind
    assert model.score(images, labels) > 0.8
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_proba(images), model.predict_proba(images))
    assert again.inference == inference
    assert again.settings == model.settings


@pytest.mark.parametrize("likelihood", ["softmax", "polya-gamma"])
def test_stochastic_training_of_other_likelihoods(likelihood, tmp_path):
    """Their local parameters come from a recognition network, which is saved, too."""
    images, labels = bars(60)
    labels = labels % 2 if likelihood == "polya-gamma" else labels
    model = classifier("stochastic", likelihood=likelihood).fit(images, labels)
    assert model.score(images, labels) > 0.7
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_proba(images), model.predict_proba(images))
    network = again.model_.likelihood.recognition
    assert network.out.abs().max() > 0, "the network has learned nothing"


def test_stochastic_regression_of_several_outputs():
    random = np.random.default_rng(0)
    X = random.uniform(-2, 2, (80, 2))
    y = np.stack([np.sin(X[:, 0]), 50 + 100 * np.cos(X[:, 1])], 1)
    settings = StochasticSettings(num_steps=150, batch_size=80, num_inducing=40)
    model = InvariantGPRegressor(inference="stochastic", settings=settings, random_state=0)
    model.fit(X, y)
    assert model.score(X, y) > 0.95
    _, deviation = model.predict(X, return_std=True)
    assert (deviation > 0).all()


@pytest.mark.parametrize("likelihood", ["gaussian", "softmax"])
def test_stochastic_training_on_a_stream(likelihood):
    images, labels = bars(300)
    settings = StochasticSettings(num_steps=60, batch_size=32, num_inducing=40)
    model = classifier("stochastic", settings=settings, likelihood=likelihood)
    model.fit_stream(ArrayStream(images, labels, 50))
    assert model.score(images, labels) > 0.8
    assert model.sizes_["num_inducing"] == 40


class Crash(Callback):
    def stepped(self, step):
        if step == 25:
            raise RuntimeError("stopped")


def test_a_stopped_run_ends_as_an_undisturbed_one(tmp_path):
    images, labels = bars(60)
    whole = classifier("stochastic").fit(images, labels)
    run = tmp_path / "run"
    with pytest.raises(RuntimeError, match="stopped"):
        classifier("stochastic", run=run, callbacks=[Crash()]).fit(images, labels)
    resumed = classifier("stochastic", run=run).fit(images, labels)
    assert '"the run goes on where it stood"' in (run / "log.jsonl").read_text(encoding="utf-8")
    np.testing.assert_array_equal(resumed.predict_proba(images), whole.predict_proba(images))
    assert resumed.evidence_ == whole.evidence_
    assert load(run).evidence_ == whole.evidence_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"inference": "fast"}, "one of auto, exact, inducing, stochastic"),
        ({"inference": "exact", "num_inducing": 10}, "contradicts num_inducing=10"),
        ({"inference": "exact", "likelihood": "softmax"}, "needs likelihood='gaussian'"),
        ({"inference": "stochastic", "settings": QUICK}, "StochasticSettings"),
        ({"inference": "auto", "settings": SHORT}, "TrainingSettings"),
        ({"inference": "stochastic", "budget_seconds": 5.0}, "num_steps"),
    ],
)
def test_contradictions_are_refused(parameters, message):
    images, labels = bars(20)
    options = {"settings": None, **parameters}
    with pytest.raises(InputError, match=message):
        classifier(**options).fit(images, labels)


def test_exact_inference_of_a_stream_is_refused():
    images, labels = bars(60)
    with pytest.raises(InputError, match="data in memory"):
        classifier("exact").fit_stream(ArrayStream(images, labels, 20))
