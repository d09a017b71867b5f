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
    grid = torch.matmul(matrices_to_grid(matrices, height, width), _pixels(images).mT)
    # the samples of an image lie under one another in one tall grid: the image is never copied
    tall = grid.mT.reshape(num_inputs, num_samples * height, width, 2)
    stacked = images.reshape(num_inputs, -1, height, width)
    warped = grid_sample(stacked, tall, mode="bilinear", padding_mode="zeros", align_corners=False)
    samples = warped.unflatten(2, (num_samples, height)).transpose(1, 2)
    return samples.reshape(num_inputs, num_samples, *images.shape[1:])


def matrices_to_grid(
    matrices: Float[Tensor, "N S 2 3"], height: int, width: int
) -> Float[Tensor, "N S 2 3"]:
    """The matrices for axes of different length, so that circles stay circles."""
    if height == width:
        return matrices
    aspect = matrices.new_tensor([[1, height / width, 1], [width / height, 1, 1]])
    return matrices * aspect


def _pixels(images: Tensor) -> Float[Tensor, "HW 3"]:
    """Homogeneous centres of the pixels, row by row."""
    axes = [(torch.arange(n, device=images.device) * 2 + 1) / n - 1 for n in images.shape[-2:]]
    y, x = torch.meshgrid(*(axis.to(images.dtype) for axis in axes), indexing="ij")
    return torch.stack([x.flatten(), y.flatten(), torch.ones_like(x).flatten()], 1)
