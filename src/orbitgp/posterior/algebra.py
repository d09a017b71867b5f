"""The M×M algebra, in float64, that says what is wrong instead of trying again."""

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import NumericalError


def cholesky(matrix: Float[Tensor, "*R M M"], name: str) -> Float[Tensor, "*R M M"]:
    """L with L Lᵀ = matrix; a matrix without one raises with its smallest eigenvalue."""
    factor, info = torch.linalg.cholesky_ex(matrix)
    if info.any():
        raise NumericalError(_explain(matrix.detach(), name))
    return factor


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


def whiten(
    factor: Float[Tensor, "M M"], matrices: Float[Tensor, "R M M"]
) -> Float[Tensor, "R M M"]:
    """L⁻¹ Q L⁻ᵀ for symmetric Q."""
    half = torch.linalg.solve_triangular(factor, matrices, upper=False)
    return torch.linalg.solve_triangular(factor.mT, half, upper=True, left=False)
