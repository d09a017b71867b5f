"""A smaller predictor: the posterior of f given a few averages of g.

The mean of a fit is made of averages b_i of g, one for each training input, with weights a_i. Fewer
points of m of them make b', chosen where |a_i|² Var(b_i | those before) is largest, as many at once
as there are before, and

    μ'(x) = k(x, b') a',    a' = argmin Σ_n (k(x_n, b') a' − μ(x_n))² + ε |a'|²,

over training inputs. With the first v of b', K_vv = L Lᵀ, and their posterior
covariance S_v,

    σ'²(x) = k_f(x, x) − k(x, b_v) K_vv⁻¹ (K_vv − S_v) K_vv⁻¹ k(b_v, x) ≥ σ²(x).
"""

import copy
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.export.predictor import PosteriorSums, Predictor, sums_of
from orbitgp.inference.inducing import JITTER
from orbitgp.kernels import (
    Kernel,
    average_covariances,
    average_covariances_among,
    average_variances,
)
from orbitgp.posterior.algebra import add_jitter, cholesky, eigenvectors

FEWEST, MOST = 32, 16_384
NUM_POINTS = 2
"""Points of an average, at most: with four, predictions move as far, and take twice the time."""

MAX_VARIANCE = 1024
"""Averages that the variance is made of."""

NUM_FITTED = 65_536
"""Training inputs that the mean is made for."""

NUM_CHECKED = 1000
"""Training inputs whose predictions must not move."""

RIDGE = 1e-8
"""ε, as a part of Σ_n k(x_n, b')², where nothing but rounding is left."""

BLOCK = 1024


@torch.no_grad()
def compact_predictor(
    estimator: Any, tolerance: float, report: Callable[[str], None] = lambda _: None
) -> Predictor:
    """The smallest, doubling its size, whose predictions of training inputs hardly move.

    Parameters
    ----------
    estimator : InvariantGPClassifier or InvariantGPRegressor
        A fitted estimator.
    tolerance : float
        The mean, over training inputs, of half of the sum of |p' − p| over classes; for numbers,
        that of |μ' − μ| in predictive standard deviations.
    report : callable, optional
        Is given a line for each size.

    Returns
    -------
    Predictor
        The whole one, if none with half as many averages is good enough.
    """
    if not 0 < tolerance < 1:
        raise InputError(
            "compact is how far predictions of training inputs may move, as a mean of "
            f"probabilities: a number above 0 and below 1, such as 0.01; got {tolerance}"
        )
    sums, kernel = sums_of(estimator.model_), copy.deepcopy(estimator.model_.kernel).cpu()
    whole, smaller = Predictor(estimator, sums), Compaction(kernel, sums)
    expected, size = predictions(whole, smaller.checked), FEWEST
    while size <= smaller.most:
        found = Predictor(estimator, smaller.sums(size))
        gap = moved(expected, predictions(found, smaller.checked))
        report(f"{size:,} averages instead of {len(sums.mean_points):,}: moved by {gap:.4f}")
        if gap <= tolerance:
            return found
        size *= 2
    report("no smaller one is good enough: the predictor is the whole one")
    return whole


class Compaction:
    """What all sizes have in common: an order of averages, and f at some training inputs."""

    def __init__(self, kernel: Kernel, sums: PosteriorSums) -> None:
        self.kernel, self.full = kernel, sums
        points, weights = sums.mean_points, sums.weights.double()
        rows = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))
        rows = rows.to(points.device)
        self.checked = points[rows[-NUM_CHECKED:]]
        self.fitted = points[rows[:NUM_FITTED]]
        self.mean = _in_blocks(
            lambda some: average_covariances(kernel, some, points) @ weights, self.fitted
        )
        self.points = points[:, :: max(1, points.shape[1] // NUM_POINTS)]
        self.sizes = weights.square().sum(1)
        self.most = min(len(points) // 2, MOST)
        self._order = rows[:0]

    def sums(self, size: int) -> PosteriorSums:
        """Return sums over the first `size` averages, extending their order as far as needed."""
        while len(self._order) < min(size, self.most):
            longer = twice_as_many(self.kernel, self.points, self.sizes, self._order)
            self._order = longer[: self.most]
        points = self.points[self._order[:size]]
        prior = average_covariances_among(self.kernel, points)
        gram, moment = torch.zeros_like(prior), self.mean.new_zeros(size, self.mean.shape[1])
        for some, mean in zip(self.fitted.split(BLOCK), self.mean.split(BLOCK), strict=True):
            covariances = average_covariances(self.kernel, some, points).to(gram)
            gram.addmm_(covariances.mT, covariances)
            moment.addmm_(covariances.mT, mean)
        factor = cholesky(add_jitter(gram, RIDGE), "K_mn K_nm + εI")
        weights = torch.cholesky_solve(moment, factor)
        explained, retained = self._variance(points[:MAX_VARIANCE], prior)
        dtype = self.full.explained.dtype
        retained = None if retained is None else retained.to(dtype)
        return PosteriorSums(points, weights, points, explained.to(dtype), retained)

    def _variance(
        self, points: Float[Tensor, "V J D"], prior: Float[Tensor, "K K"]
    ) -> tuple[Float[Tensor, "V R"], Float[Tensor, "O V R"] | None]:
        """A and B given f at these points: with X = L⁻¹ k(b_v, c) A and Y alike of B,

        L⁻¹ (K_vv − S_v) L⁻ᵀ = X Xᵀ − Y Yᵀ.
        """
        full, num = self.full, len(points)
        factor = cholesky(add_jitter(prior[:num, :num], JITTER), "K_vv")
        inverse = torch.linalg.solve_triangular(factor, torch.eye(num).to(factor), upper=False)
        known = average_covariances(self.kernel, points, full.variance_points)
        known = inverse @ known

        def outer(matrix: Tensor) -> Tensor:
            rows = known.to(matrix) @ matrix
            return (rows @ rows.mT).double()

        left = outer(full.explained)
        if full.retained is None or len(full.retained) == 1:
            left = left if full.retained is None else left - outer(full.retained[0])
            values, vectors = eigenvectors(left, "L⁻¹ (K_vv − S_v) L⁻ᵀ")
            return inverse.mT @ (vectors * values.clamp(0, 1).sqrt()), None
        kept = []
        for one in full.retained:
            values, vectors = eigenvectors(
                torch.eye(num).to(left) - left + outer(one), "L⁻¹ S_v L⁻ᵀ"
            )
            kept.append(inverse.mT @ (vectors * values.clamp(min=0).sqrt()))
        return inverse.mT, torch.stack(kept)


def twice_as_many(
    kernel: Kernel,
    points: Float[Tensor, "K J D"],
    sizes: Float[Tensor, "K"],
    chosen: Int[Tensor, "M"],
) -> Int[Tensor, "L"]:
    """Those chosen, and as many with the largest size × variance given them; at first FEWEST."""
    scores = sizes * _variances_given(kernel, points, points[chosen])
    scores[chosen] = -1
    best = scores.argsort(descending=True, stable=True)
    return torch.cat([chosen, best[: max(FEWEST, len(chosen))]])


def _variances_given(
    kernel: Kernel, points: Float[Tensor, "K J D"], known: Float[Tensor, "M J D"]
) -> Float[Tensor, "K"]:
    """Var(b | b_known) = k(b, b) − |L⁻¹ k(b_known, b)|²."""
    variances = average_variances(kernel, points)
    if not len(known):
        return variances
    prior = average_covariances_among(kernel, known)
    factor = cholesky(add_jitter(prior, JITTER), "K_mm")

    def explained(some: Tensor) -> Tensor:
        covariances = average_covariances(kernel, some, known).to(factor)
        rows = torch.linalg.solve_triangular(factor, covariances.mT, upper=False)
        return rows.square().sum(0)

    return (variances - _in_blocks(explained, points)).clamp(min=0)


def predictions(predictor: Predictor, points: Float[Tensor, "N S D"]) -> Any:
    """Those for inputs with these orbit points."""
    return _in_blocks(predictor.from_points, points)


def moved(before: Any, after: Any) -> float:
    """How far predictions moved, as `compact_predictor` has it."""
    if isinstance(before, Tensor):
        return 0.5 * (after - before).abs().sum(1).mean().item()
    (mean, variance), (other, _) = before, after
    return ((other - mean).abs() / variance.sqrt()).mean().item()


def _in_blocks(function: Callable[[Tensor], Any], points: Float[Tensor, "N S D"]) -> Any:
    found = [function(part) for part in points.split(BLOCK)]
    if isinstance(found[0], Tensor):
        return torch.cat(found)
    return tuple(torch.cat(parts) for parts in zip(*found, strict=True))
