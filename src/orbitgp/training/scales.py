"""The scales that a model has when few inducing points no longer blur them, chosen by evidence.

Few inducing points make smooth functions look better than they are: stage one, which can afford
few, ends with lengthscales and ranges that are too long and with noise that is too high.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.kernels import RBF
from orbitgp.likelihoods.gaussian import NOISE_FLOOR, Gaussian
from orbitgp.model import InvariantGP, mean_pairs, unbiased_pairs
from orbitgp.posterior.algebra import cholesky, whiten
from orbitgp.training.group import ALONE, Group
from orbitgp.training.passes import Resident, pass_seed, pass_statistics
from orbitgp.training.starts import orbit_points, with_points
from orbitgp.values import SufficientStatistics, WhitenedGaussian

RATIOS = (2.0, 4.0, 8.0, 16.0, 32.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32)
"""Changes of v/σ² that are tried, upwards first; each way ends at the first that is worse."""

STEP = 0.7
"""What a lengthscale is multiplied or divided by in one trial."""

MAX_POWER = 5
NUM_POINTS = 1500
"""Inducing variables of a trial."""

NUM_AVERAGED = 4


@dataclass(frozen=True)
class Scales:
    """Factors for the kernel's variance and the noise, the best q(u) with them, and its bound."""

    variance: float
    noise: float
    q: WhitenedGaussian
    bound: float


@torch.no_grad()
def best_scales(
    fitting: SufficientStatistics,
    fresh: SufficientStatistics,
    prior_factor: Float[Tensor, "M M"],
    noise: float,
    ratios: Sequence[float] = RATIOS,
) -> Scales:
    """The best factors v of the kernel's variance and n of the noise, without another pass.

    `fitting` makes q(u), `fresh` (unbiased, other draws) tells how good it is. Both scale: the
    linear part by v/n, the Gram by v²/n, Kuu by v. With r = v/n, B = L⁻¹QL⁻ᵀ and p = L⁻¹P of the
    statistics as they came,

        S̃ = (I + rB)⁻¹,   m̃ = √(r/n) S̃p,   bound = −½ NC log n − G(r)/n − H(r),

    so each r has its best n in closed form, n = 2G/(NC), and only r is searched.
    """
    gram, other = (whiten(prior_factor, s.gram)[0] for s in (fitting, fresh))
    linear, target = (
        torch.linalg.solve_triangular(prior_factor, s.linear, upper=False) for s in (fitting, fresh)
    )
    size, num_outputs = linear.shape
    count = fresh.num_data * num_outputs
    # Σ c_n = −½ NC log 2πσ² − G(0),   G(0) = |y|²/2σ²
    rest = -fresh.constant.item() - 0.5 * count * math.log(2 * math.pi * noise)
    identity = torch.eye(size).to(gram)

    def at(ratio: float) -> Scales:
        factor = cholesky(identity + ratio * gram, "the precision of q(u)")
        scale = torch.linalg.solve_triangular(factor.mT, identity, upper=True)
        mean = scale @ (scale.mT @ linear)
        unexplained = (
            fresh.variance.sum() - other.diagonal().sum() + (scale * (other @ scale)).sum()
        )
        excess = scale.square().sum() - size + 2 * factor.diagonal().log().sum()
        half = 0.5 * (ratio * (mean * (other @ mean)).sum() + mean.square().sum())
        g = rest - (ratio * ((mean * target).sum() - half)).item()
        h = 0.5 * num_outputs * (ratio * unexplained + excess).item()
        n = max(2 * g / count, 2 * NOISE_FLOOR / noise)
        bound = -0.5 * count * math.log(2 * math.pi * noise * n) - g / n - h
        q = WhitenedGaussian(math.sqrt(ratio / n) * mean, scale.unsqueeze(0))
        return Scales(ratio * n, n, q, bound)

    best = at(1.0)
    for way in (
        [ratio for ratio in ratios if ratio > 1],
        [ratio for ratio in ratios if ratio < 1],
    ):
        for ratio in way:
            trial = at(ratio)
            if trial.bound <= best.bound:
                break
            best = trial
    return best


@torch.no_grad()
def settle(
    model: InvariantGP,
    x: Tensor,
    y: Tensor,
    *,
    density: float,
    num_samples: int,
    generator: torch.Generator,
    group: Group = ALONE,
) -> None:
    """Take the lengthscale, variance and noise with the most evidence on some of the data.

    Judged with as many inducing variables for each datum as there will be in the end, `density`,
    and on the same data and draws in each trial, so that trials differ by the lengthscale alone.
    The ranges stay: an average of few draws is a worse inducing variable the wider they are, which
    would make narrow ones look better.
    """
    assert isinstance(model.kernel, RBF)
    assert isinstance(model.likelihood, Gaussian)
    size = min(len(x), round(NUM_POINTS / density))
    order = torch.randperm(len(x), generator=generator)[:size].to(x.device)
    seed = pass_seed(generator)
    start = model.kernel.lengthscale.detach().clone()

    def trial(power: int) -> Scales:
        model.kernel.lengthscale = start * STEP**power
        draws = torch.Generator(generator.device).manual_seed(seed)
        chosen = {"num_samples": num_samples, "generator": draws, "group": group}
        return _scales(model, x[order], y[order], round(density * size), **chosen)

    best, power = trial(0), 0
    for way in (1, -1):
        while abs(power) < MAX_POWER:
            other = trial(power + way)
            if other.bound <= best.bound:
                break
            best, power = other, power + way
        if power:
            break
    model.kernel.lengthscale = start * STEP**power
    _take_scales(model, best)


def take(model: InvariantGP, scales: Scales) -> None:
    """Give a model these scales, and the q(u) that goes with them."""
    _take_scales(model, scales)
    model.posterior.assign(scales.q)


def _take_scales(model: InvariantGP, scales: Scales) -> None:
    assert isinstance(model.kernel, RBF)
    assert isinstance(model.likelihood, Gaussian)
    model.kernel.variance = model.kernel.variance.detach() * scales.variance
    model.likelihood.assign_noise(model.likelihood.noise.detach() * scales.noise)


def _scales(
    model: InvariantGP,
    x: Tensor,
    y: Tensor,
    num_points: int,
    *,
    num_samples: int,
    generator: torch.Generator,
    group: Group,
) -> Scales:
    """The best scales for these data, with inducing variables on orbits of the first of them."""
    assert isinstance(model.likelihood, Gaussian)
    averages = {"num_averaged": NUM_AVERAGED, "generator": generator}
    points = orbit_points(model.orbit, model.feature_map, x[:num_points], **averages)
    solved = with_points(model, points)
    fitting, fresh = (
        pass_statistics(
            solved,
            Resident(x, y),
            num_samples=num_samples,
            weigh=weigh,
            seed=pass_seed(generator),
            group=group,
        )
        for weigh in (mean_pairs, unbiased_pairs(num_samples // 2))
    )
    factor = solved.posterior.prior_factor(solved.kernel)
    return best_scales(fitting, fresh, factor, model.likelihood.noise.item())
