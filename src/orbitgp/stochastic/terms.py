"""What one minibatch says of the bound and of the best q(u) (vdW 2018, sections 4.2 to 4.5).

    bound = N/B Σ_n [c_n + l_n·μ_n − ½ λ_n·(μ²_n + σ²_n)] − KL[q(u) ‖ p(u)]

with unbiased estimates of μ_n, μ²_n and σ²_n from S orbit samples.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from orbitgp.model import InvariantGP, Pairs
from orbitgp.posterior.algebra import solve_rows, whiten_rows
from orbitgp.posterior.inducing import moments
from orbitgp.values import OrbitCovariances, OrbitSample, QuadraticBound, WhitenedGaussian


@dataclass(frozen=True)
class BatchTerms:
    """Sums over a batch: of the expected log likelihood, and of what the best q(v) is made of."""

    expected: Float[Tensor, ""]
    """Σ_n E_q[log p(y_n | f)] or its bound; differentiable."""
    gram: Float[Tensor, "R M M"]
    """Σ_n λ_n v̄_n v̄_nᵀ."""
    linear: Float[Tensor, "M C"]
    """Σ_n v̄_n l_nᵀ."""


def batch_terms(
    model: InvariantGP,
    q: WhitenedGaussian,
    x: Float[Tensor, "N *event"],
    y: Shaped[Tensor, "N *targets"],
    noise: Float[Tensor, "R S K"] | None,
    pairs: Pairs,
) -> BatchTerms:
    """All three sums, from the same orbit samples."""
    covariances = model.covariances(model.sample_orbit_at(x, noise), pairs)
    bound = model.likelihood.quadratic_bound(x, y)
    # v = L⁻¹k, Kuu = L Lᵀ
    kuu = model.posterior.prior_covariance(model.kernel)
    whitened = whiten_rows(kuu, covariances.groups.flatten(0, 1))
    expected = bound.expectation(moments(covariances, q, whitened)).sum()
    rows = _mean_rows(covariances, whitened.detach())
    return BatchTerms(expected, *_natural_terms(rows, bound))


def _mean_rows(
    covariances: OrbitCovariances, whitened: Float[Tensor, "NB M"]
) -> Float[Tensor, "N M"]:
    """v̄_n = L⁻¹k̄_n: always a Gaussian's, where unbiased pairs may leave Λ indefinite."""
    num_inputs, num_groups = covariances.groups.shape[:2]
    sums = whitened.unflatten(0, (num_inputs, num_groups)).sum(1)
    return sums / (num_groups * covariances.weights.group_size)


@torch.no_grad()
def _natural_terms(
    rows: Float[Tensor, "N M"], bound: QuadraticBound
) -> tuple[Float[Tensor, "R M M"], Float[Tensor, "M C"]]:
    """Σ λ v̄ v̄ᵀ and Σ v̄ lᵀ."""
    grams = [rows.mT @ (column.unsqueeze(1) * rows) for column in bound.precision.mT.double()]
    return torch.stack(grams), rows.mT @ bound.linear.double()


@torch.no_grad()
def natural_terms(
    model: InvariantGP,
    factor: Float[Tensor, "M M"],
    sample: OrbitSample,
    bound: QuadraticBound,
    pairs: Pairs,
) -> tuple[Float[Tensor, "R M M"], Float[Tensor, "M C"]]:
    """The same two sums alone, for L that is known."""
    means = model.covariances(sample, pairs).mean
    return _natural_terms(solve_rows(factor, means), bound)
