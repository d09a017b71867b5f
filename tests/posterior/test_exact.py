"""Exact inference against slow references, and what its posterior says."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

from orbitgp import RBF, Affine, InputError, OneHotGaussian, coordinate_swap
from orbitgp.exact_model import ExactInvariantGP
from orbitgp.inference.exact import climbed_ratio, evidence_at, exact_evidence, exact_posterior
from orbitgp.kernels import (
    average_covariances,
    average_covariances_among,
    average_gradients,
    average_variances,
    covariance,
    scaled_kernel,
)
from orbitgp.likelihoods.gaussian import Gaussian, Scales
from orbitgp.orbit_model import OrbitModel
from orbitgp.posterior.exact import ExactPosterior, leave_one_out, solve_exactly

KERNELS = {
    "RBF": lambda: RBF(0.7, 1.3).double(),
    "ARD": lambda: RBF(0.7, 1.3, ard_num_dims=3).double(),
    "Matérn": lambda: ScaleKernel(MaternKernel(2.5)).double(),
    "GPyTorch": lambda: RBFKernel().double(),
}


def points(num_data, num_draws, seed=0, dim=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_data, num_draws, dim, generator=generator, dtype=torch.float64)


def slow_average(kernel, left, right):
    """mean_st k(x_ns, z_mt), pair by pair."""
    pairs = [[covariance(kernel, a, b).mean() for b in right] for a in left]
    return torch.stack([torch.stack(row) for row in pairs]).detach()


@pytest.mark.parametrize("name", KERNELS)
def test_covariances_of_averages(name):
    kernel, left, right = KERNELS[name](), points(5, 3), points(7, 4, seed=1)
    if name == "ARD":
        kernel.lengthscale = torch.tensor([0.5, 1.0, 2.0])
    expected = slow_average(kernel, left, right)
    torch.testing.assert_close(
        average_covariances(kernel, left, right), expected, atol=1e-12, rtol=0
    )
    among = average_covariances_among(kernel, left)
    torch.testing.assert_close(among, slow_average(kernel, left, left), atol=1e-12, rtol=0)
    assert torch.equal(among, among.mT)
    own = average_variances(kernel, left)
    torch.testing.assert_close(own, among.diagonal(), atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", ["RBF", "ARD", "Matérn"])
def test_gradients_of_averages(name):
    """Against autograd through the slow average."""
    kernel, x = KERNELS[name](), points(6, 3).requires_grad_()
    raw = [p for n, p in kernel.named_parameters() if "lengthscale" in n]
    upstream = torch.randn(6, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    upstream = upstream + upstream.mT
    pairs = [[covariance(kernel, a, b).mean() for b in x] for a in x]
    total = (upstream * torch.stack([torch.stack(row) for row in pairs])).sum()
    expected = torch.autograd.grad(total, [x, *raw])
    slopes, of_kernel = average_gradients(kernel, raw, x.detach(), upstream)
    torch.testing.assert_close(slopes, expected[0], atol=1e-12, rtol=1e-9)
    torch.testing.assert_close(of_kernel[0], expected[1], atol=1e-12, rtol=1e-9)


def test_many_blocks_are_one_matrix(monkeypatch):
    monkeypatch.setattr("orbitgp.gaussians.ROWS", 6)
    monkeypatch.setattr("orbitgp.gaussians.COLUMNS", 2)
    test_covariances_of_averages("RBF")
    test_gradients_of_averages("RBF")


@pytest.mark.parametrize("name", KERNELS)
def test_a_scaled_kernel(name):
    kernel, x = KERNELS[name](), points(4, 1)[:, 0]
    scaled = scaled_kernel(kernel, 3.0)
    torch.testing.assert_close(covariance(scaled, x, x), 3 * covariance(kernel, x, x))


def problem(num_outputs=2, size=12):
    x = points(size, 3)
    generator = torch.Generator().manual_seed(5)
    y = torch.randn(size, num_outputs, generator=generator, dtype=torch.float64)
    return average_covariances_among(RBF(0.7, 1.3).double(), x), y


def test_evidence_is_that_of_a_multivariate_normal():
    k, y = problem()
    solution = solve_exactly(k.clone(), y, 0.1)
    matrix = k + 0.1 * torch.eye(len(k), dtype=torch.float64)
    normal = torch.distributions.MultivariateNormal(torch.zeros(len(k)).double(), matrix)
    assert solution.evidence == pytest.approx(normal.log_prob(y.mT).sum().item(), abs=1e-8)
    torch.testing.assert_close(solution.weights, torch.linalg.solve(matrix, y))


def test_leaving_one_out_is_solving_without_it():
    k, y = problem()
    rows = torch.tensor([7, 0, 3])
    found = leave_one_out(solve_exactly(k.clone(), y, 0.1), y, 0.1, rows)
    for place, row in enumerate(rows.tolist()):
        kept = [i for i in range(len(k)) if i != row]
        matrix = k[kept][:, kept] + 0.1 * torch.eye(len(kept), dtype=torch.float64)
        inverse = torch.linalg.inv(matrix)
        mean = k[row, kept] @ inverse @ y[kept]
        variance = k[row, row] - k[row, kept] @ inverse @ k[kept, row]
        torch.testing.assert_close(found.mean[place], mean, atol=1e-8, rtol=0)
        torch.testing.assert_close(found.variance[place], variance.expand(2), atol=1e-8, rtol=0)


def fitted(orbit=None, size=20, noise=0.05):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(size, 2, generator=generator, dtype=torch.float64)
    y = torch.cos(x.sum(1, keepdim=True)).double()
    model = OrbitModel(
        orbit=orbit or coordinate_swap(0, 1, 2),
        kernel=RBF(1.0, 1.0).double(),
        likelihood=Gaussian(0.1),
    )
    points_of = model.sample_orbit_at(x, None).points
    covariance = average_covariances_among(model.kernel, points_of)
    scales = Scales(2.0 / noise, noise, 0.0)
    return (*exact_posterior(model, x, y, None, scales, covariance), x, y)


def test_predictions_against_a_slow_reference():
    model, solution, x, y = fitted()
    test = points(6, 1, seed=9, dim=2)[:, 0]
    swapped = [torch.stack([a, a.flip(1)], 1) for a in (x, test)]
    train, new = swapped
    kernel, noise = model.kernel, model.likelihood.noise.item()
    k = slow_average(kernel, train, train) + noise * torch.eye(len(x), dtype=torch.float64)
    cross, own = slow_average(kernel, new, train), slow_average(kernel, new, new)
    inverse = torch.linalg.inv(k)
    found = model.predict(test)
    torch.testing.assert_close(found.mean, cross @ inverse @ y, atol=1e-8, rtol=0)
    joint = own - cross @ inverse @ cross.mT
    torch.testing.assert_close(found.variance[:, 0], joint.diagonal(), atol=1e-8, rtol=0)
    assert not found.mean_error.any()
    mean, covariances = model.posterior.joint(kernel, model.sample_orbit_at(test, None))
    torch.testing.assert_close(covariances, joint, atol=1e-8, rtol=0)
    torch.testing.assert_close(mean, found.mean)
    expected = torch.distributions.MultivariateNormal(torch.zeros(len(x)).double(), k)
    assert solution.evidence == pytest.approx(expected.log_prob(y[:, 0]).item(), abs=1e-8)
    assert exact_evidence(model, x, y) == pytest.approx(solution.evidence, abs=1e-8)


def test_joint_draws_have_the_moments_of_the_prediction():
    model, _, _, _ = fitted()
    x = points(3, 1, seed=9, dim=2)[:, 0]
    draws = model.predict_f_samples(x, 4000, generator=torch.Generator().manual_seed(0))
    found = model.predict(x)
    error = (found.variance / 4000).sqrt()
    z = (draws.mean(0) - found.mean) / error
    assert z.abs().max() < 4, f"z = {z.flatten().tolist()}"
    spread = found.variance * (2 / 4000) ** 0.5
    z = (draws.var(0) - found.variance) / spread
    assert z.abs().max() < 4, f"z = {z.flatten().tolist()}"


def test_a_copy_and_a_pickle_predict_the_same():
    model, _, _, _ = fitted()
    x = points(3, 1, seed=9, dim=2)[:, 0]
    expected = model.predict(x)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other.predict(x).variance, expected.variance)
    assert len(model.posterior.packed) == 20 * 21 // 2
    torch.testing.assert_close(
        model.posterior.factor @ model.posterior.factor.mT @ model.posterior.weights,
        torch.cos(fitted()[2].sum(1, keepdim=True)),
    )


@pytest.mark.usefixtures("untyped")
def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="20 data need 20 weights"):
        ExactPosterior(points(20, 2), torch.zeros(3, 1).double(), torch.zeros(210).double(), None)
    with pytest.raises(InputError, match="ExactPosterior"):
        ExactInvariantGP(orbit=Affine(), kernel=RBF(), likelihood=OneHotGaussian(2), posterior=None)


@pytest.mark.parametrize("start", [1e-2, 30.0, 1e5])
def test_the_ratio_is_found_from_any_start(start):
    k, y = problem(size=40)
    y = k @ y  # smooth, so that there is something to find
    found = climbed_ratio(lambda ratio: evidence_at(k, y, ratio), start, 1e6)
    trials = [evidence_at(k, y, ratio).evidence for ratio in np.geomspace(1e-3, 1e6, 300)]
    assert found.evidence > max(trials) - 0.2


@pytest.mark.parametrize("start", [1.0, 1e12])
def test_the_ratio_stays_clear_of_what_rounding_spoils(start):
    """No noise would be best, but of K in float32 no factor is left then."""
    x = torch.linspace(-1, 1, 60).unsqueeze(1)
    k, y = (-0.5 * (x - x.mT).square()).exp().double(), torch.sin(x).double()
    assert torch.linalg.eigvalsh(k).min() < -1e-8
    found = climbed_ratio(lambda ratio: evidence_at(k, y, ratio), start, math.inf)
    assert found.evidence > 100
    assert math.isfinite(evidence_at(k, y, 1.5 * found.ratio).evidence)


def test_the_ratio_is_bounded():
    k, y = problem(size=40)
    found = climbed_ratio(lambda ratio: evidence_at(k, k @ y, ratio), 1.0, 5.0)
    assert found.ratio == pytest.approx(5.0)
