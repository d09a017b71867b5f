"""How wide each range is beside the others, by gradients of the evidence of small subsets.

Stage one has few inducing variables, and what they cannot explain it takes for a reason to widen
ranges that blur. Of n data with the same S orbit draws for all there is exact evidence
(`subsets.py`), and its gradient. With A = vK + σ²I, C outputs, and v and σ² at their best, where
they need no gradient of their own,

    log p(Y) = −½ tr YᵀA⁻¹Y − ½ C log |A| + const,   ∂/∂K = ½ v (ααᵀ − C A⁻¹),   α = A⁻¹Y,

which reaches the points of K through the kernel, and the ranges through the points. Other data and
other draws in each step; both ends of a range grow or shrink together.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.features import Projection
from orbitgp.kernels import RBF
from orbitgp.likelihoods.gaussian import Gaussian
from orbitgp.model import InvariantGP
from orbitgp.orbits.ranges import UniformRange
from orbitgp.posterior.inducing import average_covariance
from orbitgp.training.group import ALONE, Group
from orbitgp.training.subsets import (
    MAX_LEFT_OUT,
    STEP,
    Scales,
    best_scales,
    is_dense,
    learned_ranges,
)

NUM_DATA, NUM_JUDGES, NUM_SAMPLES = 500, 1000, 16
"""Data of a step, data that judge its start and end, and orbit points of each."""

NUM_STEPS, LEARNING_RATE = 30, 0.2
"""Of the logarithms of widths and lengthscale; the rate falls to 0 in the second half."""

MAX_SHORTER = 4
"""Powers of `STEP` by which the lengthscale may begin shorter: stage one leaves it too long."""

BLOCK = 64
"""Data whose points are compared with all others at a time."""


@dataclass(frozen=True)
class Subset:
    """Some data, what they should be, and the noise of the draws that they share."""

    x: Float[Tensor, "N *event"]
    targets: Float[Tensor, "N C"]
    noise: Float[Tensor, "1 S K"] | None


def balance(
    model: InvariantGP,
    x: Tensor,
    y: Tensor,
    *,
    max_ratio: float,
    generator: torch.Generator,
    group: Group = ALONE,
) -> None:
    """Take proportions of the ranges that have more evidence, and a lengthscale that suits them.

    Nothing is done for orbits that are no compositions, which gain little by it, or where a kernel
    is too slow for it, and nothing is left of it where other data have no more evidence in the end
    than they had before.
    """
    kernel, ranges = model.kernel, learned_ranges(model.orbit)
    if len(ranges) < 2 or not is_dense(kernel, len(x)):
        return
    assert isinstance(kernel, RBF)
    judge = _drawn(model, x, y, NUM_JUDGES, generator)
    start, shorter, before = kernel.lengthscale.detach().clone(), 0, -math.inf
    for power in range(MAX_SHORTER + 1):
        kernel.lengthscale = start * STEP**power
        found = _best_scales(model, judge, max_ratio).evidence
        if found <= before:
            break
        shorter, before = power, found
    length = (start * STEP**shorter).log().reshape(())
    widths = [part.widths.detach().clone() for part in ranges]
    powers = [torch.zeros(width.shape[1]).to(width) for width in widths]
    optimizer = torch.optim.Adam([length, *powers], LEARNING_RATE)
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, 2 * (1 - step / NUM_STEPS))
    )
    kernel.lengthscale = length.exp()
    for _ in range(NUM_STEPS):
        subset = _drawn(model, x, y, NUM_DATA, generator)
        length.grad, *gradients = _gradients(model, ranges, subset, max_ratio)
        for power, gradient in zip(powers, gradients, strict=True):
            power.grad = gradient
        group.add_(length.grad, *gradients)  # so that all processes take the same step
        optimizer.step()
        rates.step()
        kernel.lengthscale = length.exp()
        for part, width, power in zip(ranges, widths, powers, strict=True):
            part.assign_widths(width * power.exp())
    if _best_scales(model, judge, max_ratio).evidence <= before:
        kernel.lengthscale = start
        for part, width in zip(ranges, widths, strict=True):
            part.assign_widths(width)


def _drawn(
    model: InvariantGP, x: Tensor, y: Tensor, num_data: int, generator: torch.Generator
) -> Subset:
    rows = torch.randperm(len(x), generator=generator)[:num_data].to(x.device)
    noise = model.orbit_noise(1, NUM_SAMPLES, generator=generator, group_size=NUM_SAMPLES)
    assert isinstance(model.likelihood, Gaussian)
    return Subset(x[rows], model.likelihood.quadratic_bound(x[rows], y[rows]).targets, noise)


@torch.no_grad()
def _points(model: InvariantGP, subset: Subset) -> tuple[Float[Tensor, "N S K"], Projection]:
    """Orbit points on the axes that hold their variance, and these axes."""
    assert isinstance(model.kernel, RBF)
    points = model.sample_orbit_at(subset.x, subset.noise).points
    left_out = MAX_LEFT_OUT * model.kernel.lengthscale.square().item()
    axes = Projection.of(points[:, :4].flatten(0, 1), left_out)
    return axes(points), axes


@torch.no_grad()
def _unit_covariance(kernel: RBF, points: Float[Tensor, "N S D"]) -> Float[Tensor, "N N"]:
    return average_covariance(kernel, points) / kernel.variance.item()


def _best_scales(model: InvariantGP, subset: Subset, max_ratio: float) -> Scales:
    assert isinstance(model.kernel, RBF)
    points, _ = _points(model, subset)
    return best_scales(_unit_covariance(model.kernel, points), subset.targets, max_ratio)


def _gradients(
    model: InvariantGP, ranges: list[UniformRange], subset: Subset, max_ratio: float
) -> list[Tensor]:
    """Of −log p(Y) for each datum: to the log lengthscale, and to those of widths."""
    kernel, num_data = model.kernel, len(subset.x)
    assert isinstance(kernel, RBF)
    points, axes = _points(model, subset)
    upstream = evidence_gradient(_unit_covariance(kernel, points), subset.targets, max_ratio)
    slopes, by_length = covariance_gradients(kernel, points, upstream.to(points))
    slopes = slopes @ axes.basis.mT
    gradients = [by_length, *_range_gradients(model, ranges, subset, slopes)]
    return [-gradient / num_data for gradient in gradients]


@torch.no_grad()
def evidence_gradient(
    unit: Float[Tensor, "N N"], targets: Float[Tensor, "N C"], max_ratio: float
) -> Float[Tensor, "N N"]:
    """∂ log p(Y) / ∂K with the best v and σ², for f ~ N(0, v K)."""
    scales = best_scales(unit, targets, max_ratio)
    values, vectors = torch.linalg.eigh(unit)  # of which rounding may leave some below 0
    spread = scales.variance * values.clamp(min=0) + scales.noise
    inverse = (vectors / spread) @ vectors.mT
    alpha = inverse @ targets
    return 0.5 * scales.variance * torch.addmm(inverse, alpha, alpha.mT, beta=-targets.shape[1])


@torch.no_grad()
def covariance_gradients(
    kernel: RBF, points: Float[Tensor, "N S D"], upstream: Float[Tensor, "N N"]
) -> tuple[Float[Tensor, "N S D"], Float[Tensor, ""]]:
    """Of Σ_nm G_nm K_nm to the points and log ℓ, for a symmetric G and a kernel of variance 1.

    With W = G_nm k(x_ns, x_mt) / S² the first is 2 Σ_mt W (x_mt − x_ns) / ℓ², the second
    Σ W |x_ns − x_mt|² / ℓ².
    """
    num_inputs, num_samples, _ = points.shape
    scale, flat = 1 / kernel.lengthscale.square().item(), points.flatten(0, 1)
    half, upstream = 0.5 * flat.square().sum(1), upstream / num_samples**2
    slopes, by_length = torch.empty_like(points), points.new_zeros(())
    for rows in range(0, num_inputs, BLOCK):
        left = points[rows : rows + BLOCK].flatten(0, 1)
        own = half[rows * num_samples :][: len(left)].unsqueeze(1)
        exponents = torch.addmm(-half, left, flat.mT).sub_(own).mul_(scale).clamp_(max=0)
        weights = exponents.exp().view(-1, num_samples, num_inputs, num_samples)
        weights = weights.mul_(upstream[rows : rows + BLOCK, None, :, None]).view_as(exponents)
        pull = (weights @ flat).sub_(weights.sum(1, keepdim=True) * left)
        slopes[rows : rows + BLOCK] = pull.mul_(2 * scale).view_as(slopes[rows : rows + BLOCK])
        by_length -= 2 * (weights * exponents).sum()
    return slopes, by_length


def _range_gradients(
    model: InvariantGP,
    ranges: list[UniformRange],
    subset: Subset,
    slopes: Float[Tensor, "N S D"],
) -> list[Float[Tensor, "K"]]:
    """To the logarithm of a factor of both ends of each range, by way of the points."""
    totals = [torch.zeros_like(part.raw) for part in ranges]
    for images, some in zip(subset.x.split(BLOCK), slopes.split(BLOCK), strict=True):
        points = model.sample_orbit_at(images, subset.noise).points
        if not points.requires_grad:  # a feature map that gradients do not pass
            break
        raws = [part.raw for part in ranges]
        found = torch.autograd.grad(points, raws, some, materialize_grads=True)
        for total, gradient in zip(totals, found, strict=True):
            total.add_(gradient)
    # w = softplus(raw), so that ∂w/∂raw = sigmoid(raw); ends that are not learned have no gradient
    with torch.no_grad():
        ends = [part.widths / torch.sigmoid(part.raw) for part in ranges]
    return [(total * end).sum(0) for total, end in zip(totals, ends, strict=True)]
