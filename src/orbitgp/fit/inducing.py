"""Inference beyond exact sizes: M values of f, and where affordable a mean on all data.

The lengthscale and the ratio v/σ² are chosen by the bound that is reported, which is that of the
posterior that predicts, on some data; without a mean on all data, the ratio then once more on all.
"""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.callbacks.base import Callback
from orbitgp.fit.learning import Learning
from orbitgp.fit.solution import Solution
from orbitgp.hyperparameters.learn import LENGTH_STEP, uphill_length
from orbitgp.inference.exact import climbed_ratio, evidence_at, orbit_points, with_scales
from orbitgp.inference.full_data_mean import FullCovariance, full_data_mean, left_out_means
from orbitgp.inference.inducing import (
    JITTER,
    InducingSolution,
    InducingStatistics,
    inducing_statistics,
    left_out_inducing,
    solve_inducing,
    statistics_of_covariance,
)
from orbitgp.kernels import average_covariances, average_covariances_among, average_variances
from orbitgp.likelihoods.gaussian import Scales
from orbitgp.model import InvariantGP
from orbitgp.posterior.algebra import solve_rows
from orbitgp.posterior.inducing import InducingPosterior
from orbitgp.posterior.mean_basis import MeanBasis
from orbitgp.values import Prediction

NUM_TRIED = 4096
"""Data that the lengthscale is chosen on."""

MAX_LENGTH_STEPS = 6
NUM_UNEXPLAINED = 2048
"""Data from which the unexplained variance is estimated, which costs M² for each."""


def solve_with_inducing(learning: Learning, callback: Callback) -> Solution:
    """Lengthscale and ratio by the bound, then the posterior, its bound and its left-out f."""
    problem, plan = learning.problem, learning.plan
    ratio = _choose_length(learning)
    rows, others = learning.sampling.order.tensor_split([plan.num_points])
    x, noise = problem.examples.x, learning.noise
    points = orbit_points(problem.model, x[rows], noise)
    others = x[others[:NUM_UNEXPLAINED]]
    num_others = problem.examples.num_data - plan.num_points
    statistics = inducing_statistics(
        problem.model, problem.examples, points, others, num_others, noise, problem.group
    )
    if plan.full_mean:
        callback.announced("computing the mean on all data by conjugate gradients")
        return _with_full_mean(learning, points, statistics, ratio)
    return _with_inducing_mean(learning, points, statistics, ratio)


def _choose_length(learning: Learning) -> float:
    """Take the lengthscale with the highest bound on some data; returns the ratio that suits it."""
    problem, sampling, parameters = learning.problem, learning.sampling, learning.parameters
    rows = sampling.order[:NUM_TRIED]
    x, targets = problem.examples.x[rows], sampling.targets[rows]
    points = orbit_points(problem.model, x, learning.noise)
    few = len(rows) < problem.examples.num_data
    num_points = min(learning.plan.num_points, max(1, len(rows) // 2) if few else len(rows))
    known, shape = learning.searched().at(learning.z), (len(targets), targets.shape[1])

    def trial(z: np.ndarray, best: Scales) -> Scales:
        parameters.assign(z)
        covariance = average_covariances_among(problem.model.kernel, points)
        statistics = statistics_of_covariance(covariance, targets, num_points)

        def at(other: float) -> Scales:
            solution = solve_inducing(statistics, other)
            if not learning.plan.full_mean:
                return solution.scales(shape)
            exact = evidence_at(covariance, targets, other)
            if not math.isfinite(exact.evidence):
                return exact
            return solution.scales(shape, exact.noise * targets.numel())

        largest = problem.max_ratio / covariance.diagonal().mean().item()
        return climbed_ratio(at, best.ratio, largest)

    # few variables would rather have a longer one than exact evidence has
    start, factors = (learning.z, trial(learning.z, known)), (1 / LENGTH_STEP, LENGTH_STEP)
    learning.z, scales = uphill_length(parameters, trial, start, factors, MAX_LENGTH_STEPS)
    parameters.assign(learning.z)
    return scales.ratio


def _with_inducing_mean(
    learning: Learning,
    points: Float[Tensor, "M S D"],
    statistics: InducingStatistics,
    ratio: float,
) -> Solution:
    """Mean and variance from the same M values of f."""
    problem, sampling = learning.problem, learning.sampling
    shape = statistics.num_data, sampling.targets.shape[1]
    largest = problem.max_ratio / _mean_variance(learning)
    scales = climbed_ratio(
        lambda other: solve_inducing(statistics, other).scales(shape), ratio, largest
    )
    solution = solve_inducing(statistics, scales.ratio)
    rows = sampling.left_out
    model, left_out = _posterior(learning, points, statistics, solution, scales)
    error = 0.5 * shape[1] * solution.log_volume_error
    return Solution(model, scales.evidence, error, left_out, rows)


def _with_full_mean(
    learning: Learning,
    points: Float[Tensor, "M S D"],
    statistics: InducingStatistics,
    ratio: float,
) -> Solution:
    """The variance from M values of f, the mean from all data."""
    problem, sampling = learning.problem, learning.sampling
    model, targets = problem.model, sampling.targets
    everything = orbit_points(model, problem.examples.x, learning.noise)
    covariance = FullCovariance.of(model.kernel, everything, sampling.order)
    ratio = min(ratio, problem.max_ratio / _mean_variance(learning))
    # as chosen on some data: each other ratio would take as long as all that follows
    found = full_data_mean(covariance, targets, ratio)
    solution = solve_inducing(statistics, ratio)
    scales = solution.scales((len(targets), targets.shape[1]), found.quadratic)
    rows = sampling.left_out
    fitted, left_out = _posterior(learning, points, statistics, solution, scales)
    fitted.mean_basis = MeanBasis(everything, found.weights / (scales.ratio * scales.noise))
    mean = left_out_means(covariance, targets, found, scales.ratio, rows)
    error = 0.5 * targets.shape[1] * solution.log_volume_error
    left_out = Prediction.exact(mean, left_out.variance)
    return Solution(fitted, scales.evidence, error, left_out, rows)


def _mean_variance(learning: Learning) -> float:
    """mean k_f(x, x), from some data."""
    model, some = learning.problem.model, learning.sampling.order[:NUM_UNEXPLAINED]
    points = orbit_points(model, learning.problem.examples.x[some], learning.noise)
    return average_variances(model.kernel, points).mean().item()


@torch.no_grad()
def _posterior(
    learning: Learning,
    points: Float[Tensor, "M S D"],
    statistics: InducingStatistics,
    solution: InducingSolution,
    scales: Scales,
) -> tuple[InvariantGP, Prediction]:
    """The model with these scales and its q(u), and f at the data that are left out in turn."""
    model, sampling = learning.problem.model, learning.sampling
    rows = sampling.left_out
    own = orbit_points(model, learning.problem.examples.x[rows], learning.noise)
    whitened = solve_rows(statistics.factor, average_covariances(model.kernel, own, points))
    variance = average_variances(model.kernel, own)
    left_out = left_out_inducing(solution, scales, whitened, variance, sampling.targets[rows])
    kernel, likelihood = with_scales(model, scales)
    num_outputs = statistics.linear.shape[1]
    posterior = InducingPosterior(points, num_outputs, jitter=JITTER)
    posterior.assign(solution.q(scales.noise))
    parts = model.parts(kernel=kernel, likelihood=likelihood)
    return InvariantGP(**parts, posterior=posterior), left_out
