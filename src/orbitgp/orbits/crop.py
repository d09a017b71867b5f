"""Parts of images, as large as the whole."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.orbits.ranged import RangedOrbit, factor_of
from orbitgp.orbits.warp import affine_matrix, warp


class Crop(RangedOrbit):
    """A random part of an image, zoomed to the size of the whole.

    The zoom is a factor between 1 and exp(high), uniform in its logarithm, and the part lies
    anywhere inside of the image. Images are [N, H, W] or [N, C, H, W].

    Parameters
    ----------
    high : float, default=0.1
        Logarithm of the largest zoom where learning starts.
    **options : object
        Of `UniformRange`: learn_high and prior.

    See Also
    --------
    Affine : Scales and shifts, with 0 where an image has no pixels.

    Examples
    --------
    >>> from orbitgp import Crop
    >>> Crop(0.2).describe()
    'zoom ×1.00 … ×1.22'
    """

    needs_images = True

    def __init__(self, high: float = 0.1, **options: Any) -> None:
        zoom = factor_of("zoom", math.log(4))
        super().__init__([zoom], 0.0, high, learn_low=False, **options)
        self.noise_size = 3

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S 3"]
    ) -> Float[Tensor, "N S *event"]:
        """Crops of the images."""
        zoom = self.parameters_from(noise)
        place = 2 * noise[..., 1:].to(zoom) - 1
        still = torch.zeros_like(zoom)
        shift = (zoom.exp() - 1) * place  # in half-widths, so that the frame stays full
        matrices = affine_matrix(torch.cat([still, zoom, zoom, still, shift], -1))
        return warp(x, matrices, outside="border")
