"""Which features of the inputs explain the labels best, by exact evidence, without any invariance.

The choice depends on the data and the kernel alone, not on the orbit or the seed of a fit, so that
fits of the same data with different orbits compare the same features.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orbitgp.features import MAX_CELLS, OrientedEnergy, Standardize
from orbitgp.fit.initial import initial_model
from orbitgp.inference.exact import climbed_ratio
from orbitgp.inference.passes import Examples
from orbitgp.kernels import (
    Kernel,
    average_covariances_among,
    average_variances,
    with_lengthscale,
)
from orbitgp.likelihoods.base import Likelihood
from orbitgp.likelihoods.gaussian import Scales, scales_at
from orbitgp.orbits.base import Identity
from orbitgp.orbits.names import are_images
from orbitgp.patches import PatchFeatures
from orbitgp.posterior.algebra import largest_ratio

NUM_COMPARED = 500
"""Inputs, evenly among all."""

FACTOR = 2**-0.5
"""Between one lengthscale and the next, from a typical distance on."""

START_RATIO = 100.0
"""Of the kernel's variance to the noise."""

MIN_SIDE = 12
"""Pixels along each side of images that are more than a few numbers."""

MIN_LENGTH = 24
"""Columns of rows, or samples of series with few channels, that may be series."""

SERIES = [(dilation, cells) for dilation in (1, 4) for cells in (1, 4, 12)]
"""Samples between two entries of a patch of nine, and cells along a series."""

SERIES_FILTERS = 32
"""A third of the time of 128; the evidence is more on some series, and less on others."""

PLACES = 200
"""Of patches along a series, or up to twice as many, while the stride allows it."""

PATCHES = {"patches of 5 pixels": (5, 3), "patches of 7 pixels": (7, 4)}
"""Pixels along each side of a patch, and cells along each side of an image."""

NAMES = ("auto", "oriented", "patches")

Maker = Callable[[], nn.Module]


def compare_features(
    makers: Mapping[str, Maker],
    examples: Examples,
    likelihood: Likelihood,
    kernel: str | Kernel | None,
    max_ratio: float,
) -> dict[str, float]:
    """The evidence of each, in nats of some of the inputs."""
    count = num_compared(examples.x)
    rows = torch.linspace(0, len(examples.x) - 1, count, device=examples.x.device).round().long()
    data = examples.x[rows], examples.y[rows]
    return {
        name: features_evidence(make(), *data, likelihood, kernel, max_ratio)
        for name, make in makers.items()
    }


def num_compared(x: Float[Tensor, "N *event"]) -> int:
    """Inputs that features are compared on."""
    return min(NUM_COMPARED, len(x))


def describe(evidence: Mapping[str, float], count: int) -> str:
    """For people who wait."""
    ranked = sorted(evidence.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{name} {nats:,.0f}".replace("-", "−") for name, nats in ranked)
    return f"features by evidence in nats of {count} inputs: {listed}"


def feature_makers(
    features: str | nn.Module | None, x: Float[Tensor, "N *event"]
) -> dict[str, Maker]:
    """The features that are given or have this name, or those that suit these inputs."""
    if isinstance(features, nn.Module):
        return {"given": lambda: features}
    plain = nn.Flatten if x.ndim > 2 else functools.partial(Standardize.of, x)
    images, series = is_of_images(x.shape), may_be_series(x.shape)
    if features is None or (features == "auto" and not (images or series)):
        return {"values": plain}
    if features == "oriented":
        return {"oriented edges": OrientedEnergy}
    if series and not images:
        patches = _patches_of_series(x)
        return patches if features == "patches" else {"values": plain, **patches}
    patches = _patches_of_images(x)
    if features == "patches":
        return patches
    return {"pixels": plain, "oriented edges": OrientedEnergy, **patches}


def is_of_images(shape: Sequence[int]) -> bool:
    """Return whether inputs of this shape are images with enough pixels for edges."""
    return are_images(shape[1:]) and min(shape[-2:]) >= MIN_SIDE


def may_be_series(shape: Sequence[int]) -> bool:
    """Whether inputs [N, T] or [N, C, T] are long enough; rows of a table may be, too."""
    return len(shape) in (2, 3) and shape[-1] >= MIN_LENGTH


def _patches_of_images(x: Float[Tensor, "N *event"]) -> dict[str, Maker]:
    return {
        words: functools.partial(_patches, x, size=size, cells=cells)
        for words, (size, cells) in PATCHES.items()
    }


def _patches_of_series(x: Float[Tensor, "N *event"]) -> dict[str, Maker]:
    """Those that leave room for their cells; of long series at every few samples."""
    stride = min(max(1, x.shape[-1] // PLACES), MAX_CELLS)
    sizes = {"num_filters": SERIES_FILTERS, "size": 9, "stride": stride, "series": True}
    return {
        f"patches of {8 * dilation + 1} samples in {cells} cell{'s' * (cells > 1)}": (
            functools.partial(_patches, x, cells=cells, dilation=dilation, **sizes)
        )
        for dilation, cells in SERIES
        if 8 * dilation + cells < x.shape[-1]
    }


def _patches(x: Float[Tensor, "N *event"], **sizes: Any) -> PatchFeatures:
    return PatchFeatures.of(x, **sizes, generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def features_evidence(
    feature_map: nn.Module,
    x: Float[Tensor, "N *event"],
    y: Tensor,
    likelihood: Likelihood,
    kernel: str | Kernel | None,
    max_ratio: float,
) -> float:
    """The best log p(y) in nats over lengthscales, variances and noises, without an orbit."""
    generator = torch.Generator().manual_seed(0)
    model = initial_model(Identity(), likelihood, x, feature_map, kernel, generator=generator)
    targets = model.likelihood.quadratic_bound(x, y).targets
    points = torch.cat([model.features(part) for part in x.split(256)]).unsqueeze(1)
    parts = with_lengthscale(model.kernel)
    starts = [part.lengthscale.clone() for part in parts]

    @functools.cache
    def at(power: int) -> Scales:
        """With all lengthscales times this power of the factor."""
        for part, start in zip(parts, starts, strict=True):
            part.lengthscale = start * FACTOR**power
        spread, axes = torch.linalg.eigh(average_covariances_among(model.kernel, points))
        squares = (axes.mT @ targets).square().sum(1)
        largest = max_ratio / average_variances(model.kernel, points).mean().item()
        largest = min(largest, largest_ratio(spread))
        at_ratio = functools.partial(_scales, spread.clamp(min=0), squares, targets.shape)
        return climbed_ratio(at_ratio, min(START_RATIO, largest), largest)

    best = 0
    for way in (1, -1):
        while parts and abs(best + way) <= 8 and at(best + way).evidence > at(best).evidence:
            best += way
    evidence = at(best).evidence
    return evidence if math.isfinite(evidence) else -math.inf


def _scales(
    spread: Float[Tensor, "N"], squares: Float[Tensor, "N"], shape: torch.Size, ratio: float
) -> Scales:
    """The evidence for one r, from the eigenvalues of K and the targets along its axes."""
    size, num_outputs = shape
    values = 1 + ratio * spread
    volume = values.log().sum().item()
    return scales_at((squares / values).sum().item(), volume, (size, num_outputs), ratio)
