"""Brightness and contrast."""

import math

from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from orbitgp.orbits.ranged import Quantity, RangedOrbit, factor_of
from orbitgp.orbits.ranges import Ends, Flags

QUANTITIES = (factor_of("contrast", math.log(10)), Quantity("brightness", limit=2.0))
"""At most ten times more or less contrast, and brighter by twice the largest value."""


class Intensity(RangedOrbit):
    """Contrast and brightness, x_a = eᶜ x + b, with learnable ranges of c and b.

    Inputs may have any shape. Estimators divide inputs by their largest value, so b is a part of
    that.

    Parameters
    ----------
    low, high : float or sequence of float, default=∓0.05
        Where the ends of the ranges start: one number for all parameters, or one for each.
    learn_low, learn_high : bool or sequence of bool, default=True
        Which ends are learned.
    symmetric : bool, optional
        Whether both ends of a range are tied; by default where they start as mirror images.
    prior : torch.distributions.Distribution, optional
        Distribution of the widths that are learned.

    Examples
    --------
    >>> from orbitgp import Intensity
    >>> Intensity(-0.1, 0.1).describe()
    'contrast ×0.90 … ×1.11, brightness −0.10 … +0.10'
    """

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

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S 2"]
    ) -> Float[Tensor, "N S *event"]:
        """Brighter and darker inputs."""
        contrast, brightness = self.parameters_from(noise).to(x.dtype).unbind(-1)
        shape = (*contrast.shape, *[1] * (x.ndim - 1))
        return x.unsqueeze(1) * contrast.exp().view(shape) + brightness.view(shape)
