"""A mean with a variable for every datum, against the same equations solved outright."""

import pytest
import torch

from orbitgp import (
    RBF,
    Gaussian,
    InducingPosterior,
    InvariantGP,
    InvariantKernel,
    Rotation,
    SignFlips,
)
from orbitgp.inference import full_data_mean as module
from orbitgp.inference.full_data_mean import (
    FullCovariance,
    HalfMatrix,
    conjugate_gradients,
    full_data_mean,
    left_out_means,
)
from orbitgp.kernels import average_covariances_among, covariance
from orbitgp.posterior.exact import solve_exactly
from orbitgp.posterior.mean_basis import MeanBasis
from tests.conftest import assert_close

RATIO = 50.0


@pytest.fixture
def small(monkeypatch):
    """Several blocks and fewer columns than data, solved to the end."""
    for name, value in (("BLOCK", 16), ("TOLERANCE", 1e-9), ("NUM_COLUMNS", 20)):
        monkeypatch.setattr(module, name, value)


@pytest.fixture
def data(generator):
    x = torch.randn(60, 3, 2, generator=generator, dtype=torch.float64)
    y = torch.sin(2 * x.mean(1)) + 0.1 * torch.randn(60, 2, generator=generator)
    kernel = RBF(1.3, 0.7).double()
    order = torch.randperm(60, generator=generator)
    return kernel, x, y, order, average_covariances_among(kernel, x)


def test_half_of_a_matrix_multiplies_like_all_of_it(small, data):
    kernel, x, y, order, whole = data
    half = FullCovariance.of(kernel, x, order).matrix
    assert sum(block.numel() for _, _, block in half.blocks) < 0.75 * 60**2
    assert_close(half @ y, whole @ y)


@pytest.fixture
def known(generator):
    """Equations of 30 data, of which every fifth makes the preconditioner, and K."""
    root = torch.randn(30, 30, generator=generator, dtype=torch.float64)
    matrix = root @ root.mT
    half, columns = HalfMatrix([(slice(0, 30), slice(0, 30), matrix)]), matrix[:, ::5]
    whole = FullCovariance(half, columns, matrix[::5, ::5], columns.mT @ columns)
    return whole.equations(0.5), matrix


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


def test_it_is_the_exact_posterior_mean_with_the_exact_fit(small, data):
    kernel, x, y, order, whole = data
    found = full_data_mean(FullCovariance.of(kernel, x, order), y, RATIO)
    exact = solve_exactly(RATIO * whole, y, 1.0)
    assert_close(found.weights / RATIO, exact.weights, tolerance=1e-6)
    assert found.quadratic == pytest.approx((y * exact.weights).sum().item(), rel=1e-8)


def test_any_other_mean_leaves_more_of_the_targets(small, data, monkeypatch):
    """So the bound holds wherever conjugate gradients stop."""
    kernel, x, y, order, _ = data
    covariance_of_all = FullCovariance.of(kernel, x, order)
    best = full_data_mean(covariance_of_all, y, RATIO).quadratic
    monkeypatch.setattr(module, "MAX_ROUNDS", 1)
    assert full_data_mean(covariance_of_all, y, RATIO).quadratic > best


def test_what_is_left_out_is_what_the_others_say(small, data):
    kernel, x, y, order, whole = data
    covariance_of_all = FullCovariance.of(kernel, x, order)
    found = full_data_mean(covariance_of_all, y, RATIO)
    rows = order[-20:]
    means = left_out_means(covariance_of_all, y, found, RATIO, rows)
    for part in (slice(0, 15), slice(15, 20)):  # a quarter of all at most
        kept = torch.ones(60, dtype=torch.bool)
        kept[rows[part]] = False
        system = whole[kept][:, kept] + torch.eye(int(kept.sum())) / RATIO
        expected = whole[rows[part]][:, kept] @ torch.linalg.solve(system, y[kept])
        assert_close(means[part], expected, tolerance=1e-6)


def test_rounding_of_the_kernel_does_not_lead_it_astray(monkeypatch, generator):
    """Many data on few axes: equations whose condition is far beyond float32."""
    monkeypatch.setattr(module, "NUM_COLUMNS", 300)
    x = torch.rand(1500, 1, 3, generator=generator)
    y = torch.sign(torch.sin(9 * x[:, 0, :1])).double()
    covariance_of_all = FullCovariance.of(RBF(1.0, 1.0), x, torch.arange(1500))
    weights = full_data_mean(covariance_of_all, y, 1e3).weights
    points, exact = x[:, 0].double(), RBF(1.0, 1.0).double()
    system = exact(points, points).to_dense().detach() + 1e-3 * torch.eye(1500)
    remains = (y - system @ weights).norm() / y.norm()
    assert remains < 0.1, f"{remains:.3f} of |y| remains"


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
    points = model.orbit.enumerate(x).points
    found = full_data_mean(FullCovariance.of(model.kernel, points, torch.arange(40)), y, 100.0)
    model.mean_basis = MeanBasis(points, found.weights)
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
