"""Scale and offset of what a sensor measured."""

import math

from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from orbitgp.orbits.ranged import Quantity, RangedOrbit, factor_of
from orbitgp.orbits.ranges import Ends, Flags

QUANTITIES = (
    factor_of("scale", math.log(10)),
    Quantity("offset", "%", 100.0, limit=2.0, digits=1),
)
"""At most ten times larger or smaller, and moved by twice the largest value: features that do not
depend on either would let them grow without end."""


class Magnitude(RangedOrbit):
    """Series or rows of numbers of another scale and offset, x_a = eˢ x + b.

    Inputs may have any shape. Estimators divide inputs by their largest value, so b is a part of
    that.

    Parameters
    ----------
    low, high : float or (float, float), default=∓0.05
        Where the ends of the ranges of s and b start: one number for both, or one for each.
    learn_low, learn_high : bool or sequence of bool, default=True
        Which ends are learned.
    symmetric : bool, optional
        Whether both ends of a range are tied; by default where they start as mirror images.
    prior : torch.distributions.Distribution, optional
        Distribution of the widths that are learned.

    See Also
    --------
    Intensity : The same for images.

    Examples
    --------
    >>> from orbitgp import Magnitude
    >>> Magnitude(-0.1, 0.1).describe()
    'scale ×0.90 … ×1.11, offset −10.0% … +10.0%'
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
        """Larger and smaller values."""
        scale, offset = self.parameters_from(noise).to(x.dtype).unbind(-1)
        shape = (*scale.shape, *[1] * (x.ndim - 1))
        return x.unsqueeze(1) * scale.exp().view(shape) + offset.view(shape)
