"""A compact predictor hardly moves, and its variances are never too small."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from orbitgp import InputError, InvariantGPClassifier, InvariantGPRegressor, export_predictor
from orbitgp.export.compact import Compaction, compact_predictor, moved
from orbitgp.export.predictor import Predictor, sums_of
from tests.conftest import QUICK, without_checks_of_shapes

IMAGES, LABELS = load_digits(return_X_y=True)
IMAGES = IMAGES.reshape(-1, 8, 8)[:500].astype(np.float32)
TRAIN, TEST = slice(0, 160), slice(300, 500)
SETTINGS = {"settings": QUICK, "random_state": 0}


def classifier(**parameters):
    model = InvariantGPClassifier("rotation", **parameters, **SETTINGS)
    return model.fit(IMAGES[TRAIN], LABELS[TRAIN])


KINDS = {
    "exact": {},
    "a bound": {"num_inducing": 80},
    "softmax": {"likelihood": "softmax", "num_inducing": 100},
}


@pytest.fixture(scope="module", params=KINDS)
@without_checks_of_shapes()
def model(request):
    return classifier(**KINDS[request.param])


@pytest.mark.usefixtures("untyped")
def test_predictions_of_training_inputs_hardly_move(model):
    whole, small = Predictor(model), compact_predictor(model, 0.03)
    assert 2 * len(small.weights) <= len(whole.weights)
    x = torch.from_numpy(IMAGES[TRAIN])
    assert 0 < moved(whole(x), small(x)) < 0.1
    if model.evidence_kind_ == "exact":  # knows all of its training inputs
        x_test = torch.from_numpy(IMAGES[TEST])
        assert moved(whole(x), small(x)) < 0.035
        assert moved(whole(x_test), small(x_test)) < 0.08


def test_variances_are_at_least_those_of_the_model(model):
    sums, whole = sums_of(model.model_), Predictor(model)
    points = sums.mean_points[:60]
    expected, prior = whole.posterior(points).variance, whole.mean_covariances.variances(points)
    compaction = Compaction(model.model_.kernel, sums)
    gaps = []
    for size in (8, 20, 40):
        found = Predictor(model, compaction.sums(size)).posterior(points).variance
        gaps.append((found - expected) / prior)
    assert min(gap.min() for gap in gaps) > -1e-3  # of jitter and float32
    assert gaps[0].mean() > gaps[1].mean() > gaps[2].mean()
    assert gaps[2].mean() < 0.6


def test_a_smaller_file_of_a_regressor(tmp_path):
    chance = np.random.default_rng(0)
    x = chance.uniform(-2, 2, (200, 2))
    y = np.sin(x).sum(1) + 0.3 * chance.normal(size=200)
    model = InvariantGPRegressor(**SETTINGS).fit(x, y)
    whole = export_predictor(model, tmp_path / "whole.pt2")
    small = export_predictor(model, tmp_path / "small.pt2", compact=0.2, verbose=True)
    assert small.stat().st_size < whole.stat().st_size
    mean, variance = torch.export.load(small).module()(torch.from_numpy(x).float())
    expected, deviation = model.predict(x, return_std=True)
    assert np.abs(mean.numpy() - expected).mean() < 0.3 * deviation.mean()
    assert (variance.numpy() > 0.98 * deviation**2).all()


@pytest.mark.parametrize("compact", [0.0, 1.0, -1.0, float("nan")])
def test_tolerances_that_make_no_sense(compact, tmp_path):
    x = np.linspace(-1, 1, 20)[:, None]
    model = InvariantGPRegressor(**SETTINGS).fit(x, x[:, 0])
    with pytest.raises(InputError, match=r"such as 0\.01; got"):
        export_predictor(model, tmp_path / "small.pt2", compact=compact)
