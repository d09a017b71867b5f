"""The exact evidence of some data as a function of the hyperparameters, and its gradient.

All data share the same S orbit draws, which are fixed, so the evidence is a smooth function of
ranges and lengthscale. With f ~ N(0, v K), y = f + noise, r = v/σ², A = r K + I and Y [n, C],

    log p(Y) = −½ n C log 2πσ² − tr YᵀA⁻¹Y / 2σ² − ½ C log |A|,   σ² = tr YᵀA⁻¹Y / nC at its best.

The ratio has its best value by a search on the eigenvalues λ of K, bounded by r · mean K_nn ≤ the
largest signal-to-noise ratio, and by r λ ≥ −½ where rounding has left some λ below 0. With α = A⁻¹Y
and H = ½ ααᵀ/σ² − ½ C A⁻¹,

    ∂/∂K = r H                                      inside the bound,
    ∂/∂K = r H − r ⟨H, K⟩ I / (n · mean K_nn)       on it, where r depends on the diagonal of K,

which reaches the points of K through the kernel, and the ranges through the points.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.inference.exact import orbit_points
from orbitgp.likelihoods.gaussian import Scales, scales_at
from orbitgp.orbit_model import OrbitModel
from orbitgp.posterior.algebra import eigenvectors, largest_ratio

RATIOS = tuple(10 ** (k / 4) for k in range(-16, 41))
NUM_HALVINGS = 12
"""Of the interval around the best of these ratios."""

INPUTS = 64
"""Inputs whose orbit points are differentiated at a time."""


@dataclass(frozen=True)
class Subset:
    """Some data, their targets, and one row of noise: the same draws for all."""

    x: Float[Tensor, "N *event"]
    targets: Float[Tensor, "N C"]
    noise: Float[Tensor, "1 S K"] | None

    @torch.no_grad()
    def points(self, model: OrbitModel) -> Float[Tensor, "N S D"]:
        """Behind the feature map, on the orbits that the model has now."""
        return orbit_points(model, self.x, self.noise)

    def gradients(
        self, model: OrbitModel, raw: Sequence[Tensor], slopes: Float[Tensor, "N S D"]
    ) -> list[Tensor]:
        """Of ⟨slopes, points⟩ with respect to these tensors; 0 where nothing can be derived."""
        totals = [torch.zeros_like(part) for part in raw]
        for x, some in zip(self.x.split(INPUTS), slopes.split(INPUTS), strict=True):
            with torch.enable_grad():
                points = model.sample_orbit_at(x, self.noise).points
            if not points.requires_grad:  # a feature map that gradients do not pass
                break
            found = torch.autograd.grad(points, raw, some, materialize_grads=True)
            for total, gradient in zip(totals, found, strict=True):
                total.add_(gradient)
        return totals


@torch.no_grad()
def best_scales(
    covariance: Float[Tensor, "N N"], targets: Float[Tensor, "N C"], max_ratio: float
) -> Scales:
    """The ratio and noise with the most evidence, mean r K_nn ≤ max_ratio."""
    values, vectors = eigenvectors(covariance, "the covariance of a subset")
    energy = (vectors.mT @ targets).square().sum(1)
    largest = min(max_ratio / covariance.diagonal().mean().item(), largest_ratio(values))
    return _best_of_spectrum(values.clamp(min=0), energy, targets.shape, largest)


@torch.no_grad()
def scales_with_gradient(
    covariance: Float[Tensor, "N N"], targets: Float[Tensor, "N C"], max_ratio: float
) -> tuple[Scales, Float[Tensor, "N N"]]:
    """The same, and ∂ log p(Y) / ∂K."""
    values, vectors = eigenvectors(covariance, "the covariance of a subset")
    energy, mean = (vectors.mT @ targets).square().sum(1), covariance.diagonal().mean().item()
    largest = min(max_ratio / mean, largest_ratio(values))
    values.clamp_(min=0)
    scales = _best_of_spectrum(values, energy, targets.shape, largest)
    ratio, (size, num_outputs) = scales.ratio, targets.shape
    inverse = (vectors / (1 + ratio * values)) @ vectors.mT
    alpha = inverse @ targets
    slope = torch.addmm(inverse, alpha, alpha.mT, beta=-0.5 * num_outputs, alpha=0.5 / scales.noise)
    gradient = ratio * slope
    if ratio * mean >= max_ratio * (1 - 1e-9):
        gradient.diagonal().sub_(ratio * (slope * covariance).sum() / (size * mean))
    return scales, gradient


def _best_of_spectrum(
    values: Float[Tensor, "N"],
    energy: Float[Tensor, "N"],
    shape: tuple[int, ...],
    largest: float,
) -> Scales:
    """Over a grid of ratios, and then by golden sections around the best of them."""

    def at(log_ratio: float) -> Scales:
        ratio = math.exp(log_ratio)
        quadratic = (energy / (1 + ratio * values)).sum().item()
        volume = torch.log1p(ratio * values).sum().item()
        return scales_at(quadratic, volume, (shape[0], shape[1]), ratio)

    inside = [math.log(ratio) for ratio in RATIOS if ratio < largest]
    if largest < RATIOS[-1]:
        inside.append(math.log(largest))
    found = [at(log_ratio) for log_ratio in inside]
    best = max(range(len(found)), key=lambda place: found[place].evidence)
    low, high = inside[max(best - 1, 0)], inside[min(best + 1, len(inside) - 1)]
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = at(left), at(right)
    for _ in range(NUM_HALVINGS):
        if at_left.evidence > at_right.evidence:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = at(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = at(right)
    return max(found[best], at_left, at_right, key=lambda scales: scales.evidence)
