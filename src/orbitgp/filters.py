"""Small filters of images, whose gradient is a filter once more, and their energy."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import conv2d, relu


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
        return _back_through(grad, kernel), None


class _Energy(torch.autograd.Function):
    """y = relu(w ⋆ x)^p, ∂/∂x = wᵀ ⋆ (p relu(w ⋆ x)^(p − 1) ∘ ∂/∂y), for p ≥ 1.

    Written out because a buffer for each power and each mask costs as much as the filters.
    """

    @staticmethod
    def forward(ctx: Any, images: Tensor, kernel: Tensor, power: float) -> Tensor:
        edges = conv2d(images, kernel, padding=1).clamp_(min=0)
        ctx.power = power
        ctx.save_for_backward(images, kernel, edges)
        return edges.pow(power)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore
        images, kernel, edges = ctx.saved_tensors
        if torch.is_grad_enabled():  # for second derivatives, which the buffer does not lead to
            edges = relu(filtered(images, kernel))
        slope = edges.pow(ctx.power - 1) if ctx.power > 1 else edges.sign()
        return _back_through(slope.mul_(grad), ctx.power * kernel), None, None


def _back_through(grad: Float[Tensor, "B O H W"], kernel: Float[Tensor, "O 1 3 3"]) -> Tensor:
    """wᵀ ⋆ ∂/∂y, with w turned by half."""
    return conv2d(grad, kernel.transpose(0, 1).flip(2, 3), padding=1)


def filtered(
    images: Float[Tensor, "B 1 H W"], kernel: Float[Tensor, "O 1 3 3"]
) -> Float[Tensor, "B O H W"]:
    """Each image through O filters of 3×3 pixels, 0 outside."""
    return _Filtered.apply(images, kernel)  # pyright: ignore[reportReturnType]


def energy(
    images: Float[Tensor, "B 1 H W"], kernel: Float[Tensor, "O 1 3 3"], power: float
) -> Float[Tensor, "B O H W"]:
    """What the filters find above 0, to a power of at least 1."""
    return _Energy.apply(images, kernel, power)  # pyright: ignore[reportReturnType]


def rows_of(x: Tensor, size: int) -> Sequence[Tensor]:
    """Some rows at a time, or all of them in a graph that is exported for batches of any size."""
    return (x,) if torch.compiler.is_compiling() else x.split(size)


def inverse_softplus(value: Float[Tensor, "*K"]) -> Float[Tensor, "*K"]:
    """Return the raw number whose softplus is `value` > 0."""
    # log(eᵛ − 1) = v + log(1 − e⁻ᵛ), which does not overflow
    return value + torch.log(-torch.expm1(-value))
