"""Estimators with other base kernels, and with feature maps that could be trained."""

import numpy as np
import pytest
import torch
from gpytorch.kernels import Kernel as GPyTorchKernel
from gpytorch.kernels import LinearKernel, MaternKernel, RBFKernel, ScaleKernel
from sklearn.base import clone

from orbitgp import (
    FileError,
    InputError,
    InvariantGPClassifier,
    InvariantGPRegressor,
    load,
    save,
)
from orbitgp.kernels import RBF, is_isotropic
from tests.conftest import QUICK
from tests.test_estimators import bars

pytestmark = pytest.mark.usefixtures("untyped")


def wave(num_data):
    X = np.random.default_rng(0).uniform(-2, 2, (num_data, 2))
    return X, np.sin(2 * X[:, 0])


@pytest.mark.parametrize(
    "kernel",
    [
        MaternKernel(nu=1.5),
        ScaleKernel(RBFKernel()),
        MaternKernel(nu=2.5, ard_num_dims=2),
    ],
    ids=["matern", "scaled RBF", "matern, two lengthscales"],
)
def test_kernels_of_gpytorch_are_learned_and_saved(kernel, tmp_path):
    X, y = wave(60)
    model = InvariantGPRegressor(kernel=kernel, settings=QUICK, random_state=0).fit(X, y)
    assert clone(model).kernel is not kernel
    assert np.abs(model.predict(X) - y).max() < 0.3
    save(model, tmp_path / "model.orbitgp")
    back = load(tmp_path / "model.orbitgp")
    assert type(back.kernel) is ScaleKernel
    for value, other in zip(*(m.predict(X, return_std=True) for m in (model, back)), strict=True):
        np.testing.assert_array_equal(value, other)


def test_a_lengthscale_for_each_input_finds_the_one_that_matters():
    X, y = wave(80)
    options = {"settings": QUICK, "random_state": 0}
    one = InvariantGPRegressor(kernel=MaternKernel(nu=2.5), **options).fit(X, y)
    two = InvariantGPRegressor(kernel=MaternKernel(nu=2.5, ard_num_dims=2), **options).fit(X, y)
    assert two.evidence_ > one.evidence_ + 5
    used, unused = two.model_.kernel.base_kernel.lengthscale.flatten().tolist()
    assert unused > 2 * used


class Differences(GPyTorchKernel):
    """exp(−|x − z|₁/ℓ), which is another kernel of rotated features."""

    has_lengthscale = True

    def forward(self, x1, x2, diag=False, **params):
        first, second = x1 / self.lengthscale, x2 / self.lengthscale
        gaps = (first - second).abs().sum(-1) if diag else torch.cdist(first, second, p=1)
        return gaps.neg().exp()


def test_a_number_may_depend_on_what_hardly_varies():
    """140 features on 4 axes; the one that matters has a 1,200th of all variance."""
    random = np.random.default_rng(0)
    places = random.normal(size=(150, 4)) * [1, 1, 1, 0.05]
    X = (
        (places @ np.linalg.qr(random.normal(size=(140, 4)))[0].T)
        .astype(np.float32)
        .reshape(150, 10, 14)
    )
    y = places[:, 3]
    options = {"feature_map": torch.nn.Flatten(), "settings": QUICK, "random_state": 0}
    model = InvariantGPRegressor(**options).fit(X[:100], y[:100])
    assert model.model_.projection is None
    assert model.score(X[100:], y[100:]) > 0.95


@pytest.mark.parametrize(
    ("kernel", "fewer"),
    [(None, True), (ScaleKernel(RBFKernel()), True), (Differences(), False), ("rbf-ard", False)],
    ids=["RBF", "scaled RBF", "differences", "RBF, a lengthscale for each"],
)
def test_classes_are_told_from_few_axes_if_the_kernel_knows_none(kernel, fewer):
    X = np.random.default_rng(0).normal(size=(140, 10, 15)).astype(np.float32)
    model = InvariantGPClassifier(
        kernel=kernel, feature_map=torch.nn.Flatten(), settings=QUICK, random_state=0
    ).fit(X, X[:, 0, 0] > 0)
    assert (model.model_.projection is not None) == fewer


def test_isotropic_kernels_are_known():
    assert all(map(is_isotropic, (RBF(), MaternKernel(nu=0.5), ScaleKernel(RBFKernel()))))
    others = (RBF(ard_num_dims=2), RBFKernel(active_dims=(0,)), LinearKernel(), Differences())
    assert not any(map(is_isotropic, (*others, ScaleKernel(Differences()))))


def test_a_kernel_that_no_file_describes_is_passed_again(tmp_path):
    X, _ = wave(40)
    y = X @ [1.0, -2.0]
    model = InvariantGPRegressor(kernel=LinearKernel(), settings=QUICK, random_state=0).fit(X, y)
    save(model, tmp_path / "model.orbitgp")
    with pytest.raises(FileError, match=r"load\(path, kernel=\.\.\.\)"):
        load(tmp_path / "model.orbitgp")
    back = load(tmp_path / "model.orbitgp", kernel=LinearKernel())
    np.testing.assert_array_equal(back.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("matern", "kernel must be a GPyTorch kernel, or one of rbf, .*; got 'matern'"),
        (MaternKernel(ard_num_dims=3), "3 lengthscales, but inputs have 2 features"),
    ],
)
def test_wrong_kernels_are_refused(kernel, words):
    with pytest.raises(InputError, match=words):
        InvariantGPRegressor(kernel=kernel).fit(*wave(20))


def test_a_feature_map_that_could_be_trained_is_warned_of():
    images, labels = bars(30)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 4))
    model = InvariantGPClassifier(feature_map=network, settings=QUICK, random_state=0)
    before = network[1].weight.clone()
    with pytest.warns(UserWarning, match="weights that could be trained, but fit uses them as"):
        model.fit(images, labels)
    assert torch.equal(model.model_.feature_map[1].weight, before)
    network.requires_grad_(False)
    model.fit(images, labels)  # without a warning, which would be an error
