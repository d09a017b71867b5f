"""The posterior given M values of f, its bound on the evidence, and what it says of left-out data.

All inputs share S transformations, as in exact inference, so f is an ordinary Gaussian process.
With u = f at M of the data, Kuu = L Lᵀ, w_n = L⁻¹k_n, d_n = k_nn − |w_n|² and r = v/σ², the best
q(u) and one ν_n = 1 / (1 + r d_n) for each datum (Titsias 2025) are closed form, and with them

    log p(Y) ≥ −½ N C log 2πσ² − E/2σ² − ½ C (log |I + r B| + Σ_n log(1 + r d_n)),   B = Σ w_n w_nᵀ,

where E = Σ|y_n|² − r tr pᵀ(I + r B)⁻¹p, p = Σ w_n y_nᵀ, is what the mean leaves of the targets. A
mean on all data (`full_data_mean.py`) has an E of its own. With M = N the bound is the evidence.

Only Σ log(1 + r d_n) needs M² operations for each datum. It is estimated from some data, drawn at
random; that is all that the standard error speaks of.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.distributed.group import ALONE, Group
from orbitgp.inference.exact import orbit_points
from orbitgp.inference.passes import Examples, check_coverage
from orbitgp.kernels import (
    Kernel,
    average_covariances,
    average_covariances_among,
    average_variances,
)
from orbitgp.likelihoods.gaussian import Gaussian, Scales, scales_at
from orbitgp.model import InvariantGP
from orbitgp.orbit_model import OrbitModel
from orbitgp.posterior.algebra import add_jitter, cholesky, solve_rows
from orbitgp.posterior.inducing import averaged
from orbitgp.values import Prediction, QuadraticBound, WhitenedGaussian

JITTER = 1e-5
"""Of Kuu, relative to its diagonal; float32 covariances are exact to about 1e-6."""

MAX_LEVERAGE = 0.999


@dataclass(frozen=True)
class InducingStatistics:
    """All that the bound needs to know of N data, for a kernel as it is and noise of variance 1."""

    factor: Float[Tensor, "M M"]
    """L."""
    gram: Float[Tensor, "M M"]
    """B."""
    linear: Float[Tensor, "M C"]
    """p."""
    squares: float
    """Σ|y_n|²."""
    unexplained: Float[Tensor, "T"]
    """d_n of some data, drawn at random."""
    num_others: int
    """The data that these were drawn from: all, or those without a variable of their own."""
    num_data: int


@dataclass(frozen=True)
class InducingSolution:
    """The best q(u) for one ratio r, with the noise as unit, and its terms of the bound."""

    ratio: float
    half: Float[Tensor, "M M"]
    """F with F Fᵀ = I + r B."""
    quadratic: float
    """E."""
    log_volume: float
    log_volume_error: float
    weights: Float[Tensor, "M C"]
    """(I + r B)⁻¹p: μ_n = r w_n · weights."""

    def scales(self, shape: tuple[int, int], quadratic: float | None = None) -> Scales:
        """The bound at the best noise, for this mean or for one that leaves another E."""
        left = self.quadratic if quadratic is None else quadratic
        return scales_at(left, self.log_volume, shape, self.ratio)

    def q(self, noise: float) -> WhitenedGaussian:
        """In whitened coordinates of Kuu for the kernel times v = r σ²."""
        identity = torch.eye(len(self.half)).to(self.half)
        scale = torch.linalg.solve_triangular(self.half.mT, identity, upper=True)
        mean = math.sqrt(self.ratio / noise) * self.weights
        return WhitenedGaussian(mean, scale.unsqueeze(0))


@torch.no_grad()
def inducing_statistics(
    model: OrbitModel,
    examples: Examples,
    points: Float[Tensor, "M S D"],
    others: Float[Tensor, "T *event"],
    num_others: int,
    noise: Float[Tensor, "1 S K"] | None,
    group: Group,
) -> InducingStatistics:
    """One pass over all data, with variables that are averages of g over these points.

    `others` were drawn at random from so many data, all that leave anything unexplained.
    """
    kernel, likelihood = model.kernel, model.likelihood
    factor = cholesky(prior_covariance(kernel, points), "Kuu")
    one = likelihood.quadratic_bound(examples.x[:1], examples.y[:1])
    gram = torch.zeros_like(factor)
    linear = factor.new_zeros(len(points), one.linear.shape[1])
    sums = factor.new_zeros(2)
    for chunk in examples.chunks(group.rank, group.size):
        targets = likelihood.quadratic_bound(chunk.x, chunk.y).targets
        covariances = average_covariances(kernel, orbit_points(model, chunk.x, noise), points)
        whitened = solve_rows(factor, covariances)  # so that rounding leaves B ≥ 0
        gram.addmm_(whitened.mT, whitened)
        linear.addmm_(whitened.mT, targets)
        sums += torch.stack([targets.square().sum(), sums.new_tensor(len(targets))])
    group.add_(gram, linear, sums)
    squares, count = sums.tolist()
    check_coverage(count, examples.num_data)
    return InducingStatistics(
        factor=factor,
        gram=gram,
        linear=linear,
        squares=squares,
        unexplained=_unexplained(model, others, noise, points, factor),
        num_others=num_others,
        num_data=examples.num_data,
    )


def prior_covariance(kernel: Kernel, points: Float[Tensor, "M S D"]) -> Float[Tensor, "M M"]:
    """Kuu, with a little jitter."""
    return add_jitter(average_covariances_among(kernel, points), JITTER)


def _unexplained(
    model: OrbitModel,
    x: Float[Tensor, "T *event"],
    noise: Float[Tensor, "1 S K"] | None,
    points: Float[Tensor, "M S D"],
    factor: Float[Tensor, "M M"],
) -> Float[Tensor, "T"]:
    """d = k_f(x, x) − |L⁻¹k|², which is negative by rounding at most."""
    if not len(x):
        return factor.new_zeros(0)
    own = orbit_points(model, x, noise)
    whitened = solve_rows(factor, average_covariances(model.kernel, own, points))
    return (average_variances(model.kernel, own) - whitened.square().sum(1)).clamp(min=0)


@torch.no_grad()
def statistics_of_covariance(
    covariance: Float[Tensor, "N N"], targets: Float[Tensor, "N C"], num_points: int
) -> InducingStatistics:
    """The same from the covariance of all data, the first M of which have a variable."""
    own = covariance[:num_points, :num_points]
    factor = cholesky(add_jitter(own, JITTER), "Kuu")
    whitened = solve_rows(factor, covariance[:, :num_points])
    explained = whitened[num_points:].square().sum(1)
    return InducingStatistics(
        factor=factor,
        gram=whitened.mT @ whitened,
        linear=whitened.mT @ targets,
        squares=targets.square().sum().item(),
        unexplained=(covariance.diagonal()[num_points:] - explained).clamp(min=0),
        num_others=len(targets) - num_points,
        num_data=len(targets),
    )


@torch.no_grad()
def solve_inducing(statistics: InducingStatistics, ratio: float) -> InducingSolution:
    """The best q(u) for one ratio."""
    matrix = ratio * statistics.gram
    matrix.diagonal().add_(1)
    half = cholesky(matrix, "I + r B")
    weights = torch.cholesky_solve(statistics.linear, half)
    explained = ratio * (statistics.linear * weights).sum().item()
    others, some = statistics.num_others, len(statistics.unexplained)
    logs = (ratio * statistics.unexplained).log1p()
    left = others * logs.mean().item() if some else 0.0
    spread = logs.std().item() / math.sqrt(some) if some > 1 else 0.0
    return InducingSolution(
        ratio=ratio,
        half=half,
        quadratic=statistics.squares - explained,
        log_volume=2 * half.diagonal().log().sum().item() + left,
        log_volume_error=others * spread * math.sqrt(max(1 - some / max(others, 1), 0.0)),
        weights=weights,
    )


@torch.no_grad()
def bound_of(
    model: InvariantGP,
    examples: Examples,
    others: Float[Tensor, "T *event"],
    noise: Float[Tensor, "1 S K"] | None,
    group: Group = ALONE,
) -> tuple[float, float]:
    """The bound of a fitted model, in nats, computed anew from model and data; and its error.

    `others` are data drawn at random, or all of them, for what is left unexplained.
    """
    likelihood, basis = model.likelihood, model.mean_basis
    assert isinstance(likelihood, Gaussian)
    points, own = averaged(model.posterior.points).detach(), likelihood.noise.item()
    counted = others, examples.num_data
    statistics = inducing_statistics(model, examples, points, *counted, noise, group)
    solution, left = solve_inducing(statistics, 1 / own), None
    if basis is not None:
        mean = average_covariances(model.kernel, basis.points, basis.points) @ basis.weights
        targets = likelihood.quadratic_bound(examples.x, examples.y).targets
        left = (targets - mean).square().sum().item() + own * (basis.weights * mean).sum().item()
    num_outputs = statistics.linear.shape[1]
    fit = statistics.num_data * num_outputs * math.log(2 * math.pi * own)
    fit += (solution.quadratic if left is None else left) / own
    value = -0.5 * (fit + num_outputs * solution.log_volume)
    return value, 0.5 * num_outputs * solution.log_volume_error


@torch.no_grad()
def left_out_inducing(
    solution: InducingSolution,
    scales: Scales,
    whitened: Float[Tensor, "T M"],
    variance: Float[Tensor, "T"],
    targets: Float[Tensor, "T C"],
) -> Prediction:
    """f at each of these data, as q(u) would have it without that one.

    With μ and s the mean and the retained variance at x_n and the leverage h = s/σ² < 1 (Rasmussen
    and Williams 2006, 5.4.2): μ₋ₙ = (μ − h y_n) / (1 − h) and s₋ₙ = s / (1 − h).
    """
    ratio, noise = scales.ratio, scales.noise
    mean = ratio * whitened @ solution.weights
    retained = torch.linalg.solve_triangular(solution.half, whitened.mT, upper=False)
    leverage = ratio * retained.square().sum(0).unsqueeze(1).clamp(max=MAX_LEVERAGE / ratio)
    left = (variance - whitened.square().sum(1)).clamp(min=0).unsqueeze(1)
    mean = (mean - leverage * targets) / (1 - leverage)
    spread = noise * (ratio * left + leverage / (1 - leverage))
    return Prediction.exact(mean, spread.expand_as(mean))


@torch.no_grad()
def without_own(
    bound: QuadraticBound,
    mean: Float[Tensor, "T C"],
    retained: Float[Tensor, "T R"],
    left: Float[Tensor, "T 1"],
) -> Prediction:
    """Return f at each of these data, as q(u) would have it without the bound of that one.

    `left` is the variance that u leaves open. The bound is a Gaussian likelihood with targets l/λ
    and noise 1/λ, so that with the retained variance s and leverage h = λ s, as above,
    μ₋ₙ = (μ − s l) / (1 − h) and s₋ₙ = s / (1 − h).
    """
    leverage = (bound.precision * retained).clamp(max=MAX_LEVERAGE)
    alone = (mean - retained * bound.linear) / (1 - leverage)
    return Prediction.exact(alone, (left + retained / (1 - leverage)).expand_as(alone))
