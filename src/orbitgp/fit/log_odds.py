"""Inference where f is a log-odds: M values of f and local parameters of the bound in turn.

Ranges and lengthscale were learned by the exact evidence of one-hot targets. The kernel's variance
is that of the highest bound, on some data that have a variable each.
"""

import copy
import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.callbacks.base import Callback
from orbitgp.fit.learning import Learning
from orbitgp.fit.problem import Sampling
from orbitgp.fit.solution import Solution
from orbitgp.inference.coordinate_ascent import FixedPoint, Prior, Rows, fixed_point, rows_of
from orbitgp.inference.exact import orbit_points
from orbitgp.inference.inducing import JITTER, prior_covariance, without_own
from orbitgp.kernels import scaled_kernel
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP
from orbitgp.orbit_model import OrbitModel
from orbitgp.posterior.algebra import solve_rows
from orbitgp.posterior.inducing import InducingPosterior
from orbitgp.values import Prediction

VARIANCES = tuple(2.0**k for k in range(11))
NUM_TRIED = 500
"""Data by whose bound the variance of the kernel is chosen."""


@torch.no_grad()
def solve_log_odds(likelihood: LocalLikelihood, learning: Learning, callback: Callback) -> Solution:
    """The best q(u) and local parameters together, and the bound that they reach."""
    del callback
    problem, order = learning.problem, learning.sampling.order
    model, x = problem.model, problem.examples.x
    likelihood = copy.deepcopy(likelihood).to(x.device)
    labels = likelihood.labels_of(problem.examples.y)
    noise = learning.noise
    points = orbit_points(model, x[order[: learning.plan.num_points]], noise)
    some = points[:NUM_TRIED]
    unit = prior_covariance(model.kernel, some)
    variance = highest_variance(likelihood, unit, labels[order[: len(some)]])
    kernel = scaled_kernel(model.kernel, variance)
    prior = Prior.of(prior_covariance(kernel, points))
    parts = model.parts(kernel=kernel, likelihood=likelihood)
    rows = rows_of(OrbitModel(**parts), x, labels, points, noise)
    found = fixed_point(likelihood, rows, prior)
    chosen = learning.sampling.left_out
    left_out = left_out_log_odds(likelihood, rows, prior, found, chosen)
    posterior = InducingPosterior(
        points,
        likelihood.num_outputs,
        shared_covariance=likelihood.num_precisions == 1,
        jitter=JITTER,
    )
    posterior.assign(found.q)
    fitted = InvariantGP(**parts, posterior=posterior)
    return Solution(fitted, found.bound, 0.0, left_out, chosen)


def bound_of_subset(
    model: OrbitModel, sampling: Sampling, num_data: int, num_draws: int, place: int = 0
) -> float:
    """Return the bound of the first inputs of the order, with a variable for each of them.

    `model` is a fitted one with a `LocalLikelihood`; its kernel and ranges stay as they are.
    """
    likelihood, examples = model.likelihood, sampling.problem.examples
    assert isinstance(likelihood, LocalLikelihood)
    rows = sampling.order[:num_data]
    points = orbit_points(model, examples.x[rows], sampling.noise(num_draws, place))
    prior = Prior.of(prior_covariance(model.kernel, points))
    labels = likelihood.labels_of(examples.y[rows])
    own = Rows(prior.covariance, prior.covariance.diagonal(), labels)
    return fixed_point(likelihood, own, prior).bound


def highest_variance(
    likelihood: LocalLikelihood, unit: Float[Tensor, "N N"], labels: Int[Tensor, "N"]
) -> float:
    """The variance with the highest bound for this covariance of a unit one, uphill from 1."""
    best = -math.inf, VARIANCES[0]
    for variance in VARIANCES:
        prior = Prior.of(variance * unit)
        rows = Rows(prior.covariance, prior.covariance.diagonal(), labels)
        found = fixed_point(likelihood, rows, prior).bound
        if found <= best[0]:
            break
        best = found, variance
    return best[1]


@torch.no_grad()
def left_out_log_odds(
    likelihood: LocalLikelihood,
    rows: Rows,
    prior: Prior,
    found: FixedPoint,
    chosen: Int[Tensor, "T"],
) -> Prediction:
    """f at some data, each without its own label: its mean, and its variance."""
    own = rows.mean[chosen].double()
    bound = likelihood.bound_at(rows.labels[chosen], found.local[chosen])
    whitened = solve_rows(prior.factor, own)
    spreads = [(whitened @ scale).square().sum(1) for scale in found.q.scale]
    retained = torch.stack(spreads, 1)
    left = (rows.variance[chosen] - whitened.square().sum(1)).clamp(min=0).unsqueeze(1)
    return without_own(bound, found.moments.mean[chosen], retained, left)
