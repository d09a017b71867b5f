"""Differentiable maps φ between orbit and kernel, behind which the inducing points live."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Standardize(nn.Module):
    """Flat features with mean 0 and standard deviation 1 on the data that it was made from.

    It stands behind the orbit, so a transformation still sees the inputs as they were measured.
    """

    mean: Float[Tensor, "D"]
    scale: Float[Tensor, "D"]

    def __init__(self, mean: Float[Tensor, "D"], scale: Float[Tensor, "D"]) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    @staticmethod
    def of(x: Float[Tensor, "N *event"]) -> "Standardize":
        """The map for these data; a feature that never varies is left unscaled."""
        flat = x.flatten(1)
        mean, spread = flat.mean(0), flat.std(0, correction=0)
        rounding = 10 * torch.finfo(x.dtype).eps * flat.abs().amax(0)
        return Standardize(mean, torch.where(spread > rounding, spread, torch.ones_like(spread)))

    def forward(self, x: Float[Tensor, "B *event"]) -> Float[Tensor, "B D"]:
        """(x − mean) / scale, feature by feature."""
        return (x.flatten(1) - self.mean) / self.scale
