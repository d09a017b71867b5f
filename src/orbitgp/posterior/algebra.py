"""The M×M algebra, in float64, that says what is wrong instead of trying again."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import NumericalError, refuse_second_derivatives


def cholesky(matrix: Float[Tensor, "*R M M"], name: str) -> Float[Tensor, "*R M M"]:
    """L with L Lᵀ = matrix; a matrix without one raises with its smallest eigenvalue."""
    factor, info = torch.linalg.cholesky_ex(matrix)
    if info.any():
        raise NumericalError(_explain(matrix.detach(), name))
    return factor


def eigenvectors(
    matrix: Float[Tensor, "M M"], name: str
) -> tuple[Float[Tensor, "M"], Float[Tensor, "M M"]]:
    """λ and V with V diag(λ) Vᵀ = matrix, where rounding may leave some λ < 0."""
    if not torch.isfinite(matrix).all():
        raise NumericalError(_explain(matrix.detach(), name))
    values, vectors = torch.linalg.eigh(matrix)
    return values, vectors


def largest_ratio(values: Float[Tensor, "M"]) -> float:
    """r up to which r λ + 1 ≥ ½, where rounding has left eigenvalues λ of a covariance below 0."""
    lowest = values.min().item()
    return -0.5 / lowest if lowest < 0 else math.inf


def _explain(matrix: Tensor, name: str) -> str:
    size = matrix.shape[-1]
    if not torch.isfinite(matrix).all():
        return (
            f"{name} ({size}×{size}) has entries that are not finite; look for NaN or infinity in "
            "the inputs, or a lengthscale or variance that has run away"
        )
    smallest = torch.linalg.eigvalsh(matrix).min().item()
    return (
        f"{name} ({size}×{size}) is not positive definite: its smallest eigenvalue is "
        f"{smallest:.3g}; use a larger jitter, fewer or more distant inducing points, or a shorter "
        "lengthscale"
    )


def solve_rows(factor: Float[Tensor, "M M"], rows: Float[Tensor, "K M"]) -> Float[Tensor, "K M"]:
    """X = rows L⁻ᵀ: L⁻¹ applied to each row."""
    return torch.linalg.solve_triangular(factor.mT, rows, upper=True, left=False)


class _AddJitter(torch.autograd.Function):
    """K + ε · mean(diag K) · I, without the M×M temporaries that indexing would leave behind."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, relative: float) -> Tensor:
        ctx.relative = relative
        result = matrix.clone()
        result.diagonal().add_(relative * matrix.diagonal().mean())
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # pyright: ignore
        refuse_second_derivatives()
        result = grad.clone()
        result.diagonal().add_(ctx.relative * grad.diagonal().mean())
        return result, None


def add_jitter(matrix: Float[Tensor, "M M"], relative: float) -> Float[Tensor, "M M"]:
    """K + ε · mean(diag K) · I."""
    return _AddJitter.apply(matrix, relative)  # pyright: ignore[reportReturnType]


class _ExcessOfScale(torch.autograd.Function):
    """Σ_r tr S̃ − M − log det S̃ for S̃ = U Uᵀ; its gradient is 2 (U − diag(1/U))."""

    @staticmethod
    def forward(ctx: Any, scale: Tensor) -> Tensor:
        ctx.save_for_backward(scale)
        diagonal = scale.diagonal(dim1=-2, dim2=-1)
        trace = torch.linalg.vector_norm(scale).square()
        return trace - diagonal.numel() - diagonal.square().log().sum()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # pyright: ignore
        refuse_second_derivatives()
        (scale,) = ctx.saved_tensors
        result = 2 * grad * scale
        result.diagonal(dim1=-2, dim2=-1).sub_(2 * grad / scale.diagonal(dim1=-2, dim2=-1))
        return result


def excess_of_scale(scale: Float[Tensor, "R M M"]) -> Float[Tensor, ""]:
    """Σ_r tr S̃ − M − log det S̃ for S̃ = U Uᵀ: what a covariance adds to the KL, twice."""
    return _ExcessOfScale.apply(scale)  # pyright: ignore[reportReturnType]


class _WhitenRows(torch.autograd.Function):
    """V = rows L⁻ᵀ for Kuu = L Lᵀ, with the factorisation inside.

    Apart, their gradients multiply by Lᵀ what was just divided by it. With G = ∂F/∂V, and Φ taking
    the lower triangle with half the diagonal,

        ∂F/∂rows = G L⁻¹,    ∂F/∂Kuu = −L⁻ᵀ Φ(Gᵀ V) L⁻¹,

    the latter up to an antisymmetric part, which no symmetric Kuu can see.
    """

    @staticmethod
    def forward(ctx: Any, kuu: Tensor, rows: Tensor) -> Tensor:
        factor = cholesky(kuu, "Kuu")
        whitened = solve_rows(factor, rows)
        ctx.save_for_backward(factor, whitened)
        return whitened

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore
        refuse_second_derivatives()
        factor, whitened = ctx.saved_tensors
        grad_rows = torch.linalg.solve_triangular(factor, grad, upper=False, left=False)
        inner = torch.matmul(grad.mT, whitened).tril_().neg_()
        inner.diagonal().mul_(0.5)
        half = torch.linalg.solve_triangular(factor.mT, inner, upper=True)
        return torch.linalg.solve_triangular(factor, half, upper=False, left=False), grad_rows


def whiten_rows(kuu: Float[Tensor, "M M"], rows: Float[Tensor, "K M"]) -> Float[Tensor, "K M"]:
    """V = rows L⁻ᵀ for Kuu = L Lᵀ, differentiable in both."""
    return _WhitenRows.apply(kuu, rows)  # pyright: ignore[reportReturnType]


def whiten(
    factor: Float[Tensor, "M M"], matrices: Float[Tensor, "R M M"]
) -> Float[Tensor, "R M M"]:
    """L⁻¹ Q L⁻ᵀ for symmetric Q."""
    half = torch.linalg.solve_triangular(factor, matrices, upper=False)
    return torch.linalg.solve_triangular(factor.mT, half, upper=True, left=False)


def square_root(matrix: Float[Tensor, "N N"]) -> Float[Tensor, "N N"]:
    """R with R Rᵀ = matrix, for covariances that may be singular."""
    values, vectors = torch.linalg.eigh(matrix)
    return vectors * values.clamp(min=0).sqrt()
