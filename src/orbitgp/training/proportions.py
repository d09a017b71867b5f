"""How wide each range is beside the others, by gradients of the evidence of small subsets.

Stage one has few inducing variables, and what they cannot explain it takes for a reason to widen
ranges that blur. Of n data with the same S orbit draws for all there is exact evidence
(`subsets.py`), and its gradient. With A = vK + σ²I, C outputs, and v and σ² at their best, where
they need no gradient of their own,

    log p(Y) = −½ tr YᵀA⁻¹Y − ½ C log |A| + const,   ∂/∂K = ½ v (ααᵀ − C A⁻¹),   α = A⁻¹Y,

which reaches the points of K through the kernel, and the ranges through the points. Other data and
other draws in each step; both ends of a range grow or shrink together.
"""

import itertools
import math

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.gaussians import slices
from orbitgp.hyperparameters.parameters import learned_ranges
from orbitgp.kernels import RBF
from orbitgp.model import InvariantGP
from orbitgp.orbits.ranges import UniformRange
from orbitgp.training.group import ALONE, Group
from orbitgp.training.subsets import (
    STEP,
    Subset,
    axes_of,
    best_scales,
    is_dense,
    scales_of,
    spectrum,
    unit_covariance,
)
from orbitgp.training.updates import falling

NUM_DATA, NUM_JUDGES, NUM_SAMPLES = 500, 1000, 16
"""Data of a step, data that judge its start and end, and orbit points of each."""

NUM_STEPS, LEARNING_RATE = 30, 0.2
"""Of the logarithms of widths and lengthscale; the rate falls to 0 in the second half."""

MAX_SHORTER = 4
"""Powers of `STEP` by which the lengthscale may begin shorter: stage one leaves it too long."""

BLOCK = 64
"""Data whose points are compared with all others at a time."""


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
    judge = Subset.drawn(model, x, y, NUM_JUDGES, NUM_SAMPLES, generator=generator)
    with torch.no_grad():
        points = judge.points(model)
    start, shorter, before = kernel.lengthscale.detach().clone(), 0, -math.inf
    for power in range(MAX_SHORTER + 1):
        kernel.lengthscale = start * STEP**power
        found = _evidence(model, points, judge, max_ratio)
        if found <= before:
            break
        shorter, before = power, found
    length = (start * STEP**shorter).log().reshape(())
    widths = [part.widths.detach().clone() for part in ranges]
    powers = [torch.zeros(width.shape[1]).to(width) for width in widths]
    optimizer = torch.optim.Adam([length, *powers], LEARNING_RATE)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: falling(step / NUM_STEPS))
    kernel.lengthscale = length.exp()
    for _ in range(NUM_STEPS):
        subset = Subset.drawn(model, x, y, NUM_DATA, NUM_SAMPLES, generator=generator)
        length.grad, *gradients = _gradients(model, ranges, subset, max_ratio)
        for power, gradient in zip(powers, gradients, strict=True):
            power.grad = gradient
        group.add_(length.grad, *gradients)  # so that all processes take the same step
        optimizer.step()
        rates.step()
        kernel.lengthscale = length.exp()
        for part, width, power in zip(ranges, widths, powers, strict=True):
            part.assign_widths(width * power.exp())
    with torch.no_grad():
        points = judge.points(model)
    if _evidence(model, points, judge, max_ratio) <= before:
        kernel.lengthscale = start
        for part, width in zip(ranges, widths, strict=True):
            part.assign_widths(width)


@torch.no_grad()
def _evidence(model: InvariantGP, points: Tensor, subset: Subset, max_ratio: float) -> float:
    kernel = model.kernel
    assert isinstance(kernel, RBF)
    unit = unit_covariance(kernel, axes_of(points, kernel.lengthscale)(points))
    return best_scales(unit, subset.targets, max_ratio).evidence


def _gradients(
    model: InvariantGP, ranges: list[UniformRange], subset: Subset, max_ratio: float
) -> list[Tensor]:
    """Of −log p(Y) for each datum: to the log lengthscale, and to those of widths."""
    kernel, num_data = model.kernel, len(subset.x)
    assert isinstance(kernel, RBF)
    with torch.no_grad():
        points = subset.points(model)
        axes = axes_of(points, kernel.lengthscale)
        points = axes(points)
        unit = unit_covariance(kernel, points)
    upstream = evidence_gradient(unit, subset.targets, max_ratio)
    slopes, by_length = covariance_gradients(kernel, points, upstream.to(points))
    gradients = [by_length, *_range_gradients(model, ranges, subset, slopes @ axes.basis.mT)]
    return [-gradient / num_data for gradient in gradients]


@torch.no_grad()
def evidence_gradient(
    unit: Float[Tensor, "N N"], targets: Float[Tensor, "N C"], max_ratio: float
) -> Float[Tensor, "N N"]:
    """∂ log p(Y) / ∂K with the best v and σ², for f ~ N(0, v K)."""
    values, vectors = spectrum(unit)
    scales = scales_of(values, vectors, targets, max_ratio)
    inverse = (vectors / (scales.variance * values + scales.noise)) @ vectors.mT
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
    scale, upstream = 1 / kernel.lengthscale.square().item(), upstream / num_samples**2
    half, by_length = 0.5 * points.square().sum(2), points.new_zeros(())
    slopes = torch.zeros_like(points)
    for a, b in itertools.combinations_with_replacement(slices(num_inputs, BLOCK), 2):
        left, right = points[a].flatten(0, 1), points[b].flatten(0, 1)
        exponents = torch.addmm(-half[b].flatten(), left, right.mT)
        exponents.sub_(half[a].flatten().unsqueeze(1)).mul_(scale).clamp_(max=0)
        shape = len(points[a]), num_samples, len(points[b]), num_samples
        weights = exponents.exp().view(shape).mul_(upstream[a, None, b, None]).view_as(exponents)
        slopes[a] += _pull(weights, left, right).view_as(slopes[a])
        if a != b:  # what lies below the diagonal
            slopes[b] += _pull(weights.mT, right, left).view_as(slopes[b])
        by_length -= (2 if a == b else 4) * torch.dot(weights.flatten(), exponents.flatten())
    return slopes.mul_(2 * scale), by_length


def _pull(
    weights: Float[Tensor, "N M"], left: Float[Tensor, "N D"], right: Float[Tensor, "M D"]
) -> Float[Tensor, "N D"]:
    """Σ_m W_nm (x_m − x_n)."""
    return (weights @ right).addcmul_(weights.sum(1, keepdim=True), left, value=-1)


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
