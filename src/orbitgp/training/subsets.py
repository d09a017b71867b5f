"""Scales by the evidence of a subset of the data, where no inducing variables stand in between.

Few inducing variables make smooth functions, wide ranges and much noise look better than they
are: stage one, which can afford few, ends with all three too large. A subset needs none. Of n data
with S orbit points each, f is n values of a Gaussian process with covariance

    K_nm = mean_st k_g(φ(x_ns), φ(x_mt)),   K_nn = the mean over s ≠ t alone, which is unbiased,

and with K = U diag(λ) Uᵀ the evidence is closed form for every ratio r = v/σ² at once.
"""

import functools
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.features import Projection
from orbitgp.kernels import RBF, Kernel, covariance
from orbitgp.likelihoods.gaussian import NOISE_FLOOR, Gaussian
from orbitgp.model import InvariantGP, unbiased_pairs
from orbitgp.orbits.base import Orbit
from orbitgp.orbits.ranges import UniformRange
from orbitgp.posterior.inducing import average_covariance
from orbitgp.ustatistics import pair_mean
from orbitgp.values import OrbitSample, PairWeights

NUM_DATA = 1000
NUM_SAMPLES = 48
"""Orbit points of each datum: the noise of few makes narrow ranges look better than they are."""

MANY = (4000, 12)
"""The same two where data are more than ENOUGH: many are worth narrower ranges than a thousand, and
their posterior can afford few points of each orbit."""

ENOUGH = 20_000

FEW_SAMPLES = 16
"""The same where the kernel is slow, or data are so few that nothing is worth the wait."""

MANY_DATA = 250

MAX_LEFT_OUT = 0.01
"""Squared lengthscales of variance that trials may leave out with the axes that hold little."""

STEP = 0.75
"""What lengthscale and ranges are multiplied or divided by in one trial."""

MAX_POWER = 8
RATIOS = tuple(10 ** (k / 2) for k in range(-4, 13))
"""Ratios of the kernel's variance to the noise that are tried."""


WAYS = ((1, 0), (-1, 0), (0, 1), (1, 0), (-1, 0))
"""Lengthscale shorter or longer, ranges narrower, and the lengthscale again."""

WIDER = (0, -1)
"""Only where the subset is most of the data: few data are worth wider ranges than many."""


@dataclass(frozen=True)
class Scales:
    """A kernel variance, a noise, and the evidence of the subset with them."""

    variance: float
    noise: float
    evidence: float


@torch.no_grad()
def settle(
    model: InvariantGP, x: Tensor, y: Tensor, *, max_ratio: float, generator: torch.Generator
) -> None:
    """Take the lengthscale, width of ranges, variance and noise with the most evidence.

    One after the other, on the same data and draws in each trial, so that trials differ by the
    scales alone. The ranges keep their proportions.
    """
    kernel, likelihood = model.kernel, model.likelihood
    assert isinstance(kernel, RBF)
    assert isinstance(likelihood, Gaussian)
    ways = WAYS if len(x) > 2 * NUM_DATA else (*WAYS[:3], WIDER, *WAYS[3:])
    dense = kernel.coarse and len(x) >= MANY_DATA
    num_data, num_samples = _sizes(len(x), dense)
    order = torch.randperm(len(x), generator=generator)[:num_data].to(x.device)
    x, targets = x[order], likelihood.quadratic_bound(x[order], y[order]).targets
    weigh = unbiased_pairs(num_samples // 2)
    draws = {"generator": generator, "group_size": num_samples // 2}
    noise = model.orbit_noise(len(x), num_samples, **draws)
    length, ranges = kernel.lengthscale.detach().clone(), _learned_ranges(model.orbit)
    widths = [part.widths.detach().clone() for part in ranges]

    def assign(place: tuple[int, int]) -> None:
        kernel.lengthscale = length * STEP ** place[0]
        for part, width in zip(ranges, widths, strict=True):
            part.assign_widths(width * STEP ** place[1])

    @functools.lru_cache(maxsize=1)
    def sample(_: int) -> OrbitSample:
        found = model.sample_orbit_at(x, noise)
        if not dense:
            return found
        some, left_out = found.points[:, :4].flatten(0, 1), MAX_LEFT_OUT * length.square().item()
        return found.map(Projection.of(some, left_out))

    def trial(place: tuple[int, int]) -> Scales:
        assign(place)
        points = sample(place[1])
        prior = unbiased_covariance(kernel, points, weigh(points)) / kernel.variance.item()
        return best_scales(prior, targets, max_ratio)

    place, best = (0, 0), trial((0, 0))
    for way in ways if ranges else ways[:2]:
        for _ in range(MAX_POWER):
            other = (place[0] + way[0], place[1] + way[1])
            found = trial(other)
            if found.evidence <= best.evidence:
                break
            place, best = other, found
    assign(place)
    kernel.variance = best.variance
    likelihood.assign_noise(torch.full_like(likelihood.noise.detach(), best.noise))


def best_scales(
    unit: Float[Tensor, "N N"], targets: Float[Tensor, "N C"], max_ratio: float
) -> Scales:
    """The best v and σ² for f ~ N(0, v K), y = f + noise, with v/σ² ≤ max_ratio.

    With r = v/σ², p = Uᵀy and K = U diag(λ) Uᵀ, of which an estimate may have some λ < 0, taken for
    0: the best noise is σ² = mean p²/(1 + rλ), and the evidence

        −½ NC (log 2πσ² + 1) − ½ C Σ log(1 + rλ).
    """
    values, vectors = torch.linalg.eigh(unit)
    values = values.clamp(min=0)
    energy, (size, num_outputs) = (vectors.mT @ targets).square().sum(1), targets.shape

    def at(ratio: float) -> Scales:
        noise = (energy / (1 + ratio * values)).sum().item() / (size * num_outputs)
        noise = max(noise, 2 * NOISE_FLOOR)
        fit = size * (math.log(2 * math.pi * noise) + 1)
        spread = torch.log1p(ratio * values).sum().item()
        return Scales(ratio * noise, noise, -0.5 * num_outputs * (fit + spread))

    allowed = [ratio for ratio in RATIOS if ratio <= max_ratio]
    return max((at(ratio) for ratio in allowed), key=lambda scales: scales.evidence)


def unbiased_covariance(
    kernel: Kernel, sample: OrbitSample, weights: PairWeights
) -> Float[Tensor, "N N"]:
    """K_nm = mean_st k_g(x_ns, x_mt), and K_nn by the weights of its pairs, in float64."""
    averages = average_covariance(kernel, sample.points)
    own = covariance(kernel, sample.points, sample.points)
    averages.diagonal().copy_(pair_mean(own, weights))
    return averages


def _sizes(num_data: int, dense: bool) -> tuple[int, int]:
    """How many data make a subset, and how many points of the orbit of each."""
    if not dense:
        return NUM_DATA, FEW_SAMPLES
    return MANY if num_data > ENOUGH else (NUM_DATA, NUM_SAMPLES)


def _learned_ranges(orbit: Orbit) -> list[UniformRange]:
    parts = (part for part in orbit.modules() if isinstance(part, UniformRange))
    return [part for part in parts if part.learned.any()]
