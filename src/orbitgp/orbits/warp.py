"""Differentiable affine warps of images, with a matrix of its own for every input and sample.

Coordinates are (x, y) from the centre of the image, in half-widths and half-heights, x to the
right and y down, as `grid_sample` has them.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import grid_sample

from orbitgp.errors import InputError


def affine_matrix(parameters: Float[Tensor, "*B 6"]) -> Float[Tensor, "*B 2 3"]:
    """Where to read each pixel: (rotation, log-scale x, log-scale y, shear, shift x, shift y).

    The content moves by p ↦ R(θ) H(h) diag(eˢˣ, eˢʸ) p + t: scaled, sheared (x += h y), turned
    counter-clockwise as displayed, shifted right and down. A value is read where it came from,

        p ↦ diag(e⁻ˢˣ, e⁻ˢʸ) H(−h) R(−θ) (p − t).
    """
    angle, log_sx, log_sy, shear, tx, ty = parameters.unbind(-1)
    cos, sin = torch.cos(angle), torch.sin(angle)
    # R(−θ) with y down: (x, y) ↦ (cos x − sin y, sin x + cos y)
    inverse_sx, inverse_sy = torch.exp(-log_sx), torch.exp(-log_sy)
    a, b = inverse_sx * (cos - shear * sin), -inverse_sx * (sin + shear * cos)
    c, d = inverse_sy * sin, inverse_sy * cos
    rows = [a, b, -(a * tx + b * ty), c, d, -(c * tx + d * ty)]
    return torch.stack(rows, -1).unflatten(-1, (2, 3))


def warp(
    images: Float[Tensor, "N *event"], matrices: Float[Tensor, "N S 2 3"]
) -> Float[Tensor, "N S *event"]:
    """Images [N, H, W] or [N, C, H, W] read at S moved pixel grids, bilinearly, 0 outside."""
    if images.ndim not in (3, 4):
        raise InputError(
            f"affine warps act on images [N, H, W] or [N, C, H, W]; got {list(images.shape)}"
        )
    height, width = images.shape[-2:]
    num_inputs, num_samples = matrices.shape[:2]
    grid = matrices.flatten(2) @ _grid_basis(images)
    # the samples of an image lie under one another in one tall grid: the image is never copied
    tall = grid.reshape(num_inputs, num_samples * height, width, 2)
    stacked = images.reshape(num_inputs, -1, height, width)
    warped = grid_sample(stacked, tall, mode="bilinear", padding_mode="zeros", align_corners=False)
    samples = warped.unflatten(2, (num_samples, height)).transpose(1, 2)
    return samples.reshape(num_inputs, num_samples, *images.shape[1:])


def _grid_basis(images: Tensor) -> Float[Tensor, "6 HW2"]:
    """What each entry of a 2×3 matrix adds to the (x, y) of every pixel: grid = entries · basis.

    Written as one product so that the grid comes out in the order that `grid_sample` reads.
    """
    height, width = images.shape[-2:]
    axes = [(torch.arange(n, device=images.device) * 2 + 1) / n - 1 for n in (height, width)]
    y, x = (axis.flatten() for axis in torch.meshgrid(*axes, indexing="ij"))
    # across axes of different length the matrix acts on pixels, so that circles stay circles
    to_x = torch.stack([x, y * (height / width), torch.ones_like(x)])
    to_y = torch.stack([x * (width / height), y, torch.ones_like(y)])
    nothing = torch.zeros_like(to_x)
    rows = [torch.stack([to_x, nothing], -1), torch.stack([nothing, to_y], -1)]
    return torch.cat(rows).flatten(1).to(images.dtype)
