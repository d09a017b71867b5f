"""q(u) and local parameters together: each has its best in closed form where the other is given.

With k̄_n of one set of draws held in memory, in turn

    F Fᵀ = Kuu + Q,  α = F⁻ᵀF⁻¹P                               from the λ_n and l_n of the bound,
    μ_n = k̄_n·α,  σ_n² = ν (k_f − |L⁻¹k̄_n|²) + |F⁻¹k̄_n|²        from which the next bound comes.

Each half of a round raises the bound of these draws, and `acceleration.py` says from where the next
goes on. Where λ is the same for all data whatever the local parameters are (softmax), F is computed
once, and a round costs N M C.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.gaussians import slices
from orbitgp.kernels import Kernel
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.likelihoods.softmax import Softmax
from orbitgp.model import InvariantGP, mean_pairs
from orbitgp.objective import stream_covariances
from orbitgp.posterior.algebra import cholesky, solve_rows
from orbitgp.posterior.closed_form import coefficients, from_factors
from orbitgp.posterior.inducing import InducingPosterior, best_narrowing
from orbitgp.training.acceleration import Mixing, Momentum
from orbitgp.training.passes import Resident, chunk_generator
from orbitgp.ustatistics import add_pair_gram_, mean_weights, mirror_
from orbitgp.values import Moments, QuadraticBound, WhitenedGaussian

MAX_ROUNDS = 100
TOLERANCE = 1e-3
"""Root mean square change of the mean of f, in units of √(1 + f²), at which rounds end."""

ROWS = 4096
NUM_VARIANCES = 2048
"""Data that tell the best ν where nothing else needs variances, which cost M² for each."""


@dataclass(frozen=True)
class Rows:
    """k̄ and k_f(x, x) of some data, from one set of draws, and their labels."""

    mean: Float[Tensor, "N M"]
    variance: Float[Tensor, "N"]
    labels: Int[Tensor, "N"]

    def parts(self) -> Iterator[tuple[slice, Float[Tensor, "K M"]]]:
        """Some rows of k̄ at a time, in float64."""
        for chosen in slices(len(self.mean), ROWS):
            yield chosen, self.mean[chosen].double()

    def some(self, count: int) -> "Rows":
        """About so many of them, evenly spaced."""
        every = slice(None, None, max(1, len(self.labels) // count))
        return Rows(self.mean[every], self.variance[every], self.labels[every])


@dataclass(frozen=True)
class FixedPoint:
    """The best q(u), moments of f, the local parameters that go with them, and rounds it took.

    No variances are computed where no local parameter depends on them: they are 0.
    """

    q: WhitenedGaussian
    moments: Moments
    local: Float[Tensor, "N K"]
    num_rounds: int


@dataclass(frozen=True)
class Prior:
    """Kuu and L."""

    covariance: Float[Tensor, "M M"]
    factor: Float[Tensor, "M M"]

    @staticmethod
    @torch.no_grad()
    def of(posterior: InducingPosterior, kernel: Kernel) -> "Prior":
        """Of the inducing variables of a model."""
        covariance = posterior.prior_covariance(kernel)
        return Prior(covariance, cholesky(covariance, "Kuu"))


@torch.no_grad()
def rows_of(model: InvariantGP, examples: Resident, *, num_samples: int, seed: int) -> Rows:
    """k̄ of all data, kept in the dtype of the kernel."""
    likelihood, dtype = model.likelihood, model.posterior.points.dtype
    assert isinstance(likelihood, LocalLikelihood)
    means, variances = [], []
    keyed = ((c.x, c.y, chunk_generator(seed, c.number)) for c in examples.chunks(0, 1))
    draws = {"num_samples": num_samples, "weigh": mean_pairs}
    for covariances, _ in stream_covariances(model, keyed, **draws):
        means.append(covariances.mean.to(dtype))
        variances.append(covariances.variance)
    return Rows(torch.cat(means), torch.cat(variances), likelihood.labels_of(examples.y))


@torch.no_grad()
def fixed_point(
    likelihood: LocalLikelihood,
    rows: Rows,
    prior: Prior,
    *,
    weight: float = 1.0,
    local: Float[Tensor, "N K"] | None = None,
) -> FixedPoint:
    """Rounds until the mean of f rests; each datum counts as `weight` of them.

    They begin with these local parameters, or with 0: those of a model that is nearly the same save
    most of the rounds. Dear rounds are mixed; cheap ones go on with momentum, which holds less.
    """
    steady = isinstance(likelihood, Softmax)
    local = likelihood.no_local(rows.labels) if local is None else local
    left = _unexplained(rows.some(NUM_VARIANCES) if steady else rows, prior)
    path = Momentum(local) if steady else Mixing()
    factors, last, number = None, None, 0
    while True:
        number += 1
        bound = likelihood.bound_at(rows.labels, local)
        if factors is None or not steady:
            factors = _factors(rows, prior, weight * bound.precision)
        alpha = _coefficients(rows, bound, factors, weight)
        mean = _means(rows, alpha)
        narrowing = _narrowing(left, bound.precision[: len(left)])
        best, variance = mean, mean.new_zeros(()).expand(len(mean), 1)  # ψ needs no variance
        if not steady:
            variance = narrowing * left.unsqueeze(1) + _retained(rows, factors)
            best = likelihood.best_local(Moments(mean, mean.square(), variance))
        rests = last is not None and _rests(mean, last)
        if rests or number == MAX_ROUNDS:
            q = replace(from_factors(prior.factor, factors, alpha), narrowing=narrowing)
            return FixedPoint(q, Moments(mean, mean.square(), variance), best, number)
        local, last = path.onward(local, best), mean


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
            weighed = column[counts].unsqueeze(1)
            add_pair_gram_(matrix.unsqueeze(0), few.unsqueeze(1), weighed, mean_weights(1))
    mirror_(gram)
    return cholesky(gram.add_(prior.covariance), "Kuu + Q")


def _coefficients(
    rows: Rows, bound: QuadraticBound, factors: Float[Tensor, "R M M"], weight: float
) -> Float[Tensor, "M C"]:
    """α = F⁻ᵀF⁻¹P, P = Σ k̄_n l_nᵀ."""
    linear = factors.new_zeros(factors.shape[1], bound.linear.shape[1])
    for chosen, part in rows.parts():
        linear.addmm_(part.mT, bound.linear[chosen], alpha=weight)
    return coefficients(factors, linear)


def _means(rows: Rows, alpha: Float[Tensor, "M C"]) -> Float[Tensor, "N C"]:
    return torch.cat([part @ alpha for _, part in rows.parts()])


def _unexplained(rows: Rows, prior: Prior) -> Float[Tensor, "N"]:
    """k_f − |L⁻¹k̄_n|², which no round changes."""
    explained = [solve_rows(prior.factor, part).square().sum(1) for _, part in rows.parts()]
    return rows.variance - torch.cat(explained)


def _narrowing(left: Float[Tensor, "N"], precision: Float[Tensor, "N R"]) -> Float[Tensor, ""]:
    """The best ν for what is left unexplained."""
    return best_narrowing((precision.mean(1) * left).sum(), len(left))


def _retained(rows: Rows, factors: Float[Tensor, "R M M"]) -> Float[Tensor, "N R"]:
    """|F⁻¹k̄_n|² for each F."""
    parts = (part for _, part in rows.parts())
    return torch.cat(
        [torch.stack([solve_rows(f, part).square().sum(1) for f in factors], 1) for part in parts]
    )
