"""From a batch to sufficient statistics, and from these to the bound and to the best q(u).

For a quadratic bound the optimum over q(u) is closed form, S_u = Kuu (Kuu + Q)⁻¹ Kuu and
m = Kuu (Kuu + Q)⁻¹ P. In whitened coordinates, with B = L⁻¹ Q L⁻ᵀ,

    S̃ = (I + B)⁻¹,    m̃ = (I + B)⁻¹ L⁻¹ P.
"""

from collections.abc import Iterable
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.posterior.algebra import cholesky, whiten
from orbitgp.ustatistics import add_pair_gram_, pair_gram
from orbitgp.values import (
    OrbitCovariances,
    QuadraticBound,
    SufficientStatistics,
    WhitenedGaussian,
)


def statistics(covariances: OrbitCovariances, bound: QuadraticBound) -> SufficientStatistics:
    """(c, P, Q, κ, n) of a batch, in float64."""
    precision = bound.precision.double()
    return SufficientStatistics(
        constant=bound.constant.double().sum(),
        linear=covariances.mean.mT @ bound.linear.double(),
        gram=pair_gram(covariances.groups, precision, covariances.weights),
        variance=precision.mT @ covariances.variance,
        num_data=float(len(bound.constant)),
    )


@torch.no_grad()
def accumulate(
    batches: Iterable[tuple[OrbitCovariances, QuadraticBound]],
) -> SufficientStatistics:
    """The sum of the statistics of a stream of batches, gathered in one set of buffers."""
    total = None
    for covariances, bound in batches:
        if total is None:
            total = statistics(covariances, bound)
            continue
        precision = bound.precision.double()
        total.constant.add_(bound.constant.double().sum())
        total.linear.addmm_(covariances.mean.mT, bound.linear.double())
        add_pair_gram_(total.gram, covariances.groups, precision, covariances.weights)
        total.variance.addmv_(precision.mT, covariances.variance)
        total = replace(total, num_data=total.num_data + len(bound.constant))
    if total is None:
        raise InputError("there are no batches to take statistics of; give at least one")
    return total


def expected_log_likelihood(
    statistics: SufficientStatistics,
    q: WhitenedGaussian,
    prior_factor: Float[Tensor, "M M"],
) -> Float[Tensor, ""]:
    """c + tr(αᵀP) − ½ [tr(W Q) + κ C],  α = L⁻ᵀ m̃,  W = ααᵀ + C L⁻ᵀ(S̃ − I)L⁻¹."""
    alpha = torch.linalg.solve_triangular(prior_factor.mT, q.mean, upper=True)
    fit = statistics.constant + (alpha * statistics.linear).sum()
    mean_square = (alpha * _multiply(statistics.gram, alpha)).sum()
    # for each output κ + tr(S̃B) − tr B, B = L⁻¹QL⁻ᵀ; S̃ and B may each be shared by all of them
    whitened = whiten(prior_factor, statistics.gram)
    explained = whitened.diagonal(dim1=1, dim2=2).sum(1)
    retained = (q.scale * (whitened @ q.scale)).sum((1, 2))
    variance = (statistics.variance - explained + retained).expand(q.mean.shape[1]).sum()
    return fit - 0.5 * (mean_square + variance)


def natural_step(
    q: WhitenedGaussian,
    statistics: SufficientStatistics,
    prior_factor: Float[Tensor, "M M"],
    step_size: float,
) -> WhitenedGaussian:
    """One step along the natural gradient of the bound; of size 1, it lands on the optimum.

    The natural parameters S̃⁻¹ and S̃⁻¹m̃ move the given part of the way to the optimal ones.
    The gram must be positive semi-definite: take statistics with mean weights, whose k̄k̄ᵀ is.
    """
    if not 0 < step_size <= 1:
        raise InputError(f"the size of a natural step lies in (0, 1]; got {step_size}")
    identity = torch.eye(len(prior_factor)).to(prior_factor)
    optimal = identity + whiten(prior_factor, statistics.gram)
    target = torch.linalg.solve_triangular(prior_factor, statistics.linear, upper=False)
    if step_size < 1:
        inverse = torch.linalg.solve_triangular(q.scale, identity, upper=True)
        precision = inverse.mT @ inverse
        optimal = torch.lerp(precision, optimal, step_size)
        target = torch.lerp(_multiply(precision, q.mean), target, step_size)
    return _from_natural(optimal, target)


def solve(statistics: SufficientStatistics, prior_factor: Float[Tensor, "M M"]) -> WhitenedGaussian:
    """The q(u) that maximises the bound of these statistics."""
    prior = WhitenedGaussian(torch.empty_like(statistics.linear), statistics.gram)
    return natural_step(prior, statistics, prior_factor, 1.0)


def _from_natural(
    precision: Float[Tensor, "R M M"], target: Float[Tensor, "M C"]
) -> WhitenedGaussian:
    """m̃ = Λ⁻¹ target and the upper triangular U = F⁻ᵀ, for Λ = F Fᵀ = S̃⁻¹."""
    factor = cholesky(precision, "the precision of q(u)")
    identity = torch.eye(factor.shape[-1]).to(factor)
    scale = torch.linalg.solve_triangular(factor.mT, identity, upper=True)
    return WhitenedGaussian(_multiply(scale, _multiply(scale.mT, target)), scale)


def _multiply(
    matrices: Float[Tensor, "R M M"], columns: Float[Tensor, "M C"]
) -> Float[Tensor, "M C"]:
    """One matrix times all columns (R = 1), or each times its own (R = C)."""
    if len(matrices) == 1:
        return matrices[0] @ columns
    return torch.matmul(matrices, columns.mT.unsqueeze(-1)).squeeze(-1).mT
