"""A mean with a variable for every datum, against the same equations solved outright."""

import numpy as np
import pytest
import torch

from orbitgp import (
    RBF,
    Gaussian,
    Identity,
    InducingPosterior,
    InvariantGP,
    InvariantGPClassifier,
    InvariantKernel,
    PolyaGamma,
    Rotation,
    SignFlips,
    Softmax,
    StickBreaking,
    TrainingSettings,
    load,
    save,
)
from orbitgp.kernels import covariance
from orbitgp.posterior.inducing import average_covariance
from orbitgp.posterior.mean_basis import MeanBasis
from orbitgp.training import whole_mean
from orbitgp.training.passes import Resident
from orbitgp.training.whole_mean import (
    affordable_samples,
    conjugate_gradients,
    half_covariance,
    mean_of_all,
)
from tests.conftest import assert_close
from tests.test_estimators import bars


@pytest.fixture
def small(monkeypatch):
    """Several blocks and fewer columns than data, solved to the end."""
    for name, value in (("BLOCK", 16), ("NUM_COLUMNS", 20), ("TOLERANCE", 1e-9)):
        monkeypatch.setattr(whole_mean, name, value)


def name_of(part):
    return type(part).__name__


def test_half_of_a_matrix_multiplies_like_all_of_it(small, generator):
    points = torch.randn(50, 3, 4, generator=generator, dtype=torch.float64)
    kernel = RBF(1.3, 2.0).double()
    half = half_covariance(kernel, points)
    assert sum(block.numel() for _, _, block in half.blocks) < 0.75 * 50**2
    columns = torch.randn(50, 2, generator=generator, dtype=torch.float64)
    whole = average_covariance(kernel, points)
    assert_close((half @ columns).detach(), (whole @ columns).detach())


def test_conjugate_gradients_solve_equations_of_any_start(small, generator):
    root = torch.randn(30, 30, generator=generator, dtype=torch.float64)
    matrix, targets = root @ root.mT + torch.eye(30), root[:, :3]
    scale = matrix.diagonal().unsqueeze(1)
    found, remains = conjugate_gradients(lambda v: matrix @ v, targets, lambda v: v / scale)
    assert_close(found, torch.linalg.solve(matrix, targets), tolerance=1e-7)
    assert remains <= 1e-9
    solved, remains = conjugate_gradients(lambda v: v, torch.zeros(30, 3), lambda v: v)
    assert (solved == 0).all()
    assert remains == 0


def smooth(generator, noise):
    """Many data on few axes: equations whose condition is far beyond float32."""
    x = torch.rand(1500, 3, generator=generator)
    model = InvariantGP(
        orbit=Identity(),
        kernel=RBF(1.0, 1.0),
        posterior=InducingPosterior(x[:5], 1),
        likelihood=Gaussian(noise),
    )
    return model, Resident(x, torch.sign(torch.sin(9 * x[:, :1])))


def test_rounding_of_the_kernel_does_not_lead_it_astray(monkeypatch, generator):
    monkeypatch.setattr(whole_mean, "NUM_COLUMNS", 300)
    model, examples = smooth(generator, 1e-3)
    basis = mean_of_all(model, examples, num_samples=1, generator=generator)
    assert basis is not None
    points = examples.x.double()
    exact = RBF(1.0, 1.0).double()(points, points).to_dense().detach() + 1e-3 * torch.eye(1500)
    remains = (examples.y - exact @ basis.weights).norm() / examples.y.norm()
    assert remains < 0.1, f"{remains:.3f} of |y| remains"


def test_an_answer_that_is_none_is_not_given(monkeypatch, generator):
    monkeypatch.setattr(whole_mean, "MAX_ROUNDS", 0)
    monkeypatch.setattr(whole_mean, "NUM_COLUMNS", 2)
    model, examples = smooth(generator, 1e-3)
    assert mean_of_all(model, examples, num_samples=1, generator=generator) is None


@pytest.mark.usefixtures("float64")
def test_without_an_orbit_it_is_the_exact_posterior_mean(small, generator):
    x = torch.randn(60, 2, generator=generator)
    y = torch.sin(2 * x) + 0.1 * torch.randn(60, 2, generator=generator)
    kernel = RBF(1.5, 0.7)
    model = InvariantGP(
        orbit=Identity(),
        kernel=kernel,
        posterior=InducingPosterior(x[:5], 2),
        likelihood=Gaussian(0.01),
    )
    draws = {"num_samples": 1, "generator": generator}
    model.mean_basis = mean_of_all(model, Resident(x, y), **draws)
    new = torch.randn(9, 2, generator=generator)
    with torch.no_grad():
        kff = covariance(kernel, x, x) + 0.01 * torch.eye(60)
        exact = covariance(kernel, new, x) @ torch.linalg.solve(kff, y)
    found = model.predict(new)
    assert_close(found.mean, exact, tolerance=1e-6)
    assert (found.mean_error == 0).all()
    joint = model.predict_f_samples(new, 4000, generator=generator)
    error = joint.std(0) / 4000**0.5
    assert ((joint.mean(0) - exact).abs() / error).max() < 4


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("num_columns", [5, 60])
@pytest.mark.parametrize("likelihood", [Softmax(3), StickBreaking(3), PolyaGamma()], ids=name_of)
def test_for_log_odds_it_is_the_mode(small, generator, monkeypatch, likelihood, num_columns):
    """Where f = K a and a = ∇ log p(y | f), from columns that leave much of K out, too."""
    for name, value in {"NUM_COLUMNS": num_columns, "REST": 1e-9, "MAX_ROUNDS": 2000}.items():
        monkeypatch.setattr(whole_mean, name, value)
    x = torch.randn(60, 2, generator=generator)
    labels = (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()
    labels = labels.clamp(max=likelihood.num_classes - 1)
    num_outputs = likelihood.num_outputs
    model = InvariantGP(
        orbit=Identity(),
        kernel=RBF(20.0, 0.7),
        posterior=InducingPosterior(x[:5], num_outputs),
        likelihood=likelihood,
    )
    basis = mean_of_all(model, Resident(x, labels), num_samples=1, generator=generator)
    assert basis is not None
    f = (covariance(model.kernel, x, x) @ basis.weights).detach().requires_grad_()
    own = likelihood.log_probabilities(f).gather(1, labels.unsqueeze(1))
    (slope,) = torch.autograd.grad(own.sum(), f)
    assert_close(basis.weights, slope, tolerance=1e-6)


@pytest.mark.usefixtures("float64")
def test_a_basis_on_whole_orbits_is_as_invariant_as_they_are(small, generator):
    x = torch.randn(40, 2, generator=generator)
    model = InvariantGP(
        orbit=SignFlips(0, 1),
        kernel=RBF(1.5, 0.7),
        posterior=InducingPosterior(x[:5], 1),
        likelihood=Gaussian(0.01),
    )
    y = x.square().sum(1, keepdim=True)
    model.mean_basis = mean_of_all(model, Resident(x, y), num_samples=4, generator=generator)
    new = torch.randn(9, 2, generator=generator)
    invariant = InvariantKernel(model.kernel, model.orbit)
    with torch.no_grad():
        kff = covariance(invariant, x, x) + 0.01 * torch.eye(40)
        exact = covariance(invariant, new, x) @ torch.linalg.solve(kff, y)
    assert_close(model.predict(new).mean, exact, tolerance=1e-6)
    assert_close(model.predict(-new).mean, exact, tolerance=1e-6)


def test_the_error_of_a_mean_from_groups_is_that_of_its_draws(generator):
    images = torch.rand(6, 8, 8, generator=generator)
    points = torch.rand(30, 2, 64, generator=generator)
    basis = MeanBasis(points, torch.randn(30, 2, generator=generator, dtype=torch.float64))
    model = InvariantGP(
        orbit=Rotation(-0.5, 0.5),
        kernel=RBF(1.0, 3.0),
        posterior=InducingPosterior(points[:4, 0], 2),
        likelihood=Gaussian(0.1),
        mean_basis=basis,
    )
    runs = [model.predict(images, num_samples=8, generator=generator) for _ in range(300)]
    spread = torch.stack([run.mean for run in runs]).std(0)
    said = torch.stack([run.mean_error for run in runs]).square().mean(0).sqrt()
    ratio = said / spread
    print(f"said error over true error: {ratio.min():.2f} … {ratio.max():.2f}")
    assert ratio.min() > 0.7
    assert ratio.max() < 2.5  # groups are drawn one by one, samples within one cover evenly


def test_more_time_buys_more_samples_and_memory_has_an_end():
    limits = {"orbit_size": float("inf"), "memory": 1e10}
    counts = [affordable_samples(20_000, 128, seconds=s, **limits)[0] for s in (1, 30, 60, 9000)]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 64)
    assert affordable_samples(10**6, 128, seconds=1e9, **limits) == (0, 0.0)
    assert affordable_samples(2000, 128, seconds=60, orbit_size=1, memory=1e10)[0] == 1


@pytest.mark.parametrize("likelihood", ["gaussian", "softmax", "polya-gamma"])
def test_a_classifier_of_more_data_than_variables_takes_it_and_keeps_it(
    tmp_path, monkeypatch, likelihood
):
    monkeypatch.setattr("orbitgp.estimators.classifier.FEW_DATA", 50)
    (X, y), (X_test, y_test) = bars(200), bars(100, seed=1)
    parts = {"likelihood": likelihood, "settings": TrainingSettings(max_steps=2)}
    model = InvariantGPClassifier("affine", random_state=0, **parts)
    model.fit(X, y)
    basis = model.model_.mean_basis
    assert basis is not None
    assert basis.points.shape[0] == 200
    assert model.score(X_test, y_test) > 0.9
    save(model, tmp_path / "model.orbitgp")
    back = load(tmp_path / "model.orbitgp")
    assert np.array_equal(back.predict_proba(X_test), model.predict_proba(X_test))
    fewer = InvariantGPClassifier("affine", random_state=0, num_inducing=100, **parts)
    assert fewer.fit(X, y).model_.mean_basis is None


def test_a_stream_has_none_even_where_its_sample_holds_all_of_it(monkeypatch):
    monkeypatch.setattr("orbitgp.estimators.classifier.FEW_DATA", 50)
    X, y = bars(120)
    model = InvariantGPClassifier(settings=TrainingSettings(max_steps=2), random_state=0)
    model.fit_stream([(X[:60], y[:60]), (X[60:], y[60:])])
    assert model.model_.mean_basis is None
