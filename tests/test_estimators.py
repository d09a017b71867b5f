"""The estimators in the manners of scikit-learn, and what they learn."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import orbitgp
from orbitgp import (
    InputError,
    InvariantGPClassifier,
    InvariantGPRegressor,
    coordinate_swap,
)
from tests.conftest import QUICK
from tests.processes import python

CHECK = """
import sys, warnings
from sklearn.utils.estimator_checks import check_estimator
import orbitgp
warnings.simplefilter("ignore")
quick = {"scan_draws": 4, "climb_size": 50, "climb_draws": 4}
settings = {
    "auto": orbitgp.TrainingSettings(max_steps=2, **quick),
    "thorough": orbitgp.TrainingSettings(),
    "stochastic": orbitgp.StochasticSettings(num_steps=60, batch_size=64, num_inducing=50),
}[sys.argv[2]]
inference = "auto" if sys.argv[2] == "thorough" else sys.argv[2]
estimator = getattr(orbitgp, sys.argv[1])(inference=inference, settings=settings)
results = check_estimator(estimator, on_fail=None)
for result in results:
    if result["status"] not in ("passed", "skipped"):
        print(result["check_name"], repr(result["exception"]))
print(len(results), "checks")
"""


@pytest.mark.parametrize("name", ["InvariantGPClassifier", "InvariantGPRegressor"])
@pytest.mark.parametrize(
    "kind", ["auto", "stochastic", pytest.param("thorough", marks=pytest.mark.slow)]
)
def test_scikit_learns_own_checks_pass(name, kind):
    """In a process of its own, without the type checks that slow tests down."""
    run = python("-c", CHECK, name, kind, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert run.returncode == 0, run.stderr
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


def test_a_predictor_is_made_once_and_not_pickled(tmp_path, monkeypatch):
    images, labels = bars(30)
    model = InvariantGPClassifier("rotation", settings=QUICK, random_state=0).fit(images, labels)
    expected, made = model.predict_proba(images), []
    kind = type(model.model_)
    make = kind.predictor
    monkeypatch.setattr(kind, "predictor", lambda self: made.append(1) or make(self))
    copy = pickle.loads(pickle.dumps(model))
    assert "_prepared" not in model.__getstate__()
    for _ in range(3):
        np.testing.assert_array_equal(copy.predict_proba(images), expected)
    assert len(made) == 1  # when it is read
    orbitgp.save(model, tmp_path / "model")
    orbitgp.load(tmp_path / "model")
    assert len(made) == 2


def test_the_first_prediction_after_loading_imports_nothing_large(tmp_path):
    images, labels = bars(30)
    model = InvariantGPClassifier("affine", settings=QUICK, random_state=0).fit(images, labels)
    orbitgp.save(model, tmp_path / "model")
    np.save(tmp_path / "one.npy", images[:1])
    script = (
        "import sys, numpy as np, orbitgp; model = orbitgp.load('model');"
        "before = set(sys.modules);"
        "model.predict_proba(np.load('one.npy')); print(len(set(sys.modules) - before))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert int(run.stdout) < 30  # sympy alone has 480


def test_all_shifts_of_a_cyclic_signal_are_one_class():
    random = np.random.default_rng(0)
    labels = np.arange(120) % 2
    time = np.arange(36)
    shapes = np.exp(-0.5 * ((time - 18) / np.where(labels, 2.0, 4.0)[:, None]) ** 2)
    shifted = np.array([np.roll(s, random.integers(36)) for s in shapes])
    X = shifted + 0.3 * random.normal(size=shifted.shape)
    errors, evidence = [], []
    for orbit in ("none", orbitgp.CyclicShifts(36), orbitgp.CyclicShifts(36, step=3)):
        model = InvariantGPClassifier(orbit, settings=QUICK, random_state=0).fit(
            X[:24], labels[:24]
        )
        errors.append(1 - model.score(X[24:], labels[24:]))
        evidence.append(model.evidence_)
    assert errors[1] <= 0.1
    assert errors[1] < errors[0]
    assert evidence[1] > evidence[0] + 5
    assert evidence[1] > evidence[2] - 5
