"""q(u) by its natural parameters, along which natural gradients move in a straight line.

For a quadratic bound of the likelihood the best q(v), u = L v, has with whitened k̄_n, v̄_n = L⁻¹k̄_n,

    S̃⁻¹ = I + Σ_n λ_n v̄_n v̄_nᵀ,    S̃⁻¹m̃ = Σ_n v̄_n l_nᵀ,

so both are sums over the data, which a minibatch estimates (Hensman et al. 2013).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.posterior.algebra import cholesky
from orbitgp.values import WhitenedGaussian


@dataclass(frozen=True)
class NaturalParameters:
    """Λ = S̃⁻¹, one for all outputs (R = 1) or one for each, and S̃⁻¹m̃."""

    precision: Float[Tensor, "R M M"]
    target: Float[Tensor, "M C"]

    @staticmethod
    def optimum(gram: Float[Tensor, "R M M"], linear: Float[Tensor, "M C"]) -> "NaturalParameters":
        """Return the best q(v) for Σ λ_n v̄_n v̄_nᵀ and Σ v̄_n l_nᵀ; the prior for zeros."""
        precision = gram.clone()
        precision.diagonal(dim1=-2, dim2=-1).add_(1)
        return NaturalParameters(precision, linear)

    def toward(self, other: "NaturalParameters", step_size: float) -> "NaturalParameters":
        """Take a natural-gradient step of this size; one of size 1 is the other."""
        return NaturalParameters(
            torch.lerp(self.precision, other.precision, step_size),
            torch.lerp(self.target, other.target, step_size),
        )

    def gaussian(self) -> WhitenedGaussian:
        """q(v) = N(m̃, U Uᵀ), with the upper triangular U = F⁻ᵀ for Λ = F Fᵀ."""
        factor = cholesky(self.precision, "the precision of q(u)")
        identity = torch.eye(factor.shape[-1]).to(factor)
        scale = torch.linalg.solve_triangular(factor.mT, identity, upper=True)
        return WhitenedGaussian(multiply(scale, multiply(scale.mT, self.target)), scale)


def multiply(
    matrices: Float[Tensor, "R M M"], columns: Float[Tensor, "M C"]
) -> Float[Tensor, "M C"]:
    """Return one matrix times all columns (R = 1), or each matrix times its own column."""
    if len(matrices) == 1:
        return matrices[0] @ columns
    return torch.matmul(matrices, columns.mT.unsqueeze(-1)).squeeze(-1).mT
