"""Posterior mean with one variable for each training point, by conjugate gradients.

With (K + I/r) a = Y the mean of f at the data is μ = K a, and what it leaves of the targets

    E = Σ|y_n − μ_n|² + tr aᵀK a / r,

for any a no less than that of exact inference: with the variance of `inducing.py` it makes a bound
of the posterior with this mean (Cheng and Boots 2017). Half of K fits into memory where N is some
ten thousands. With σ² = 1/r some columns of it make the preconditioner (Rudi et al. 2017)

    P = K_nm K_mm⁻¹ K_mn + σ²I,    P⁻¹ = (I − K_nm (σ²K_mm + K_mn K_nm)⁻¹ K_mn) / σ².

The same half and the same columns serve equations that lack some of the data.
"""

import itertools
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.gaussians import slices
from orbitgp.inference.inducing import JITTER
from orbitgp.kernels import Kernel, average_covariances
from orbitgp.posterior.algebra import add_jitter, cholesky

BLOCK = 2048
NUM_COLUMNS = 3000
MAX_ROUNDS = 60
TOLERANCE = 0.03
"""What may remain of |y|: predictions rest long before equations are solved."""


@dataclass(frozen=True)
class HalfMatrix:
    """A symmetric matrix by the blocks of its lower half, in the dtype of the kernel."""

    blocks: list[tuple[slice, slice, Tensor]]

    def __matmul__(self, columns: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        product, rounded = torch.zeros_like(columns), columns.to(self.blocks[0][2])
        for rows, others, block in self.blocks:
            product[rows] += block @ rounded[others]
            if rows != others:
                product[others] += block.mT @ rounded[rows]
        return product


@dataclass(frozen=True)
class FullCovariance:
    """K, some of its columns, and K_mn K_nm of these: what equations for any noise are made of."""

    matrix: HalfMatrix
    columns: Float[Tensor, "N M"]
    own: Float[Tensor, "M M"]
    gram: Float[Tensor, "M M"]

    @staticmethod
    @torch.no_grad()
    def of(
        kernel: Kernel, points: Float[Tensor, "N S D"], order: Int[Tensor, "N"]
    ) -> "FullCovariance":
        """Of the averages of g over these points; the first data of the order give the columns."""
        pairs = itertools.combinations_with_replacement(slices(len(points), BLOCK), 2)
        blocks = [(b, a, _averages(kernel, points[b], points[a])) for a, b in pairs]
        first = order[:NUM_COLUMNS]
        parts = [average_covariances(kernel, part, points[first]) for part in points.split(BLOCK)]
        columns = torch.cat(parts)
        gram = columns.new_zeros(len(first), len(first))
        for part in parts:
            gram.addmm_(part.mT, part)
        own = columns[first]
        return FullCovariance(HalfMatrix(blocks), columns, 0.5 * (own + own.mT), gram)

    def equations(self, noise: float) -> "Equations":
        """(K + σ²I) a = y."""
        inner = add_jitter(noise * self.own, JITTER).add_(self.gram)
        factor = cholesky(inner, "σ²K_mm + K_mn K_nm")
        kept = torch.ones_like(self.columns[:, :1])
        return Equations(self.matrix, self.columns, inner, factor, noise, kept)


@dataclass(frozen=True)
class FullDataMean:
    """a for one ratio, and E."""

    weights: Float[Tensor, "N C"]
    quadratic: float


@torch.no_grad()
def full_data_mean(
    covariance: FullCovariance, targets: Float[Tensor, "N C"], ratio: float
) -> FullDataMean:
    """The mean for this ratio."""
    weights, _ = conjugate_gradients(covariance.equations(1 / ratio), targets)
    mean = covariance.matrix @ weights
    left = (targets - mean).square().sum() + (weights * mean).sum() / ratio
    return FullDataMean(weights, left.item())


@torch.no_grad()
def left_out_means(
    covariance: FullCovariance,
    targets: Float[Tensor, "N C"],
    found: FullDataMean,
    ratio: float,
    rows: Int[Tensor, "H"],
) -> Float[Tensor, "H C"]:
    """The mean at each of these data, from all data but a part that it belongs to.

    In as few parts as leave three quarters of all data to learn from.
    """
    equations, means = covariance.equations(1 / ratio), []
    for part in rows.split(max(1, len(targets) // 4)):
        fewer = equations.without(part)
        weights, _ = conjugate_gradients(fewer, targets, fewer.kept * found.weights)
        means.append((covariance.matrix @ weights)[part])
    return torch.cat(means)


@dataclass(frozen=True)
class Equations:
    """K, the columns of it that make P, and the noise; data that are left out have a = 0."""

    matrix: HalfMatrix
    columns: Float[Tensor, "N M"]
    inner: Float[Tensor, "M M"]
    """σ²K_mm + K_mn K_nm."""
    factor: Float[Tensor, "M M"]
    noise: float
    kept: Float[Tensor, "N 1"]
    """1, or 0 for a datum that is left out."""

    def without(self, rows: Int[Tensor, "H"]) -> "Equations":
        """As if these data had never been."""
        kept, out = self.kept.clone(), self.columns[rows]
        kept[rows] = 0
        inner = torch.addmm(self.inner, out.mT, out, alpha=-1)
        return replace(self, inner=inner, factor=cholesky(inner, "σ²K_mm + K_mn K_nm"), kept=kept)

    def multiply(self, a: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """(K + σ²I) a."""
        return (self.matrix @ a).add_(a, alpha=self.noise).mul_(self.kept)

    def precondition(self, values: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """P⁻¹ v."""
        values = self.kept * values
        inner = torch.cholesky_solve(self.columns.mT @ values, self.factor)
        return (values - self.columns @ inner).mul_(self.kept / self.noise)


def _averages(
    kernel: Kernel, left: Float[Tensor, "N S D"], right: Float[Tensor, "M S D"]
) -> Float[Tensor, "N M"]:
    """mean_st k_g(x_ns, z_mt), in the dtype of the points."""
    return average_covariances(kernel, left, right).to(left.dtype)


def conjugate_gradients(
    equations: Equations, targets: Float[Tensor, "N C"], start: Float[Tensor, "N C"] | None = None
) -> tuple[Float[Tensor, "N C"], float]:
    """a for each column of y, and what remains of |y|; from the preconditioner's own answer on.

    Rounding can make it stray, so the best answer is the one that is returned.
    """
    targets = equations.kept * targets
    solution = equations.precondition(targets) if start is None else start
    residual = targets - equations.multiply(solution)
    direction = ahead = equations.precondition(residual)
    slope, size = _inner(residual, ahead), targets.norm().item() or 1.0
    best = residual.norm().item() / size, solution
    for _ in range(MAX_ROUNDS):
        if best[0] <= TOLERANCE:
            break
        product = equations.multiply(direction)
        length = slope / _inner(direction, product)
        solution = solution + length * direction
        residual = residual - length * product
        best = min(best, (residual.norm().item() / size, solution), key=lambda pair: pair[0])
        ahead = equations.precondition(residual)
        before, slope = slope, _inner(residual, ahead)
        direction = ahead + slope / before * direction
    return best[1], best[0]


def _inner(a: Float[Tensor, "N C"], b: Float[Tensor, "N C"]) -> Float[Tensor, "C"]:
    """Column by column; a column that is solved must not divide 0 by 0."""
    return (a * b).sum(0).clamp(min=torch.finfo(a.dtype).tiny)
