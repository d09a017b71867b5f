"""Saturation and hue of colour images."""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from orbitgp.errors import InputError
from orbitgp.orbits.ranged import Quantity, RangedOrbit, factor_of
from orbitgp.orbits.ranges import Ends, Flags

QUANTITIES = (
    factor_of("saturation", math.log(4)),
    Quantity("hue", "°", 180 / math.pi, math.pi, 0, "any hue"),
)

TO_YIQ = ((0.299, 0.587, 0.114), (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))
"""Luminance and two numbers of colour, from red, green and blue (the NTSC standard of 1953)."""


class Colour(RangedOrbit):
    """Colour images [N, 3, H, W] with other saturation and hue, and the same luminance.

    In luminance Y and chrominance (I, Q), x_a keeps Y and has eˢ R(h) (I, Q), with the logarithm s
    of the saturation and the angle h of the hue.

    Parameters
    ----------
    low, high : float or (float, float), default=∓0.05
        Where the ends of the ranges of s and h (radians) start: one number for both, or one each.
    learn_low, learn_high : bool or sequence of bool, default=True
        Which ends are learned.
    symmetric : bool, optional
        Whether both ends of a range are tied; by default where they start as mirror images.
    prior : torch.distributions.Distribution, optional
        Distribution of the widths that are learned.

    See Also
    --------
    Intensity : Contrast and brightness.

    Examples
    --------
    >>> from orbitgp import Colour
    >>> Colour(-0.1, 0.1).describe()
    'saturation ×0.90 … ×1.11, hue −6° … +6°'
    """

    needs_images = True
    names = tuple(quantity.name for quantity in QUANTITIES)

    def __init__(
        self,
        low: Ends = -0.05,
        high: Ends = 0.05,
        *,
        learn_low: Flags = True,
        learn_high: Flags = True,
        symmetric: bool | None = None,
        prior: Distribution | None = None,
    ) -> None:
        flags = {"learn_low": learn_low, "learn_high": learn_high, "symmetric": symmetric}
        super().__init__(QUANTITIES, low, high, prior=prior, **flags)

    def check(self, x: Float[Tensor, "N *event"]) -> None:
        """Refuse inputs that have no red, green and blue."""
        if x.ndim != 4 or x.shape[1] != 3:
            raise InputError(
                "saturation and hue are of images [N, 3, H, W] of red, green and blue; got "
                f"{list(x.shape)}"
            )

    def transform(
        self, x: Float[Tensor, "N 3 H W"], noise: Float[Tensor, "N S 2"]
    ) -> Float[Tensor, "N S 3 H W"]:
        """Images in other colours."""
        self.check(x)
        matrices = _colour_matrix(self.parameters_from(noise)).to(x.dtype)
        return (matrices @ x.flatten(2).unsqueeze(1)).unflatten(-1, x.shape[2:])


def _colour_matrix(parameters: Float[Tensor, "*B 2"]) -> Float[Tensor, "*B 3 3"]:
    """I + B (eˢ R(h) − I) C: with C from RGB to (I, Q) and B back, grey is left as it is."""
    log_saturation, hue = parameters.double().unbind(-1)
    factor = log_saturation.exp()
    a, b = factor * hue.cos() - 1, factor * hue.sin()
    moved = torch.stack([a, -b, b, a], -1).unflatten(-1, (2, 2))
    to_yiq = torch.tensor(TO_YIQ, dtype=torch.float64, device=parameters.device)
    return torch.eye(3).to(to_yiq) + to_yiq.inverse()[:, 1:] @ moved @ to_yiq[1:]
