"""q(u) and local parameters together: each has its best in closed form where the other is given.

With k_n, the covariances of f(x_n) with u, held in memory, in turn

    F Fᵀ = Kuu + Q,  α = F⁻ᵀF⁻¹P                                from the λ_n and l_n of the bound,
    μ_n = k_n·α,  σ_n² = ν_n (k_f − |L⁻¹k_n|²) + |F⁻¹k_n|²       from which the next bound comes,

with d_n = k_f − |L⁻¹k_n|² and ν_n = 1 / (1 + λ_n d_n) for each datum. Each half of a round raises
the bound, and `acceleration.py` accelerates the rounds. Where λ is the same for all data whatever
the local parameters are (softmax), F is computed once, and a round costs N M C.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.gaussians import slices
from orbitgp.inference.acceleration import Mixing
from orbitgp.inference.exact import CHUNK, orbit_points
from orbitgp.kernels import average_covariances, average_variances
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.orbit_model import OrbitModel
from orbitgp.posterior.algebra import cholesky, solve_rows
from orbitgp.posterior.inducing import conditional_kl, kl
from orbitgp.ustatistics import add_pair_gram_, mean_weights, mirror_
from orbitgp.values import Moments, QuadraticBound, WhitenedGaussian

MAX_ROUNDS = 100
TOLERANCE = 1e-3
"""Root mean square change of the mean of f, in units of √(1 + f²), at which rounds end."""

ROWS = 4096


@dataclass(frozen=True)
class Rows:
    """k_n and k_f(x_n, x_n) of some data, and their labels."""

    mean: Float[Tensor, "N M"]
    variance: Float[Tensor, "N"]
    labels: Int[Tensor, "N"]

    def parts(self) -> Iterator[tuple[slice, Float[Tensor, "K M"]]]:
        """Some k_n at a time, in float64."""
        for chosen in slices(len(self.mean), ROWS):
            yield chosen, self.mean[chosen].double()


@dataclass(frozen=True)
class FixedPoint:
    """The best q(u), moments of f, the local parameters that go with them, and the bound."""

    q: WhitenedGaussian
    moments: Moments
    local: Float[Tensor, "N K"]
    bound: float
    num_rounds: int


@dataclass(frozen=True)
class Prior:
    """Kuu and L."""

    covariance: Float[Tensor, "M M"]
    factor: Float[Tensor, "M M"]

    @staticmethod
    def of(covariance: Float[Tensor, "M M"]) -> "Prior":
        """Factorise Kuu."""
        return Prior(covariance, cholesky(covariance, "Kuu"))


@torch.no_grad()
def rows_of(
    model: OrbitModel,
    x: Float[Tensor, "N *event"],
    labels: Int[Tensor, "N"],
    points: Float[Tensor, "M S D"],
    noise: Float[Tensor, "1 S K"] | None,
) -> Rows:
    """k_n of all data with the transformations that all of them share, in the kernel's dtype."""
    rows, variances = [], []
    for part in x.split(CHUNK):
        own = orbit_points(model, part, noise)
        rows.append(average_covariances(model.kernel, own, points).to(points.dtype))
        variances.append(average_variances(model.kernel, own))
    return Rows(torch.cat(rows), torch.cat(variances), labels)


@torch.no_grad()
def fixed_point(likelihood: LocalLikelihood, rows: Rows, prior: Prior) -> FixedPoint:
    """Rounds until the mean of f rests, from local parameters 0."""
    steady = likelihood.has_constant_precision
    local = likelihood.no_local(rows.labels)
    left = _unexplained(rows, prior).unsqueeze(1)
    path = Mixing()
    factors, retained, last, number = None, None, None, 0
    while True:
        number += 1
        bound = likelihood.bound_at(rows.labels, local)
        if factors is None or retained is None or not steady:
            factors = _factors(rows, prior, bound.precision)
            retained = _retained(rows, factors)
        alpha = _coefficients(rows, bound, factors)
        mean, narrowing = _means(rows, alpha), 1 / (1 + bound.precision * left)
        moments = Moments(mean, mean.square(), narrowing * left + retained)
        best = likelihood.best_local(moments)
        rests = last is not None and _rests(mean, last)
        if rests or number == MAX_ROUNDS:
            q = from_factors(prior.factor, factors, alpha)
            value = _value(likelihood.bound_at(rows.labels, best), moments, narrowing, q)
            return FixedPoint(q, moments, best, value, number)
        local, last = path.onward(local, best), mean


def _value(
    bound: QuadraticBound,
    moments: Moments,
    narrowing: Float[Tensor, "N R"],
    q: WhitenedGaussian,
) -> float:
    """Σ_n E_q[bound] − Σ_nc KL[q(f_nc|u) ‖ p(f_nc|u)] − KL[q(u) ‖ p(u)]."""
    divergence = conditional_kl(narrowing).expand_as(moments.mean).sum()
    return (bound.expectation(moments).sum() - divergence - kl(q)).item()


def _rests(mean: Float[Tensor, "N C"], last: Float[Tensor, "N C"]) -> bool:
    """Relative to f where f is large: there, rounding of float32 kernels alone moves it more."""
    scale = 1 + mean.square().mean()
    return bool((mean - last).square().mean() < TOLERANCE**2 * scale)


def _factors(rows: Rows, prior: Prior, precision: Float[Tensor, "N R"]) -> Float[Tensor, "R M M"]:
    """F of Kuu + Q, one for each column of λ; data without precision cost nothing."""
    size = rows.mean.shape[1]
    gram = prior.covariance.new_zeros(precision.shape[1], size, size)
    for chosen, part in rows.parts():
        for matrix, column in zip(gram, precision[chosen].mT, strict=True):
            counts = column > 0
            few = part if bool(counts.all()) else part[counts]
            weighted = column[counts].unsqueeze(1)
            add_pair_gram_(matrix.unsqueeze(0), few.unsqueeze(1), weighted, mean_weights(1))
    mirror_(gram)
    return cholesky(gram.add_(prior.covariance), "Kuu + Q")


def _coefficients(
    rows: Rows, bound: QuadraticBound, factors: Float[Tensor, "R M M"]
) -> Float[Tensor, "M C"]:
    """α = F⁻ᵀF⁻¹P, P = Σ k_n l_nᵀ."""
    linear = factors.new_zeros(factors.shape[1], bound.linear.shape[1])
    for chosen, part in rows.parts():
        linear.addmm_(part.mT, bound.linear[chosen])
    return coefficients(factors, linear)


def _means(rows: Rows, alpha: Float[Tensor, "M C"]) -> Float[Tensor, "N C"]:
    return torch.cat([part @ alpha for _, part in rows.parts()])


def _unexplained(rows: Rows, prior: Prior) -> Float[Tensor, "N"]:
    """d_n = k_f − |L⁻¹k_n|², which no round changes; negative by rounding at most."""
    explained = [solve_rows(prior.factor, part).square().sum(1) for _, part in rows.parts()]
    return (rows.variance - torch.cat(explained)).clamp(min=0)


def _retained(rows: Rows, factors: Float[Tensor, "R M M"]) -> Float[Tensor, "N R"]:
    """|F⁻¹k_n|² for each F."""
    parts = (part for _, part in rows.parts())
    return torch.cat(
        [torch.stack([solve_rows(f, part).square().sum(1) for f in factors], 1) for part in parts]
    )


def coefficients(
    factors: Float[Tensor, "R M M"], linear: Float[Tensor, "M C"]
) -> Float[Tensor, "M C"]:
    """Return α = F⁻ᵀF⁻¹P: one F for all outputs (R = 1), or each its own (R = C)."""
    if len(factors) == 1:
        return torch.cholesky_solve(linear, factors[0])
    return torch.cholesky_solve(linear.mT.unsqueeze(-1), factors).squeeze(-1).mT


def from_factors(
    prior_factor: Float[Tensor, "M M"],
    factors: Float[Tensor, "R M M"],
    alpha: Float[Tensor, "M C"],
) -> WhitenedGaussian:
    """Return q(v) with m̃ = Lᵀα, U = (F⁻¹L)ᵀ."""
    scale = torch.linalg.solve_triangular(factors, prior_factor, upper=False).mT
    return WhitenedGaussian(prior_factor.mT @ alpha, scale)
