"""Kernel variance and noise with a solve, where every scale has its best q(u) in closed form.

If the kernel's variance v is multiplied by n and the noise σ² by n/ρ, the statistics (P, Q) of the
data are multiplied by ρ and Kuu by n: the mean of f depends on ρ alone. So with m̃ and U of the q(u)
for ρ, R = Σ (y − f)², d the variance of f that u leaves unexplained and s the one that q(u)
retains, the bound is

    −½ NC log(2πσ²n/ρ) − (ρR/σ² + |m̃|²) / 2n − ½ Cρ Σ (νd + s)/σ² − NC KL_f(ν) − ½ C KL_U,

whose best n and ν are closed form: n = (ρR/σ² + |m̃|²) / NC and ν = 1 / (1 + ρ mean d/σ²).
"""

import copy
import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.kernels import RBF
from orbitgp.likelihoods.gaussian import NOISE_FLOOR, Gaussian
from orbitgp.model import InvariantGP, unbiased_pairs
from orbitgp.posterior.algebra import eigenvectors, excess_of_scale, solve_rows, whiten
from orbitgp.posterior.closed_form import solve
from orbitgp.posterior.inducing import best_narrowing, conditional_kl
from orbitgp.training.solving import Solved
from orbitgp.training.starts import with_points
from orbitgp.values import WhitenedGaussian

NUM_SAMPLES = 8
RATIOS = tuple(5.0**-k for k in range(1, 6))
"""What v/σ² is multiplied by to find the highest bound, until it falls."""


@dataclass(frozen=True)
class Draws:
    """Fresh draws at some data: targets, L⁻¹k of two half-sets, and unbiased k_f(x, x).

    Products of the two halves are unbiased. Those of a finite orbit are drawn without replacement,
    so each takes a part of the other: (a k₁ + b k₂)(a k₂ + b k₁) weighs pairs as `pair_weights`.
    """

    targets: Float[Tensor, "T C"]
    whitened: Float[Tensor, "T 2 M"]
    variance: Float[Tensor, "T"]


@dataclass(frozen=True)
class Rescaled:
    """Factors n of the kernel's variance and n/ρ of the noise, their best q, and its bound."""

    variance: float
    noise: float
    q: WhitenedGaussian
    bound: float


@torch.no_grad()
def fresh_draws(solved: Solved, x: Tensor, y: Tensor, *, generator: torch.Generator) -> Draws:
    """What the scales are judged on."""
    model, weigh = solved.model, unbiased_pairs(NUM_SAMPLES // 2)
    covariances = model.covariances(weigh.draw(model, x, NUM_SAMPLES, generator), weigh)
    targets = model.likelihood.quadratic_bound(x, y).targets
    weights = covariances.weights
    groups = covariances.groups / weights.group_size
    if groups.shape[1] == 1:  # whole orbits: both halves are exact
        groups = groups.expand(-1, 2, -1)
    else:  # ab = w, the weight of a half with itself, and a + b = 1; an endless orbit has a = 1
        within = weights.within * weights.group_size**2
        own = (1 + math.sqrt(1 - 4 * within)) / 2
        groups = own * groups + (1 - own) * groups.flip(1)
    rows = solve_rows(solved.prior_factor, groups.flatten(0, 1))
    return Draws(targets, rows.unflatten(0, groups.shape[:2]), covariances.variance)


@torch.no_grad()
def rescaled(solved: Solved, draws: Draws, ratio: float, num_data: int) -> Rescaled:
    """The best n, ν and q(u) for one ρ, and an estimate of the bound."""
    q = solve(solved.statistics * ratio, solved.prior_covariance, solved.prior_factor)
    first, second = draws.whitened.unbind(1)
    scale = q.scale[0]
    terms = _Terms(
        residual=((draws.targets - first @ q.mean) * (draws.targets - second @ q.mean)).sum(),
        mean_square=q.mean.square().sum(),
        unexplained=(draws.variance - (first * second).sum(1)).sum(),
        retained=((first @ scale) * (second @ scale)).sum(),
        excess=excess_of_scale(q.scale),
    )
    counts = num_data, q.mean.shape[1]
    n, narrowing, bound = terms.best(_noise(solved) / ratio, num_data / len(first), counts)
    q = replace(q, mean=q.mean / n.sqrt(), narrowing=narrowing)
    return Rescaled(n.item(), n.item() / ratio, q, bound.item())


@torch.no_grad()
def bounds_along(
    solved: Solved, draws: Draws, ratios: Float[Tensor, "R"], num_data: int
) -> Float[Tensor, "R"]:
    """The bounds of `rescaled` for many ρ, each for the cost of a few vectors.

    With B = L⁻¹QL⁻ᵀ = V diag(λ) Vᵀ, S̃ is V diag(1/(1 + ρλ)) Vᵀ and m̃ is ρ S̃ L⁻¹P.
    """
    whitened = whiten(solved.prior_factor, solved.statistics.gram)[0]
    eigenvalues, vectors = eigenvectors(whitened, "the precision that the data give to q(u)")
    linear = torch.linalg.solve_triangular(
        solved.prior_factor, solved.statistics.linear, upper=False
    )
    first, second = (draws.whitened @ vectors).unbind(1)
    products = (first * second).sum(0)
    ratios = ratios.to(eigenvalues)
    growth = eigenvalues[:, None] * ratios  # (M, R)
    retained = 1 / (1 + growth)
    means = (ratios * retained).unsqueeze(2) * (vectors.mT @ linear).unsqueeze(1)  # (M, R, C)
    left, right = (
        draws.targets.unsqueeze(1) - (half @ means.flatten(1)).unflatten(1, means.shape[1:])
        for half in (first, second)
    )
    terms = _Terms(
        residual=(left * right).sum((0, 2)),
        mean_square=means.square().sum((0, 2)),
        unexplained=draws.variance.sum() - products.sum(),
        retained=products @ retained,
        excess=(growth.log1p() - growth * retained).sum(0),
    )
    counts = num_data, linear.shape[1]
    return terms.best(_noise(solved) / ratios, num_data / len(first), counts)[2]


@dataclass(frozen=True)
class _Terms:
    """R, |m̃|², Σd, Σs and KL_U of the bound above, over the judges, for one ρ or many."""

    residual: Float[Tensor, "*R"]
    mean_square: Float[Tensor, "*R"]
    unexplained: Float[Tensor, ""]
    retained: Float[Tensor, "*R"]
    excess: Float[Tensor, "*R"]

    def best(
        self, noise: Float[Tensor, "*R"], part: float, counts: tuple[int, int]
    ) -> tuple[Float[Tensor, "*R"], Float[Tensor, "*R"], Float[Tensor, "*R"]]:
        """The best n and ν, and the bound there: of N data with C outputs, `part` for each."""
        num_data, num_outputs = counts
        count = num_data * num_outputs
        best = (part * self.residual / noise + self.mean_square) / count
        n = torch.maximum(best, 2 * NOISE_FLOOR / noise)
        unexplained = part * self.unexplained / noise
        narrowing = best_narrowing(unexplained, num_data)
        spread = narrowing * unexplained + part * self.retained / noise + self.excess
        bound = -0.5 * count * ((2 * math.pi * noise * n).log() + 1) - 0.5 * num_outputs * spread
        bound = bound - count * conditional_kl(narrowing)
        # a residual that is estimated as nothing, or less, is no reason to believe in no noise
        return n, narrowing, bound.where(n == best, -math.inf)


def _noise(solved: Solved) -> Float[Tensor, ""]:
    likelihood = solved.model.likelihood
    assert isinstance(likelihood, Gaussian)
    return likelihood.noise.detach().double().squeeze()


@torch.no_grad()
def highest_bound(solved: Solved, draws: Draws, start: Rescaled, num_data: int) -> Rescaled:
    """The scales at which the bound is highest, from the given ones towards more noise.

    Few inducing variables leave variance unexplained, which the bound can only take for noise.
    """
    best = start
    for ratio in RATIOS:
        other = rescaled(solved, draws, ratio, num_data)
        if other.bound <= best.bound:
            break
        best = other
    return best


@torch.no_grad()
def assign_scales(model: InvariantGP, scales: Rescaled) -> None:
    """Multiply variance and noise by these factors, and take the q(u) that goes with them."""
    kernel, likelihood = model.kernel, model.likelihood
    assert isinstance(kernel, RBF)
    assert isinstance(likelihood, Gaussian)
    kernel.variance = kernel.variance.detach() * scales.variance
    likelihood.assign_noise(likelihood.noise.detach() * scales.noise)
    model.posterior.assign(scales.q)


@torch.no_grad()
def with_scales(solved: Solved, scales: Rescaled) -> Solved:
    """The same inducing variables with these scales."""
    model = solved.model
    parts = {"kernel": model.kernel, "likelihood": model.likelihood}
    other = with_points(model, **copy.deepcopy(parts))
    assign_scales(other, scales)
    return replace(
        solved, model=other, prior_factor=solved.prior_factor * math.sqrt(scales.variance)
    )
