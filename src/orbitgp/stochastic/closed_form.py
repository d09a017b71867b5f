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
from orbitgp.inference.coordinate_ascent import coefficients, from_factors
from orbitgp.posterior.algebra import cholesky, whiten
from orbitgp.posterior.inducing import conditional_kl
from orbitgp.stochastic.natural import NaturalParameters, multiply
from orbitgp.ustatistics import add_pair_gram_, mirror_, pair_gram
from orbitgp.values import (
    OrbitCovariances,
    QuadraticBound,
    SufficientStatistics,
    WhitenedGaussian,
)

ROWS = 1024
"""Rows that are added to a gram at a time, at least."""


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
    """The sum of the statistics of a stream of batches, gathered in one set of buffers.

    Small batches are put together first: adding to an M×M matrix costs as much as reading it.
    """
    total, waiting = None, []
    for batch in batches:
        waiting.append(batch)
        if sum(len(bound.constant) for _, bound in waiting) >= ROWS:
            total, waiting = _with(total, waiting), []
    if waiting:
        total = _with(total, waiting)
    if total is None:
        raise InputError("there are no batches to take statistics of; give at least one")
    mirror_(total.gram)
    return total


def _with(
    total: SufficientStatistics | None, batches: list[tuple[OrbitCovariances, QuadraticBound]]
) -> SufficientStatistics:
    """`total` with these batches added in place, but for the upper triangle of the gram."""
    covariances = OrbitCovariances.concatenated([covariances for covariances, _ in batches])
    bound = QuadraticBound.concatenated([bound for _, bound in batches])
    precision = bound.precision.double()
    if total is None:
        size, num_outputs = covariances.groups.shape[2], bound.linear.shape[1]
        gram = precision.new_zeros(precision.shape[1], size, size)
        linear, variance = precision.new_zeros(size, num_outputs), precision.new_zeros(len(gram))
        total = SufficientStatistics(precision.new_zeros(()), linear, gram, variance, 0.0)
    total.constant.add_(bound.constant.double().sum())
    total.linear.addmm_(covariances.mean.mT, bound.linear.double())
    add_pair_gram_(total.gram, covariances.groups, precision, covariances.weights)
    total.variance.addmv_(precision.mT, covariances.variance)
    return replace(total, num_data=total.num_data + len(bound.constant))


def expected_log_likelihood(
    statistics: SufficientStatistics,
    q: WhitenedGaussian,
    prior_factor: Float[Tensor, "M M"],
) -> Float[Tensor, ""]:
    """c + tr(αᵀP) − ½ [tr(W Q) + νκC] − NC KL_f,  α = L⁻ᵀm̃,  W = ααᵀ + C L⁻ᵀ(S̃ − νI)L⁻¹."""
    alpha = torch.linalg.solve_triangular(prior_factor.mT, q.mean, upper=True)
    fit = statistics.constant + (alpha * statistics.linear).sum()
    mean_square = (alpha * multiply(statistics.gram, alpha)).sum()
    # for each output ν(κ − tr B) + tr(S̃B), B = L⁻¹QL⁻ᵀ; S̃ and B may each be shared by all of them
    whitened = whiten(prior_factor, statistics.gram)
    explained = whitened.diagonal(dim1=1, dim2=2).sum(1)
    retained = (q.scale * (whitened @ q.scale)).sum((1, 2))
    variance = q.narrowing * (statistics.variance - explained) + retained
    divergence = statistics.num_data * q.mean.shape[1] * conditional_kl(q.narrowing)
    return fit - 0.5 * (mean_square + variance.expand(q.mean.shape[1]).sum()) - divergence


def solve(
    statistics: SufficientStatistics,
    prior_covariance: Float[Tensor, "M M"],
    prior_factor: Float[Tensor, "M M"] | None = None,
) -> WhitenedGaussian:
    """Find the q(u) that maximises the bound of these statistics, with q(f|u) = p(f|u).

    With F Fᵀ = Kuu + Q and α = F⁻ᵀF⁻¹P it is m̃ = Lᵀα, U = (F⁻¹L)ᵀ: one factorisation and one
    triangular solve, where whitening Q first takes three. But that always works: Kuu + Q has no
    factor where the jitter of Kuu is lost in the rounding of a Q that is far larger.

    Parameters
    ----------
    statistics : SufficientStatistics
        Of all data, with `mean_pairs`.
    prior_covariance : Tensor of shape (M, M)
        Kuu.
    prior_factor : Tensor of shape (M, M), optional
        L with L Lᵀ = Kuu, if it is known.

    Returns
    -------
    WhitenedGaussian
        The best q(u), for `InducingPosterior.assign`.

    Raises
    ------
    NumericalError
        If a matrix is not positive definite.

    Examples
    --------
    >>> import torch
    >>> import orbitgp
    >>> x = torch.linspace(-1, 1, 8)[:, None]
    >>> model = orbitgp.InvariantGP(
    ...     orbit=orbitgp.SignFlips(0),
    ...     kernel=orbitgp.RBF(),
    ...     posterior=orbitgp.InducingPosterior(x, num_outputs=1),
    ...     likelihood=orbitgp.Gaussian(noise=0.01),
    ... )
    >>> options = {"num_samples": None, "generator": None, "pairs": orbitgp.mean_pairs}
    >>> found = orbitgp.statistics(model, x, x[:, 0] ** 2, **options)
    >>> covariance = model.posterior.prior_covariance(model.kernel)
    >>> orbitgp.solve(found, covariance.detach()).mean.shape
    torch.Size([8, 1])
    """
    if prior_factor is None:
        prior_factor = cholesky(prior_covariance, "Kuu")
    factors, info = torch.linalg.cholesky_ex(prior_covariance + statistics.gram)
    if info.any():
        whitened = torch.linalg.solve_triangular(prior_factor, statistics.linear, upper=False)
        gram = whiten(prior_factor, statistics.gram)
        return NaturalParameters.optimum(gram, whitened).gaussian()
    return from_factors(prior_factor, factors, coefficients(factors, statistics.linear))
