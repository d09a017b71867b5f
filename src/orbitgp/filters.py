"""Small filters of images, whose gradient is a filter once more."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import conv2d


class _Filtered(torch.autograd.Function):
    """y = w ⋆ x, ∂/∂x = wᵀ ⋆ ∂/∂y with w turned by half; w has no gradient.

    PyTorch's own gradient of a convolution is five times slower where there is one channel.
    """

    @staticmethod
    def forward(ctx: Any, images: Tensor, kernel: Tensor) -> Tensor:
        ctx.save_for_backward(kernel)
        return conv2d(images, kernel, padding=1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # pyright: ignore
        (kernel,) = ctx.saved_tensors
        return conv2d(grad, kernel.transpose(0, 1).flip(2, 3), padding=1), None


def filtered(
    images: Float[Tensor, "B 1 H W"], kernel: Float[Tensor, "O 1 3 3"]
) -> Float[Tensor, "B O H W"]:
    """Each image through O filters of 3×3 pixels, 0 outside."""
    return _Filtered.apply(images, kernel)  # pyright: ignore[reportReturnType]
