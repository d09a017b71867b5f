"""(K + σ²I) a = y for as many unknowns as there are data, by conjugate gradients.

Half of K fits into memory where N is some ten thousands. Some columns of it make the preconditioner
(Rudi et al. 2017)

    P = K_nm K_mm⁻¹ K_mn + σ²I,    P⁻¹ = (I − K_nm (σ²K_mm + K_mn K_nm)⁻¹ K_mn) / σ².

The same half and the same columns serve equations that lack some of the data.
"""

import itertools
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.gaussians import slices
from orbitgp.kernels import Kernel
from orbitgp.posterior.algebra import add_jitter, cholesky
from orbitgp.posterior.inducing import sums_with_u
from orbitgp.training.starts import JITTER
from orbitgp.values import OrbitSample

BLOCK = 2048
MAX_ROUNDS = 60
TOLERANCE = 0.03
"""What may remain of |y|: predictions rest long before equations are solved."""

NUM_POWERS = 4
SPARE = 1.1


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

    @staticmethod
    def of(matrix: HalfMatrix, columns: Tensor, rows: Tensor, noise: float) -> "Equations":
        """For K_nm and the rows of it that K_mm is."""
        columns = columns.double()  # as what is left of a difference is divided by σ²
        own = columns[rows]
        inner = add_jitter(noise * 0.5 * (own + own.mT), JITTER)
        for part in columns.split(BLOCK):
            inner.addmm_(part.mT, part)
        factor = cholesky(inner, "σ²K_mm + K_mn K_nm")
        return Equations(matrix, columns, inner, factor, noise, torch.ones_like(columns[:, :1]))

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

    def largest_ratio(self, start: Float[Tensor, "N C"]) -> float:
        """The largest eigenvalue of P⁻¹(K + σ²I), by some powers of it, with a little to spare."""
        values, ratio = start / start.norm(), 1.0
        for _ in range(NUM_POWERS):
            values = self.precondition(self.multiply(values))
            ratio = values.norm().item()
            values = values / ratio
        return SPARE * max(ratio, 1.0)


def averages(
    kernel: Kernel, left: Float[Tensor, "N S D"], right: Float[Tensor, "M S D"]
) -> Float[Tensor, "N M"]:
    """mean_st k_g(x_ns, z_mt), in the dtype of the points."""
    num_samples = left.shape[1]
    sums = sums_with_u(kernel, OrbitSample(left), right, num_samples)
    return (sums[:, 0] / num_samples).to(left.dtype)


def half_covariance(kernel: Kernel, points: Float[Tensor, "N S D"]) -> HalfMatrix:
    """The covariance of the averages of g over the points of each datum."""
    pairs = itertools.combinations_with_replacement(slices(len(points), BLOCK), 2)
    return HalfMatrix([(b, a, averages(kernel, points[b], points[a])) for a, b in pairs])


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
