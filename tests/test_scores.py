"""Scores of a test against scikit-learn and slow loops, and the file that keeps them."""

import math

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, root_mean_squared_error

from orbitgp import FileError, InputError, InvariantGPClassifier, InvariantGPRegressor
from orbitgp.scores import (
    calibration_error,
    classification_metrics,
    evaluate,
    read_test,
    regression_metrics,
    write_test,
)
from orbitgp.sealed import read_sealed, write_sealed
from tests.conftest import QUICK

NAMES = np.array(["<b>cat</b>", "dog", "eel"])

pytestmark = pytest.mark.filterwarnings("ignore:nothing was learned")


@pytest.fixture
def random():
    return np.random.default_rng(5)


@pytest.fixture(scope="module")
def classified():
    random = np.random.default_rng(0)
    codes = np.arange(90) % 3
    X = random.normal(size=(90, 2)) + 1.5 * codes[:, None]
    model = InvariantGPClassifier(settings=QUICK, random_state=0).fit(X[:60], NAMES[codes[:60]])
    return model, X[60:], NAMES[codes[60:]]


@pytest.fixture(scope="module")
def regressed():
    X = np.random.default_rng(1).uniform(-1, 1, size=(60, 4))
    y = np.stack([X.sum(1), 100 * X.prod(1)], 1)
    model = InvariantGPRegressor(settings=QUICK, random_state=0, image_shape=(2, 2))
    return model.fit(X[:40], y[:40]), X[40:], y[40:]


def test_classification_metrics(random):
    probabilities = random.dirichlet(np.full(4, 0.4), size=200)
    labels = random.integers(4, size=200)
    metrics = classification_metrics(probabilities, labels)
    assert metrics["error"] == pytest.approx(1 - accuracy_score(labels, probabilities.argmax(1)))
    assert metrics["nll"] == pytest.approx(log_loss(labels, probabilities), rel=1e-9)
    brier = ece = 0.0
    for row, label in zip(probabilities, labels, strict=True):
        brier += sum((row[c] - (c == label)) ** 2 for c in range(4)) / 200
    assert metrics["brier"] == pytest.approx(brier)
    for b in range(15):
        inside = [
            (row.max(), row.argmax() == label)
            for row, label in zip(probabilities, labels, strict=True)
            if b / 15 <= row.max() < (b + 1) / 15
        ]
        if inside:
            confidence, right = np.mean(inside, axis=0)
            ece += len(inside) / 200 * abs(confidence - right)
    assert metrics["ece"] == pytest.approx(ece)


def test_certainty_is_in_the_last_bin():
    certain = np.eye(2)[[0, 1, 1]]
    assert calibration_error(certain, np.array([True, True, False])) == pytest.approx(1 / 3)
    with np.errstate(all="raise"):
        assert classification_metrics(certain, np.array([0, 1, 0]))["nll"] == math.inf


def test_regression_metrics(random):
    means, targets = random.normal(size=(2, 50, 3))
    deviations = random.uniform(0.5, 2, size=(50, 3))
    metrics = regression_metrics(means, deviations, targets)
    assert metrics["rmse"] == pytest.approx(root_mean_squared_error(targets.ravel(), means.ravel()))
    nll, inside = [], []
    for m, s, t in zip(means.ravel(), deviations.ravel(), targets.ravel(), strict=True):
        nll.append(-math.log(math.exp(-((t - m) ** 2) / (2 * s**2)) / (s * math.sqrt(2 * math.pi))))
        inside.append(m - 1.95996398454 * s <= t <= m + 1.95996398454 * s)
    assert metrics["nll"] == pytest.approx(np.mean(nll))
    assert metrics["coverage95"] == pytest.approx(np.mean(inside))
    assert 0.5 < metrics["coverage95"] < 1


def test_a_classifier_is_evaluated(classified):
    model, X, y = classified
    result = evaluate(model, X, y)
    assert result.kind == "classification"
    assert result.classes == tuple(NAMES)
    np.testing.assert_array_equal(NAMES[result.labels], y)
    np.testing.assert_array_equal(NAMES[result.predictions], model.predict(X))
    assert result.metrics["error"] == pytest.approx(1 - model.score(X, y))
    truth = result.uncertainty[np.arange(30), result.labels][result.worst]
    assert 0 < len(truth) == (result.predictions != result.labels).sum()
    assert (np.diff(truth) >= 0).all()
    np.testing.assert_array_equal(result.inputs, X[result.worst].astype(np.float32))


def test_a_regressor_is_evaluated(regressed):
    model, X, y = regressed
    result = evaluate(model, X, y)
    mean, deviation = model.predict(X, return_std=True)
    assert result.metrics == regression_metrics(mean, deviation, y)
    assert result.inputs.shape == (20, 2, 2)
    surprise = np.abs((y - mean) / deviation).max(1)[result.worst]
    assert (np.diff(surprise) <= 0).all()
    flat = InvariantGPRegressor(settings=QUICK, random_state=0).fit(X, y[:, 0])
    assert evaluate(flat, X, y[:, 0]).predictions.shape == (20, 1)


@pytest.mark.parametrize("which", ["classified", "regressed"])
def test_a_result_comes_back(which, tmp_path, request):
    result = evaluate(*request.getfixturevalue(which))
    write_test(result, tmp_path / "test.safetensors")
    back = read_test(tmp_path / "test.safetensors")
    for name, value in vars(result).items():
        np.testing.assert_array_equal(getattr(back, name), value)
    write_test(back, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "test.safetensors").read_bytes()


def test_a_test_without_mistakes_comes_back(classified, tmp_path):
    model, X, y = classified
    right = model.predict(X) == y
    result = evaluate(model, X[right], y[right])
    write_test(result, tmp_path / "test")
    assert read_test(tmp_path / "test").worst.shape == (0,)
    assert read_test(tmp_path / "test").metrics["error"] == 0


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("labels", np.full(30, 3)),
        ("labels", np.zeros(29, np.int64)),
        ("predictions", np.zeros(30)),
        ("uncertainty", np.full((30, 3), np.nan)),
        ("uncertainty", np.ones((30, 2))),
        ("worst", np.array([30])),
        ("inputs", np.zeros((25, 2), np.float32)),
        ("classes", ["a", "b"]),
        ("kind", "regression"),
        ("metrics", {"error": "none"}),
        ("metrics", {"error": 0.5}),
    ],
)
def test_files_that_do_not_fit_are_refused(change, value, classified, tmp_path):
    import torch

    write_test(evaluate(*classified), tmp_path / "test")
    _, tensors, config = read_sealed(tmp_path / "test", "orbitgp test")
    if isinstance(value, np.ndarray):
        tensors[change] = torch.from_numpy(value)
    else:
        config[change] = value
    write_sealed(tmp_path / "test", "orbitgp test", tensors, config)
    with pytest.raises(FileError, match="evaluate the run again"):
        read_test(tmp_path / "test")


def test_what_cannot_be_evaluated_is_refused(classified, regressed):
    model, X, y = classified
    with pytest.raises(InputError, match="only a fitted"):
        evaluate("model", X, y)
    with pytest.raises(InputError, match="30 inputs and 29 labels"):
        evaluate(model, X, y[1:])
    with pytest.raises(InputError, match="got labels newt"):
        evaluate(model, X[:2], ["dog", "newt"])
    model, X, y = regressed
    with pytest.raises(InputError, match=r"got targets \[20\]"):
        evaluate(model, X, y[:, 0])
    with pytest.raises(InputError, match="finite"):
        evaluate(model, X, y * np.nan)


@pytest.mark.parametrize("value", [-3.0, 1.5, np.nan])
def test_probabilities_that_are_none_are_refused(classified, tmp_path, value):
    """A file with a right seal may still hold anything."""
    write_test(evaluate(*classified), tmp_path / "test")
    form, tensors, config = read_sealed(tmp_path / "test", "orbitgp test")
    tensors["uncertainty"][0, 0] = value
    write_sealed(tmp_path / "test", form, tensors, config)
    with pytest.raises(FileError):
        read_test(tmp_path / "test")
