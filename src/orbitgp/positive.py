"""Positive numbers as the softplus of free ones."""

import torch
from jaxtyping import Float
from torch import Tensor


def inverse_softplus(value: Float[Tensor, "*K"]) -> Float[Tensor, "*K"]:
    """The raw number whose softplus is `value` > 0."""
    # log(eᵛ − 1) = v + log(1 − e⁻ᵛ), which does not overflow
    return value + torch.log(-torch.expm1(-value))
