"""Differentiable affine warps of images, with a matrix of its own for every input and sample.

Coordinates are (x, y) from the centre of the image, in half-widths and half-heights, x to the
right and y down, as `grid_sample` has them.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import grid_sample

from orbitgp.errors import InputError


def affine_matrix(parameters: Float[Tensor, "*B 6"]) -> Float[Tensor, "*B 2 3"]:
    """Where to read each pixel, for (rotation, log-scale x, log-scale y, shear, shifts x, y).

    The content moves by p ↦ R(θ) H(h) diag(eˢˣ, eˢʸ) p + t: scaled, sheared (x += h y), turned
    counter-clockwise as displayed, shifted right and down. A value is read where it came from,

        p ↦ A (p − t),   A = diag(e⁻ˢˣ, e⁻ˢʸ) H(−h) R(−θ),

    and what is returned is [A | t].
    """
    angle, log_sx, log_sy, shear, shift_x, shift_y = parameters.unbind(-1)
    cos, sin = torch.cos(angle), torch.sin(angle)
    # R(−θ) with y down: (x, y) ↦ (cos x − sin y, sin x + cos y)
    inverse_sx, inverse_sy = torch.exp(-log_sx), torch.exp(-log_sy)
    a, b = inverse_sx * (cos - shear * sin), -inverse_sx * (sin + shear * cos)
    c, d = inverse_sy * sin, inverse_sy * cos
    return torch.stack([a, b, shift_x, c, d, shift_y], -1).unflatten(-1, (2, 3))


def warp(
    images: Float[Tensor, "N *event"],
    matrices: Float[Tensor, "N S 2 3"],
    outside: Literal["zeros", "border"] = "zeros",
) -> Float[Tensor, "N S *event"]:
    """Images [N, H, W] or [N, C, H, W] read at S moved pixel grids, bilinearly."""
    if images.ndim not in (3, 4):
        raise InputError(
            f"affine warps act on images [N, H, W] or [N, C, H, W]; got {list(images.shape)}"
        )
    height, width = images.shape[-2:]
    num_inputs, num_samples = matrices.shape[:2]
    grid = _entries(matrices.to(images.dtype), height / width) @ _grid_basis(images)
    # the samples of an image lie under one another in one tall grid: the image is never copied
    tall = grid.reshape(num_inputs, num_samples * height, width, 2)
    stacked = images.reshape(num_inputs, -1, height, width)
    warped = grid_sample(stacked, tall, mode="bilinear", padding_mode=outside, align_corners=False)
    samples = warped.unflatten(2, (num_samples, height)).transpose(1, 2)
    return samples.reshape(num_inputs, num_samples, *images.shape[1:])


def _entries(matrices: Float[Tensor, "N S 2 3"], aspect: float) -> Float[Tensor, "N S 6"]:
    """[A | −A t] in half-widths and half-heights, so that circles stay circles if they differ."""
    scale = matrices.new_tensor([[1, aspect], [1 / aspect, 1]])
    linear = matrices[..., :2] * scale
    return torch.cat([linear, -(linear @ matrices[..., 2:])], -1).flatten(2)


def _grid_basis(images: Tensor) -> Float[Tensor, "6 HW2"]:
    """What each entry of a 2×3 matrix adds to the (x, y) of every pixel: grid = entries · basis.

    Written as one product so that the grid comes out in the order that `grid_sample` reads.
    """
    options = {"dtype": images.dtype, "device": images.device}
    axes = [(torch.arange(n, **options) * 2 + 1) / n - 1 for n in images.shape[-2:]]
    y, x = (axis.flatten() for axis in torch.meshgrid(*axes, indexing="ij"))
    terms = torch.stack([x, y, torch.ones_like(x)])
    nothing = torch.zeros_like(terms)
    rows = [torch.stack([terms, nothing], -1), torch.stack([nothing, terms], -1)]
    return torch.cat(rows).flatten(1)
