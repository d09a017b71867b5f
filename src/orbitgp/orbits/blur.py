"""Images out of focus."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.orbits.ranged import Quantity, RangedOrbit


class Blur(RangedOrbit):
    """Images smoothed by a Gaussian, whose standard deviation is uniform in [0, high] pixels.

    The image goes on as its own mirror image outside. In the cosines that fit such an image, of
    frequency ω, smoothing is a product with exp(−½ σ² |ω|²), which is the identity at σ = 0 and
    has gradients everywhere. Images are [N, H, W] or [N, C, H, W].

    Parameters
    ----------
    high : float, default=0.3
        Where the upper end starts, in pixels.
    **options : object
        Of `UniformRange`: learn_high and prior.

    Examples
    --------
    >>> from orbitgp import Blur
    >>> Blur(0.5).describe()
    'blur 0.00 … 0.50 pixels'
    """

    needs_images = True

    def __init__(self, high: float = 0.3, **options: Any) -> None:
        super().__init__([Quantity("blur", "pixels")], 0.0, high, learn_low=False, **options)

    def check(self, x: Float[Tensor, "N *event"]) -> None:
        """Refuse inputs that are no images."""
        if x.ndim not in (3, 4):
            raise InputError(f"blur is of images [N, H, W] or [N, C, H, W]; got {list(x.shape)}")

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S 1"]
    ) -> Float[Tensor, "N S *event"]:
        """Smoother images."""
        self.check(x)
        images = x.unsqueeze(1) if x.ndim == 3 else x
        width = self.parameters_from(noise).squeeze(-1)
        rows, columns = (_smoothing(width, length).to(x).unsqueeze(2) for length in x.shape[-2:])
        smooth = rows @ (images.unsqueeze(1) @ columns)
        return smooth.reshape(*noise.shape[:2], *x.shape[1:])


def _smoothing(width: Float[Tensor, "N S"], length: int) -> Float[Tensor, "N S L L"]:
    """Cᵀ diag(exp(−½ σ² ω²)) C with the orthogonal cosines C, ω_k = π k / L."""
    options = {"dtype": torch.float64, "device": width.device}
    order = torch.arange(length, **options)
    cosines = torch.cos(order[:, None] * (order + 0.5) * (math.pi / length))
    cosines = cosines * torch.where(order > 0, 2 / length, 1 / length).sqrt()[:, None]
    squares = (order * (math.pi / length)).square()
    kept = torch.exp(-0.5 * width.double().square().unsqueeze(-1) * squares)
    return cosines.mT @ (kept.unsqueeze(-1) * cosines)
