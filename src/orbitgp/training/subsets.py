"""Scales by the evidence of a subset of the data, where no inducing variables stand in between.

Few inducing variables make smooth functions, wide ranges and much noise look better than they
are: stage one, which can afford few, ends with all three too large. A subset needs none. Of n data
with S orbit points each, f is n values of a Gaussian process with covariance

    K_nm = mean_st k_g(φ(x_ns), φ(x_mt)),

and with K = U diag(λ) Uᵀ the evidence is closed form for every ratio r = v/σ² at once. The S draws
are the same for all data: then K is the covariance of an f that is averaged over S transformations,
smooth in x. With draws of its own each datum would have a little noise of its own in K, for which
the evidence would rather have narrow ranges.
"""

import functools
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.features import Projection
from orbitgp.hyperparameters.parameters import learned_ranges
from orbitgp.kernels import RBF, Kernel
from orbitgp.likelihoods.gaussian import NOISE_FLOOR, Gaussian
from orbitgp.model import InvariantGP
from orbitgp.posterior.algebra import eigenvectors
from orbitgp.posterior.inducing import average_covariance
from orbitgp.training.passes import portion

NUM_DATA, NUM_POINTS = 3000, 48_000
"""Data of a subset, and the orbit points of all of them together."""

FEW = (1000, 16_000)
"""The same where the kernel is slow."""

NUM_SAMPLES = (16, 48)
"""Orbit points of one datum, at least and at most."""

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
class Subset:
    """Some data, what they should be, and one row of noise: the same draws for all."""

    x: Float[Tensor, "N *event"]
    targets: Float[Tensor, "N C"]
    noise: Float[Tensor, "1 S K"] | None

    @staticmethod
    def drawn(
        model: InvariantGP,
        x: Tensor,
        y: Tensor,
        num_data: int,
        num_samples: int,
        *,
        generator: torch.Generator,
    ) -> "Subset":
        """So many of these data, without replacement, and so many draws."""
        likelihood = model.likelihood
        assert isinstance(likelihood, Gaussian)
        rows = torch.randperm(len(x), generator=generator)[:num_data].to(x.device)
        noise = model.orbit_noise(1, num_samples, generator=generator, group_size=num_samples)
        return Subset(x[rows], likelihood.quadratic_bound(x[rows], y[rows]).targets, noise)

    def points(self, model: InvariantGP) -> Float[Tensor, "N S D"]:
        """Behind the feature map, on the orbits that the model has now."""
        return model.sample_orbit_at(self.x, self.noise).points


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
    dense = is_dense(kernel, len(x))
    num_data, num_samples = subset_sizes(len(x), dense=dense)
    widen = dense and len(x) <= 2 * num_data
    ways = (*WAYS[:3], WIDER, *WAYS[3:]) if widen else WAYS
    subset = Subset.drawn(model, x, y, num_data, num_samples, generator=generator)
    length, ranges = kernel.lengthscale.detach().clone(), learned_ranges(model.orbit)
    widths = [part.widths.detach().clone() for part in ranges]

    def assign(place: tuple[int, int]) -> None:
        kernel.lengthscale = length * STEP ** place[0]
        for part, width in zip(ranges, widths, strict=True):
            part.assign_widths(width * STEP ** place[1])

    @functools.lru_cache(maxsize=1)
    def sample(_: int) -> Float[Tensor, "N S D"]:
        points = subset.points(model)
        return axes_of(points, length)(points) if dense else points

    @functools.cache  # ways that lead nowhere are tried again from the same place
    def trial(place: tuple[int, int]) -> Scales:
        assign(place)
        return best_scales(unit_covariance(kernel, sample(place[1])), subset.targets, max_ratio)

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


def axes_of(points: Float[Tensor, "N S D"], lengthscale: Tensor) -> Projection:
    """The axes that hold all but very little of the variance of these points."""
    return Projection.of(points[:, :4].flatten(0, 1), MAX_LEFT_OUT * lengthscale.square().item())


def unit_covariance(kernel: RBF, points: Float[Tensor, "N S D"]) -> Float[Tensor, "N N"]:
    """K for a kernel of variance 1."""
    return average_covariance(kernel, points) / kernel.variance.item()


def spectrum(unit: Float[Tensor, "N N"]) -> tuple[Float[Tensor, "N"], Float[Tensor, "N N"]]:
    """λ and U of K = U diag(λ) Uᵀ."""
    return eigenvectors(unit, "the covariance of a subset")


def best_scales(
    unit: Float[Tensor, "N N"], targets: Float[Tensor, "N C"], max_ratio: float
) -> Scales:
    """The best v and σ² for f ~ N(0, v K), y = f + noise, with v/σ² ≤ max_ratio."""
    return scales_of(*spectrum(unit), targets, max_ratio)


def scales_of(
    values: Float[Tensor, "N"],
    vectors: Float[Tensor, "N N"],
    targets: Float[Tensor, "N C"],
    max_ratio: float,
) -> Scales:
    """The same for K = U diag(λ) Uᵀ.

    With r = v/σ² and p = Uᵀy the best noise is σ² = mean p²/(1 + rλ), and the evidence

        −½ NC (log 2πσ² + 1) − ½ C Σ log(1 + rλ).
    """
    energy, (size, num_outputs) = (vectors.mT @ targets).square().sum(1), targets.shape

    def at(ratio: float) -> Scales:
        noise = (energy / (1 + ratio * values)).sum().item() / (size * num_outputs)
        noise = max(noise, 2 * NOISE_FLOOR)
        fit = size * (math.log(2 * math.pi * noise) + 1)
        spread = torch.log1p(ratio * values).sum().item()
        return Scales(ratio * noise, noise, -0.5 * num_outputs * (fit + spread))

    allowed = [ratio for ratio in RATIOS if ratio <= max_ratio]
    return max((at(ratio) for ratio in allowed), key=lambda scales: scales.evidence)


def subset_sizes(num_data: int, *, dense: bool) -> tuple[int, int]:
    """How many data make a subset, and how many points of the orbit of each."""
    most, total = (NUM_DATA, NUM_POINTS) if dense else FEW
    size = min(most, num_data)
    return size, portion(total, size, NUM_SAMPLES)


def is_dense(kernel: Kernel, num_data: int) -> bool:
    """Whether many orbit points of many data can be compared."""
    return isinstance(kernel, RBF) and kernel.coarse and num_data >= MANY_DATA
