"""Which features of images are taken, by their evidence."""

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss

from orbitgp import InputError, InvariantGPClassifier, InvariantGPRegressor, OrientedEnergy, load
from orbitgp.features import Standardize
from orbitgp.fit.feature_choice import features_evidence, is_of_images, may_be_series
from orbitgp.fit.named_kernels import NAMES, named_kernel
from orbitgp.kernels import RBF, MaternKernel
from orbitgp.likelihoods.gaussian import OneHotGaussian
from orbitgp.patches import PatchFeatures
from tests.conftest import QUICK, assert_same_to_rounding

pytestmark = pytest.mark.usefixtures("untyped")


def strokes(num_data, side=16, seed=0):
    """Lines of two directions somewhere in noisy images: edges tell them apart."""
    random = np.random.default_rng(seed)
    x, y = random.normal(0.0, 0.1, (num_data, side, side)), random.integers(2, size=num_data)
    for image, label in zip(x, y, strict=True):
        row, column = random.integers(5, 7, 2)
        for step in range(5):
            image[row + step, column + (step if label else 4 - step)] += 1.0
    return x, y


def fitted(x, y, **parameters):
    return InvariantGPClassifier(settings=QUICK, random_state=0, **parameters).fit(x, y)


def test_the_features_with_most_evidence_are_taken_and_predict_better():
    (x, y), (x_test, y_test) = strokes(120), strokes(200, seed=1)
    model, pixels = fitted(x, y), fitted(x, y, feature_map=None)
    found = model.feature_evidence_
    nll = [log_loss(y_test, fit.predict_proba(x_test)) for fit in (model, pixels)]
    print(f"{found}, test NLL {nll[0]:.4f} instead of {nll[1]:.4f}")
    assert next(iter(found)) == "pixels"
    assert len(found) == 4
    assert max(found, key=found.__getitem__) != "pixels"
    assert isinstance(model.model_.feature_map, OrientedEnergy | PatchFeatures)
    assert model.evidence_ > pixels.evidence_ + 5
    assert nll[0] < 0.7 * nll[1]
    assert pixels.feature_evidence_ == {}


@pytest.mark.filterwarnings("ignore:nothing was learned")  # a mirror exchanges the directions
def test_the_choice_depends_on_neither_orbit_nor_seed():
    x, y = strokes(60)
    first, second = (
        InvariantGPClassifier(orbit, settings=QUICK, random_state=seed).fit(x, y)
        for orbit, seed in (("none", 0), ("mirror", 1))
    )
    assert first.feature_evidence_ == second.feature_evidence_


def test_a_fit_with_patches_is_saved_loaded_and_resumed(tmp_path):
    x, y = strokes(60)
    model = fitted(x, y, feature_map="patches", kernel="matern-5/2", run=tmp_path / "run")
    assert list(model.feature_evidence_) == ["patches of 5 pixels", "patches of 7 pixels"]
    again = load(tmp_path / "run")
    assert again.feature_map == "patches"
    assert again.kernel == "matern-5/2"
    assert again.feature_evidence_ == model.feature_evidence_
    assert_same_to_rounding(again.predict_proba(x), model.predict_proba(x))
    read_back = fitted(x, y, feature_map="patches", kernel="matern-5/2", run=tmp_path / "run")
    assert_same_to_rounding(read_back.predict_proba(x), model.predict_proba(x))
    with pytest.raises(InputError, match="different parameters"):
        fitted(x, y, feature_map="auto", kernel="matern-5/2", run=tmp_path / "run")


def test_other_inputs_are_compared_as_they_are():
    x, y = strokes(40)
    small = fitted(x[:, :8, :8], y)
    assert isinstance(small.model_.feature_map, torch.nn.Flatten)
    assert small.feature_evidence_ == {}
    rows = InvariantGPRegressor(settings=QUICK, random_state=0).fit(x[:, 8], y.astype(float))
    assert isinstance(rows.model_.feature_map, Standardize)
    shapes = (9, 28, 28), (9, 3, 32, 32), (9, 8, 8), (9, 6, 100), (9, 23, 4), (9, 30)
    assert [is_of_images(shape) for shape in shapes] == [True, True, *[False] * 4]
    assert is_of_images((9, 1, 30, 100))
    with pytest.raises(InputError, match="feature_map must be a torch module, one of auto"):
        fitted(x, y, feature_map="edges")


def test_where_a_burst_is_in_a_series_is_found_by_patches(tmp_path):
    """One of two short shapes anywhere in noise: patches in one cell tell them apart."""
    random = np.random.default_rng(0)

    def series(num_data):
        x, y = random.normal(0, 0.1, (num_data, 2, 60)), np.arange(num_data) % 2
        for row, label, start in zip(x, y, random.integers(0, 52, num_data), strict=True):
            row[:, start : start + 8] += np.sin(np.arange(8) * (1.0 if label else 2.0))
        return x, y

    (x, y), (x_test, y_test) = series(80), series(100)
    model = fitted(x, y, run=tmp_path / "run")
    found = model.feature_evidence_
    print({name: round(nats, 1) for name, nats in found.items()})
    assert list(found)[:2] == ["values", "patches of 9 samples in 1 cell"]
    assert len(found) == 7
    assert max(found, key=found.__getitem__).endswith("in 1 cell")
    assert model.score(x_test, y_test) > 0.9
    again = load(tmp_path / "run")
    assert again.model_.feature_map.series
    assert_same_to_rounding(again.predict_proba(x_test), model.predict_proba(x_test))
    assert may_be_series((9, 30))
    assert may_be_series((9, 6, 100))
    assert not may_be_series((9, 23, 4))
    assert not may_be_series((9, 10))


def test_the_evidence_is_that_of_a_reference():
    """The best of many lengthscales and ratios, by the density of a normal distribution."""
    x, y = strokes(40)
    x += np.random.default_rng(1).normal(0.0, 0.3, x.shape)
    images, labels = torch.from_numpy(x).float(), torch.from_numpy(y)
    likelihood = OneHotGaussian(2)
    features = OrientedEnergy(cells=(3,))  # so few that none of them is left out
    found = features_evidence(features, images, labels, likelihood, None, 1e6)
    points = features(images).double()
    targets = likelihood.quadratic_bound(images, labels).targets
    best = -np.inf
    squared = torch.cdist(points, points).square()
    for length in torch.logspace(-1, 1.5, 30).tolist():
        kernel = torch.exp(-0.5 * squared / length**2)
        for ratio in (10.0**power for power in np.arange(-1, 5, 0.25)):
            matrix = ratio * kernel + torch.eye(40)
            quadratic = (targets * torch.linalg.solve(matrix, targets)).sum()
            noise = (quadratic / targets.numel()).item()
            normal = torch.distributions.MultivariateNormal(torch.zeros(40), noise * matrix)
            best = max(best, normal.log_prob(targets.mT).sum().item())
    print(f"{found:.3f} nats, on a fine grid {best:.3f}")
    assert best - 2 < found < best + 0.5  # lengthscales are tried in steps of √2


@pytest.mark.parametrize("name", NAMES)
def test_kernels_by_name(name):
    kernel = named_kernel(name, 3)
    assert kernel.ard_num_dims == (3 if name.endswith("-ard") else None)
    assert isinstance(kernel, MaternKernel if "matern" in name else RBF)
    if "matern" in name:
        assert kernel.nu == float(name[7]) / 2


def test_kernels_of_an_estimator_by_name():
    random = np.random.default_rng(0)
    X = random.uniform(-2, 2, (60, 3))
    model = InvariantGPRegressor(kernel="rbf-ard", settings=QUICK, random_state=0)
    lengths = model.fit(X, np.sin(2 * X[:, 0])).model_.kernel.lengthscale.flatten()
    assert lengths[0] < 0.5 * lengths[1:].min()
    with pytest.raises(InputError, match="one of rbf, matern-1/2"):
        InvariantGPRegressor(kernel="cosine").fit(X, X[:, 0])
