"""The closed-form bound with inducing variables, against slow references and exact inference."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from orbitgp import RBF, Affine, Gaussian, Identity, InvariantGPClassifier, elbo, save
from orbitgp.distributed.group import ALONE
from orbitgp.inference.exact import condition, orbit_points, with_scales
from orbitgp.inference.inducing import (
    bound_of,
    inducing_statistics,
    left_out_inducing,
    solve_inducing,
    statistics_of_covariance,
)
from orbitgp.inference.passes import Chunk, Examples, Resident
from orbitgp.kernels import average_covariances, average_covariances_among, average_variances
from orbitgp.likelihoods.gaussian import Scales
from orbitgp.model import InvariantGP
from orbitgp.orbit_model import OrbitModel
from orbitgp.posterior.algebra import solve_rows
from orbitgp.posterior.inducing import InducingPosterior
from tests.conftest import QUICK, assert_close
from tests.processes import python

pytestmark = pytest.mark.usefixtures("float64")

RATIO, NOISE = 8.0, 0.05


class Sampled(Examples):
    """A stream, of which some rows are in memory."""

    def __init__(self, x, y, rows):
        self.x, self.y, self.num_data = x[rows], y[rows], len(x)
        self.everything = Resident(x, y)

    def chunks(self, rank, world_size):
        yield from (Chunk(c.number, c.x, c.y) for c in self.everything.chunks(rank, world_size))


@pytest.fixture
def problem(generator):
    """Small images under four affine transformations that all of them share."""
    x = torch.rand(70, 3, 3, generator=generator)
    y = torch.stack([x.mean((1, 2)), x[:, 1, 1]], 1)
    y = y + 0.1 * torch.randn(y.shape, generator=generator)
    model = OrbitModel(orbit=Affine(-0.2, 0.2), kernel=RBF(1.0, 1.2), likelihood=Gaussian(0.1))
    return model, x, y, model.orbit.shared_noise(4, generator=generator)


def statistics(problem, num_points, others=slice(None)):
    model, x, y, noise = problem
    points = orbit_points(model, x[:num_points], noise)
    rest = x[num_points:][others]
    return inducing_statistics(
        model, Resident(x, y), points, rest, len(x) - num_points, noise, ALONE
    )


def covariance(problem):
    model, x, _, noise = problem
    return average_covariances_among(model.kernel, orbit_points(model, x, noise))


def fitted(problem, found, num_points):
    """The model with the scales of this test and the q(u) that was found."""
    model, x, _, noise = problem
    kernel, likelihood = with_scales(model, Scales(RATIO, NOISE, 0.0))
    points = orbit_points(model, x[:num_points], noise)
    posterior = InducingPosterior(points, 2, jitter=1e-5)
    posterior.assign(solve_inducing(found, RATIO).q(likelihood.noise.item()))
    return InvariantGP(**model.parts(kernel=kernel, likelihood=likelihood), posterior=posterior)


def test_with_a_variable_for_every_datum_the_bound_is_the_evidence(problem):
    model, x, y, noise = problem
    scales = solve_inducing(statistics(problem, len(x)), RATIO).scales((70, 2))
    points = orbit_points(model, x, noise)
    kernel, _ = with_scales(model, scales)
    exact = condition(kernel, points, y, scales.noise).evidence
    assert scales.evidence == pytest.approx(exact, rel=1e-5)  # the jitter of Kuu is 1e-5
    for num_points in (5, 20, 50):
        lower = solve_inducing(statistics(problem, num_points), RATIO).scales((70, 2))
        kernel, _ = with_scales(model, lower)
        assert lower.evidence < condition(kernel, points, y, lower.noise).evidence


def test_a_pass_and_a_covariance_give_the_same_statistics(problem):
    _, _, y, _ = problem
    found = statistics(problem, 20)
    expected = statistics_of_covariance(covariance(problem), y, 20)
    for name in ("factor", "gram", "linear", "unexplained"):
        assert_close(getattr(found, name), getattr(expected, name), tolerance=1e-8)
    assert found.squares == pytest.approx(expected.squares)
    assert found.num_data == expected.num_data == 70


def test_the_bound_is_that_of_the_model_with_one_narrowing_for_each_datum(problem):
    """Against the bound of `elbo`, point by point, with ν_n in place of ν = 1."""
    _, x, y, noise = problem
    found = statistics(problem, 20)
    solution, gp = solve_inducing(found, RATIO), fitted(problem, found, 20)
    own = gp.likelihood.noise.item()
    value, error = bound_of(gp, Resident(x, y), x, noise)
    assert error == 0
    sample = gp.sample_orbit_at(x, noise)
    prediction = gp.predict_from([type(sample)(sample.points, 4)])
    points = orbit_points(gp, x[:20], noise)
    rows = average_covariances(gp.kernel, sample.points, points)
    explained = solve_rows(gp.posterior.prior_factor(gp.kernel), rows).square().sum(1)
    left = (average_variances(gp.kernel, sample.points) - explained).clamp(min=0).detach()
    retained = prediction.variance - left.unsqueeze(1)
    fit = (y - prediction.mean).square() + retained
    terms = -0.5 * (math.log(2 * math.pi * own) + fit / own).sum(1)
    terms = terms - (1 + left / own).log()  # ½ log(1 + d/σ²) for each of two outputs
    q = gp.posterior.q
    kl = 0.5 * (q.mean.square().sum() + 2 * (q.scale[0].square().sum() - 20))
    kl = kl - 2 * q.scale[0].diagonal().log().sum()
    assert value == pytest.approx((terms.sum() - kl).item(), rel=1e-6)
    assert solution.log_volume_error == 0


def test_no_narrowing_at_all_is_the_bound_of_the_paper(problem, generator):
    """Which is lower: `elbo` of the same model, on the draws that are its whole orbit."""
    _, x, y, noise = problem
    gp = fitted(problem, statistics(problem, 20), 20)
    value, _ = bound_of(gp, Resident(x, y), x, noise)
    whole = {"num_data": 70, "num_samples": 64, "generator": generator}
    found = elbo(gp, x, y, **whole).value.item()
    assert found < value


def test_left_out_is_what_a_model_without_the_datum_says(problem):
    model, x, y, noise = problem
    found = statistics(problem, 20)
    solution, scales = solve_inducing(found, RATIO), Scales(RATIO, NOISE, 0.0)
    points = orbit_points(model, x, noise)
    whitened = solve_rows(found.factor, average_covariances(model.kernel, points, points[:20]))
    variance = average_variances(model.kernel, points)
    left_out = left_out_inducing(solution, scales, whitened, variance, y)
    for place in (3, 40):  # with a variable of its own, and without
        kept = torch.arange(70) != place
        fewer = inducing_statistics(
            model, Resident(x[kept], y[kept]), points[:20], x[:0], 0, noise, ALONE
        )
        gp = fitted(problem, fewer, 20)
        sample = gp.sample_orbit_at(x[place : place + 1], noise)
        expected = gp.predict_from([type(sample)(sample.points, 4)])
        assert_close(left_out.mean[place], expected.mean[0], tolerance=1e-5)
        assert_close(left_out.variance[place], expected.variance[0], tolerance=1e-5)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("streamed", [False, True])
def test_errors_are_those_of_repeated_evaluations(generator, streamed):
    """Over 200 evaluations z-scores are normal, also where most data are never in memory."""
    x = torch.rand(1500, 3, generator=generator)
    y = torch.sin(6 * x[:, :1]) + 0.1 * torch.randn(1500, 1, generator=generator)
    likelihood = Gaussian(0.1)
    model = OrbitModel(orbit=Identity(), kernel=RBF(1.0, 0.3), likelihood=likelihood)
    points = orbit_points(model, x[:15], None)
    posterior = InducingPosterior(points, 1, jitter=1e-5)
    gp = InvariantGP(**model.parts(), posterior=posterior)
    truth, none = bound_of(gp, Resident(x, y), x, None)
    assert none == 0
    scores = []
    for _ in range(200):
        rows = torch.randperm(1500, generator=generator)[:300]
        examples = Sampled(x, y, rows) if streamed else Resident(x, y)
        value, error = bound_of(gp, examples, x[rows], None)
        scores.append((value - truth) / error)
    result = kstest(scores, "norm")
    print(f"mean z {np.mean(scores):.3f}, deviation {np.std(scores):.3f}, p = {result.pvalue:.3f}")
    assert result.pvalue > 0.01


RECOMPUTE = """
import sys, numpy as np, torch, orbitgp
from orbitgp.inference.exact import exact_evidence
from orbitgp.inference.inducing import bound_of
from orbitgp.inference.passes import Resident
data, model = np.load(sys.argv[1]), orbitgp.load(sys.argv[2])
x = torch.from_numpy((data["x"].astype(np.float64) / model.scale_).astype(np.float32))
y = torch.from_numpy(data["y"])
if model.evidence_kind_ == "exact":
    print(exact_evidence(model.model_, x, y))
else:
    print(bound_of(model.model_, Resident(x, y), x, model.prediction_noise_)[0])
"""


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("num_inducing", [None, 60])
def test_a_saved_model_has_the_evidence_that_was_reported(tmp_path, num_inducing):
    """Computed anew from model and data, by another process."""
    torch.set_default_dtype(torch.float32)
    draw = np.random.default_rng(0)
    y = np.arange(150) % 2
    x = draw.random((150, 6, 6)).astype(np.float32)
    x[y == 0, 2:4, :] += 1
    asked = {"num_inducing": num_inducing, "settings": QUICK, "random_state": 0}
    model = InvariantGPClassifier("rotation", **asked).fit(x, y)
    save(model, tmp_path / "model")
    np.savez(tmp_path / "data.npz", x=x, y=y)
    run = python("-c", RECOMPUTE, tmp_path / "data.npz", tmp_path / "model")
    assert run.returncode == 0, run.stderr
    found = float(run.stdout)
    if num_inducing is None:
        assert found == pytest.approx(model.evidence_, rel=1e-6)
    else:
        assert abs(found - model.evidence_) < 3 * model.evidence_error_
