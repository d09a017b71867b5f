"""A mean with a variable for every datum, against the same equations solved outright."""

import itertools

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
from orbitgp.training import ascent, equations, whole_mean
from orbitgp.training.equations import (
    Equations,
    HalfMatrix,
    conjugate_gradients,
    half_covariance,
)
from orbitgp.training.passes import Resident
from orbitgp.training.whole_mean import affordable_samples, mean_of_all, some_left_out
from tests.conftest import assert_close
from tests.test_estimators import bars


@pytest.fixture
def small(monkeypatch):
    """Several blocks and fewer columns than data, solved to the end."""
    for part, name, value in (
        (equations, "BLOCK", 16),
        (equations, "TOLERANCE", 1e-9),
        (whole_mean, "NUM_COLUMNS", 20),
    ):
        monkeypatch.setattr(part, name, value)


def basis_of(model, examples, *, num_samples, generator):
    """The mean alone, with a preconditioner of the first data."""
    order = torch.arange(examples.num_data)
    found = mean_of_all(model, examples, order, num_samples=num_samples, generator=generator)
    return found and found.basis


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


@pytest.fixture
def known(generator):
    """Equations of 30 data, of which every fifth makes the preconditioner, and K."""
    root = torch.randn(30, 30, generator=generator, dtype=torch.float64)
    matrix, rows = root @ root.mT, torch.arange(0, 30, 5)
    half = HalfMatrix([(slice(0, 30), slice(0, 30), matrix)])
    return Equations.of(half, matrix[:, rows], rows, 0.5), matrix


def test_conjugate_gradients_solve_equations(small, known, generator):
    solver, matrix = known
    targets = torch.randn(30, 3, generator=generator, dtype=torch.float64)
    found, remains = conjugate_gradients(solver, targets)
    assert_close(found, torch.linalg.solve(matrix + 0.5 * torch.eye(30), targets), tolerance=1e-7)
    assert remains <= 1e-9
    again, remains = conjugate_gradients(solver, targets, found)
    assert torch.equal(again, found)
    solved, remains = conjugate_gradients(solver, torch.zeros_like(targets))
    assert (solved == 0).all()
    assert remains == 0


def test_equations_without_some_data_are_those_of_the_others(small, known, generator):
    """Even if some of them made the preconditioner."""
    solver, matrix = known
    targets = torch.randn(30, 3, generator=generator, dtype=torch.float64)
    out = torch.tensor([0, 7, 10, 29])
    kept = torch.ones(30, dtype=torch.bool)
    kept[out] = False
    fewer = solver.without(out)
    found, _ = conjugate_gradients(fewer, targets)
    others = matrix[kept][:, kept] + 0.5 * torch.eye(26)
    assert_close(found[kept], torch.linalg.solve(others, targets[kept]), tolerance=1e-7)
    assert (found[out] == 0).all()
    values = torch.zeros_like(targets)
    values[kept] = targets[kept]
    rounded = matrix[:, ::5] @ torch.linalg.solve(matrix[::5, ::5], matrix[::5])
    p = (rounded + 0.5 * torch.eye(30))[kept][:, kept]
    assert_close(
        fewer.precondition(values)[kept], torch.linalg.solve(p, values[kept]), tolerance=1e-3
    )


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
    basis = basis_of(model, examples, num_samples=1, generator=generator)
    assert basis is not None
    points = examples.x.double()
    exact = RBF(1.0, 1.0).double()(points, points).to_dense().detach() + 1e-3 * torch.eye(1500)
    remains = (examples.y - exact @ basis.weights).norm() / examples.y.norm()
    assert remains < 0.1, f"{remains:.3f} of |y| remains"


def test_an_answer_that_is_none_is_not_given(monkeypatch, generator):
    monkeypatch.setattr(equations, "MAX_ROUNDS", 0)
    monkeypatch.setattr(whole_mean, "NUM_COLUMNS", 2)
    model, examples = smooth(generator, 1e-3)
    assert basis_of(model, examples, num_samples=1, generator=generator) is None


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
    model.mean_basis = basis_of(model, Resident(x, y), **draws)
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
def test_what_is_left_out_is_what_the_others_say(small, generator, monkeypatch):
    monkeypatch.setattr(whole_mean, "LEFT_OUT", (20, 40))
    x = torch.randn(60, 2, generator=generator)
    y = torch.sin(2 * x) + 0.1 * torch.randn(60, 2, generator=generator)
    model = InvariantGP(
        orbit=Identity(),
        kernel=RBF(1.5, 0.7),
        posterior=InducingPosterior(x[:5], 2),
        likelihood=Gaussian(0.01),
    )
    order = torch.randperm(60, generator=generator)
    examples, draws = Resident(x, y), {"num_samples": 1, "generator": generator}
    found = mean_of_all(model, examples, order, **draws)
    rows = some_left_out(order)
    assert found is not None
    assert found.left_out.shape == (20, 2)
    for part in (slice(0, 15), slice(15, 20)):  # a quarter of all at most
        out = rows[part]
        kept = torch.ones(60, dtype=torch.bool)
        kept[out] = False
        with torch.no_grad():
            kff = covariance(model.kernel, x[kept], x[kept]) + 0.01 * torch.eye(int(kept.sum()))
            expected = covariance(model.kernel, x[out], x[kept]) @ torch.linalg.solve(kff, y[kept])
        assert_close(found.left_out[part], expected, tolerance=1e-6)


@pytest.mark.usefixtures("float64")
def test_a_mean_may_have_a_variance_of_its_own(small, generator):
    x = torch.randn(60, 2, generator=generator)
    y = torch.sin(2 * x) + 0.1 * torch.randn(60, 2, generator=generator)
    models = [
        InvariantGP(
            orbit=Identity(),
            kernel=RBF(variance, 0.7),
            posterior=InducingPosterior(x[:5], 2),
            likelihood=Gaussian(0.01),
        )
        for variance in (1.5, 6.0)
    ]
    draws = {"num_samples": 1, "generator": generator}
    order = torch.arange(60)
    means = []
    for model in models:
        found = mean_of_all(model, Resident(x, y), order, variance=6.0, **draws)
        assert found is not None
        model.mean_basis = found.basis
        means.append(model.predict(x[:9] + 0.3).mean)
    assert_close(means[0], means[1], tolerance=1e-6)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("num_columns", [5, 60])
@pytest.mark.parametrize("likelihood", [Softmax(3), StickBreaking(3), PolyaGamma()], ids=name_of)
def test_log_odds_climb_to_the_mode(small, generator, likelihood, num_columns):
    """Where f = K a and a = ∇ log p(y | f), from columns that leave much of K out, too."""
    x = torch.randn(60, 2, generator=generator)
    labels = (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()
    labels = labels.clamp(max=likelihood.num_classes - 1)
    with torch.no_grad():
        kernel = RBF(20.0, 0.7)
        matrix = half_covariance(kernel, x.unsqueeze(1))
        columns = covariance(kernel, x, x[:num_columns])
    solver = Equations.of(matrix, columns, torch.arange(num_columns), 1 / likelihood.max_precision)
    start, _ = conjugate_gradients(solver, solver.noise * likelihood.flattest_bound(labels).linear)
    length = solver.noise / solver.largest_ratio(start)
    climb = ascent.ascent(likelihood, labels, solver, start, length)
    a, f = next(itertools.islice(climb, 2000, None))
    f = f.requires_grad_()
    own = likelihood.log_probabilities(f).gather(1, labels.unsqueeze(1))
    (slope,) = torch.autograd.grad(own.sum(), f)
    assert_close(a, slope, tolerance=1e-6)


def test_left_out_labels_say_how_far_to_climb():
    """f grows right for three rounds, whatever its scale, then wrong; each part knows its own."""
    labels = torch.tensor([0, 1, 1, 0])
    signs = torch.tensor([[-1.0], [1.0], [1.0], [-1.0]], dtype=torch.float64)
    quality = [0.1, 0.5, 1.0, 0.9, 0.4, 0.3, 2.0]  # the last comes too late
    noise = torch.tensor([[1.0], [-1.0], [0.5], [0.2]], dtype=torch.float64)
    states = [(torch.empty(0), 0.1 * (q * signs + noise)) for q in quality]
    parts = [torch.tensor([2, 0]), torch.tensor([1])]
    climbs = [iter(states), iter(states)]
    number, f = ascent.likeliest_round(PolyaGamma(), labels, climbs, parts)
    assert number == 2
    assert torch.equal(f, states[2][1][[2, 0, 1]])


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
    model.mean_basis = basis_of(model, Resident(x, y), num_samples=4, generator=generator)
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


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("likelihood", ["gaussian", "softmax", "polya-gamma"])
def test_a_classifier_of_more_data_than_variables_takes_it_and_keeps_it(
    tmp_path, monkeypatch, likelihood
):
    monkeypatch.setattr("orbitgp.estimators.classifier.FEW_DATA", 50)
    monkeypatch.setattr("orbitgp.estimators.base.exact_plan", lambda *_, **__: None)
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
