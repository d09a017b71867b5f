"""Exact inference: one factorisation of the covariance of all data.

It gives the evidence, the posterior, and what each datum would have been predicted as without it,
on which class probabilities are calibrated.
"""

import math

import numpy as np
from jaxtyping import Float
from torch import Tensor

from orbitgp.callbacks.base import Callback
from orbitgp.fit.learning import Learning
from orbitgp.fit.solution import Solution
from orbitgp.inference.exact import climbed_ratio, evidence_at, exact_posterior, orbit_points
from orbitgp.kernels import average_covariances_among
from orbitgp.posterior.exact import leave_one_out

MAX_REFINED = 10_000
"""Data up to which narrower ranges, and the ratio, are tried on all of them."""

NARROWER = 0.8
"""Of all ranges: more data are worth narrower ones than fewer are."""


def solve_exact(learning: Learning, callback: Callback) -> Solution:
    """The best scales for all data, after a last look at narrower ranges, and the posterior."""
    del callback
    problem, sampling = learning.problem, learning.sampling
    targets, size = sampling.targets, len(sampling.targets)
    searched = learning.searched()
    ratio = searched.at(learning.z).ratio
    covariance = _covariance(learning, learning.z)
    if searched.size < size <= MAX_REFINED:
        covariance = _narrowed(learning, ratio, covariance)
    largest = problem.max_ratio / covariance.diagonal().mean().item()
    scales = evidence_at(covariance, targets, min(ratio, largest))
    if size <= MAX_REFINED or scales.evidence == -math.inf:
        scales = climbed_ratio(lambda r: evidence_at(covariance, targets, r), ratio, largest)
    learning.parameters.assign(learning.z)
    data = problem.examples.x, targets, learning.noise
    model, solution = exact_posterior(problem.model, *data, scales, covariance)
    rows = sampling.order[: learning.settings.calibration_size]
    left_out = leave_one_out(solution, targets, scales.noise, rows)
    return Solution(model, solution.evidence, 0.0, left_out, rows)


def _covariance(learning: Learning, z: np.ndarray) -> Float[Tensor, "N N"]:
    learning.parameters.assign(z)
    model, noise = learning.problem.model, learning.noise
    points = orbit_points(model, learning.problem.examples.x, noise)
    return average_covariances_among(model.kernel, points)


def _narrowed(
    learning: Learning, ratio: float, covariance: Float[Tensor, "N N"]
) -> Float[Tensor, "N N"]:
    """The covariance with narrower ranges, or a shorter lengthscale, if it has more evidence."""
    parameters, targets = learning.parameters, learning.sampling.targets
    moved = parameters.widths if parameters.num_widths else parameters.lengths
    other = learning.z.copy()
    other[moved] += math.log(NARROWER)
    narrower = _covariance(learning, other)
    found, before = (evidence_at(matrix, targets, ratio) for matrix in (narrower, covariance))
    if found.evidence <= before.evidence:
        return covariance
    learning.z = other
    return narrower
