"""Rotations and affine transformations of images, with learnable ranges (vdW 2018, section 5)."""

import math

from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution
from torch.nn.functional import pad

from orbitgp.errors import InputError
from orbitgp.orbits.ranged import Quantity, RangedOrbit, factor_of
from orbitgp.orbits.ranges import Ends, Flags
from orbitgp.orbits.warp import affine_matrix, warp

FACTOR_OF_4 = math.log(4)

TURN = Quantity("rotation", "°", 180 / math.pi, math.pi, 0, "rotation by any angle")
QUANTITIES = (
    TURN,
    factor_of("x-scale", FACTOR_OF_4),
    factor_of("y-scale", FACTOR_OF_4),
    Quantity("shear", limit=2.0),
    Quantity("x-shift", "% of width", 50.0, 1.0, 1),
    Quantity("y-shift", "% of height", 50.0, 1.0, 1),
)
"""At most a full turn, four times larger or smaller, and a shift by half of the image: where its
content has left the frame, nothing is left to be invariant."""


class Affine(RangedOrbit):
    """Images rotated, scaled, sheared and shifted by random amounts with learnable ranges.

    Each of the six parameters is drawn uniformly, φ ~ Unif(φ_min, φ_max), in this order: rotation
    (radians, counter-clockwise), logarithm of the x-scale, of the y-scale, shear, x-shift and
    y-shift (half-widths to the right, half-heights down). Images are [N, H, W] or [N, C, H, W].

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

    References
    ----------
    van der Wilk et al. (2018), section 5, "affine transformations".

    Examples
    --------
    >>> import torch
    >>> from orbitgp import Affine
    >>> orbit = Affine(-0.1, 0.1)
    >>> sample = orbit.sample(torch.rand(5, 8, 8), 4, generator=torch.Generator().manual_seed(0))
    >>> sample.points.shape
    torch.Size([5, 4, 8, 8])
    >>> orbit.describe().split(", ")[:2]
    ['rotation −6° … +6°', 'x-scale ×0.90 … ×1.11']
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

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S 6"]
    ) -> Float[Tensor, "N S *event"]:
        """Warped images."""
        return warp(x, affine_matrix(self.parameters_from(noise)))


class Rotation(RangedOrbit):
    """Images rotated about their centre by an angle uniform in [low, high].

    Parameters
    ----------
    low, high : float, default=∓0.2
        Where the ends of the range start, in radians; positive angles turn counter-clockwise.
    learn_low, learn_high : bool, default=True
        Which ends are learned.
    symmetric : bool, optional
        Whether both ends are tied; by default where they start as mirror images.
    prior : torch.distributions.Distribution, optional
        Distribution of the widths that are learned.

    Raises
    ------
    InputError
        If an end is beyond ±π.

    Examples
    --------
    >>> from orbitgp import Rotation
    >>> Rotation(-0.1, 0.1).describe()
    'rotation −6° … +6°'
    >>> Rotation.full().describe()
    'rotation by any angle'
    """

    needs_images = True

    def __init__(
        self,
        low: float = -0.2,
        high: float = 0.2,
        *,
        learn_low: bool = True,
        learn_high: bool = True,
        symmetric: bool | None = None,
        prior: Distribution | None = None,
    ) -> None:
        if max(abs(low), abs(high)) > math.pi + 1e-6:
            raise InputError(
                f"angles are in radians and at most π; got {low:g} … {high:g}: for degrees, use "
                "math.radians"
            )
        flags = {"learn_low": learn_low, "learn_high": learn_high, "symmetric": symmetric}
        super().__init__([TURN], low, high, prior=prior, **flags)

    @staticmethod
    def full() -> "Rotation":
        """Every angle is equally likely, and stays so."""
        return Rotation(-math.pi, math.pi, symmetric=True, learn_high=False)

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S 1"]
    ) -> Float[Tensor, "N S *event"]:
        """Turned images."""
        return warp(x, affine_matrix(pad(self.parameters_from(noise), (0, 5))))
