"""The estimators in the manners of scikit-learn, and what they learn."""

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from orbitgp import (
    InputError,
    InvariantGPClassifier,
    InvariantGPRegressor,
    TrainingSettings,
    coordinate_swap,
)
from tests.conftest import QUICK

CHECK = """
import sys, warnings
from sklearn.utils.estimator_checks import check_estimator
import orbitgp
warnings.simplefilter("ignore")
sizes = {} if sys.argv[2] == "16" else {"scan_draws": 4, "climb_size": 50, "climb_draws": 4}
settings = orbitgp.TrainingSettings(max_steps=int(sys.argv[2]), **sizes)
results = check_estimator(getattr(orbitgp, sys.argv[1])(settings=settings), on_fail=None)
for result in results:
    if result["status"] not in ("passed", "skipped"):
        print(result["check_name"], repr(result["exception"]))
print(len(results), "checks")
"""


@pytest.mark.parametrize("name", ["InvariantGPClassifier", "InvariantGPRegressor"])
@pytest.mark.parametrize(
    "max_steps", [2, pytest.param(TrainingSettings().max_steps, marks=pytest.mark.slow)]
)
def test_scikit_learns_own_checks_pass(name, max_steps):
    """In a process of its own, without the type checks that slow tests down."""
    run = subprocess.run(
        [sys.executable, "-c", CHECK, name, str(max_steps)],
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    *failures, summary = run.stdout.splitlines()
    assert not failures, failures
    assert int(summary.split()[0]) > 50


def bars(num_data, seed=0):
    """Images with a vertical or a horizontal bar anywhere, labelled with words."""
    random = np.random.default_rng(seed)
    images = 0.05 * random.random((num_data, 8, 8))
    labels = random.integers(2, size=num_data)
    for image, label, place in zip(images, labels, random.integers(1, 7, num_data), strict=True):
        image[(slice(None), place) if label else (place, slice(None))] = 1.0
    return images, np.array(["lying", "standing"])[labels]


@pytest.mark.usefixtures("untyped")
def test_classifier_on_images_of_every_form():
    images, labels = bars(60)
    fits = {}
    for name, X, shape in (
        ("stack", images, None),
        ("channels", images[:, None], None),
        ("flat", images.reshape(60, -1), (8, 8)),
        ("scaled", (255 * images).astype(np.uint8), None),
    ):
        model = InvariantGPClassifier("affine", image_shape=shape, settings=QUICK, random_state=0)
        fits[name] = model.fit(X, labels).predict_proba(X)
        assert model.score(X, labels) > 0.9
        assert list(model.classes_) == ["lying", "standing"]
        assert "rotation" in model.orbit_.describe()
        assert np.isfinite(model.evidence_)
        assert model.evidence_error_ > 0
        assert model.n_iter_ <= 20
        np.testing.assert_allclose(fits[name].sum(1), 1)
    np.testing.assert_allclose(fits["stack"], fits["channels"], atol=1e-4)
    np.testing.assert_allclose(fits["stack"], fits["flat"], atol=1e-4)


def test_predictions_depend_on_their_own_input_alone():
    images, labels = bars(40)
    model = InvariantGPClassifier("rotation", settings=QUICK, random_state=0).fit(images, labels)
    whole = model.predict_proba(images)
    np.testing.assert_allclose(model.predict_proba(images[::-1])[::-1], whole, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(images[7:8]), whole[7:8], atol=1e-6)


def test_the_same_random_state_gives_the_same_model():
    images, labels = bars(40)
    first, second = (
        clone(InvariantGPClassifier("affine", settings=QUICK, random_state=3)).fit(images, labels)
        for _ in range(2)
    )
    assert first.evidence_ == second.evidence_
    np.testing.assert_array_equal(first.predict_proba(images), second.predict_proba(images))


def symmetric(num_data, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(-2, 2, (num_data, 2))
    y = np.stack([np.cos(X.sum(1)), 100 * np.sin(2 * X).prod(1)], 1)
    return X, y + np.array([0.05, 5.0]) * random.standard_normal(y.shape)


@pytest.mark.usefixtures("untyped")
def test_regressor_finds_the_symmetry_by_evidence():
    X, y = symmetric(80)
    plain = InvariantGPRegressor(random_state=0).fit(X, y)
    swap = InvariantGPRegressor(coordinate_swap(0, 1, 2), random_state=0).fit(X, y)
    assert swap.evidence_ > plain.evidence_ + 5
    test, truth = symmetric(400, seed=1)
    assert swap.score(test, truth) > plain.score(test, truth) > 0.8
    mean, deviation = swap.predict(test, return_std=True)
    assert mean.shape == deviation.shape == (400, 2)
    covered = (np.abs(truth - mean) < 1.96 * deviation).mean()
    assert 0.85 < covered <= 1.0
    np.testing.assert_allclose(swap.predict(test[:, ::-1]), mean, atol=1e-8)


def test_evidence_is_in_the_units_of_the_targets():
    """log p(y) of targets scaled by 10 is lower by log 10 for each of them."""
    X, y = symmetric(40)
    one = InvariantGPRegressor(settings=QUICK, random_state=0).fit(X, y[:, 0])
    ten = InvariantGPRegressor(settings=QUICK, random_state=0).fit(X, 10 * y[:, 0])
    assert one.evidence_ - ten.evidence_ == pytest.approx(40 * np.log(10), abs=1e-6)
    np.testing.assert_allclose(ten.predict(X), 10 * one.predict(X))


def test_inside_pipelines_and_searches():
    X, y = symmetric(40)
    pipeline = make_pipeline(StandardScaler(), InvariantGPRegressor(settings=QUICK, random_state=0))
    search = GridSearchCV(
        pipeline,
        {"invariantgpregressor__orbit": ["none", coordinate_swap(0, 1, 2)]},
        cv=2,
    )
    search.fit(X, y[:, 0])
    assert search.best_score_ > 0.5


@pytest.mark.parametrize(
    ("arguments", "X", "message"),
    [
        ({"orbit": "rotations"}, np.zeros((4, 5, 5)), "choose among none, affine"),
        ({"image_shape": (3, 3)}, np.zeros((4, 10)), "10 values each"),
        ({"orbit": "affine"}, np.arange(20.0).reshape(4, 5), "images"),
        ({"settings": None}, np.full((4, 2), np.nan), "NaN"),
    ],
)
def test_bad_input_is_a_value_error_before_any_training(arguments, X, message):
    with pytest.raises(ValueError, match=message):
        InvariantGPClassifier(**arguments).fit(X, [0, 1, 0, 1])


def test_one_class_is_refused():
    with pytest.raises(InputError, match="1 class"):
        InvariantGPClassifier().fit(np.eye(3), ["a", "a", "a"])


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_any_scale_of_inputs_and_targets(scale):
    X, y = symmetric(30)
    plain = InvariantGPRegressor(settings=QUICK, random_state=0).fit(X, y)
    scaled = InvariantGPRegressor(settings=QUICK, random_state=0).fit(scale * X, scale * y)
    np.testing.assert_allclose(scaled.predict(scale * X), scale * plain.predict(X), rtol=1e-4)
