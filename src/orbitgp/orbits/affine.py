"""Rotations and affine transformations of images, with learnable ranges (vdW 2018, section 5)."""

import math
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution
from torch.nn.functional import pad

from orbitgp.errors import InputError
from orbitgp.orbits.base import Orbit
from orbitgp.orbits.ranges import Ends, Flags, UniformRange, known
from orbitgp.orbits.warp import affine_matrix, warp

UNITS = {
    "rotation": " (°)",
    "x-scale": " (×)",
    "y-scale": " (×)",
    "x-shift": " (% of width)",
    "y-shift": " (% of height)",
}

LIMITS = (math.pi, math.log(4), math.log(4), 2.0, 1.0, 1.0)
"""A full turn, four times larger or smaller, and a shift by half of the image: where its content
has left the frame, nothing is left to be invariant."""


class Affine(Orbit):
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

    noise_size = 6
    needs_images = True
    names = ("rotation", "x-scale", "y-scale", "shear", "x-shift", "y-shift")

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
        super().__init__()
        self.ranges = UniformRange(
            _six(low),
            _six(high),
            learn_low=learn_low,
            learn_high=learn_high,
            symmetric=symmetric,
            limit=LIMITS,
            prior=prior,
        )

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S 6"]
    ) -> Float[Tensor, "N S *event"]:
        """Warped images."""
        return warp(x, affine_matrix(self.ranges.rsample(noise)))

    def describe(self) -> str:
        """In words; without what is frozen at 0."""
        ends = zip(self.ranges.low.tolist(), self.ranges.high.tolist(), strict=True)
        found = zip(self.names, ends, self.ranges.used, self.ranges.identified, strict=True)
        words = [
            _range_words(name, *ends) + known(bool(told))
            for name, ends, used, told in found
            if used
        ]
        return ", ".join(words) or "no invariance"

    def learned_ranges(self) -> dict[str, tuple[float, float]]:
        """In degrees, factors and percentages."""
        return _in_units(self.names, self.ranges)


class Rotation(Orbit):
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
        super().__init__()
        if max(abs(low), abs(high)) > math.pi + 1e-6:
            raise InputError(
                f"angles are in radians and at most π; got {low:g} … {high:g}: for degrees, use "
                "math.radians"
            )
        self.ranges = UniformRange(
            low,
            high,
            learn_low=learn_low,
            learn_high=learn_high,
            symmetric=symmetric,
            limit=math.pi,
            prior=prior,
        )

    @staticmethod
    def full() -> "Rotation":
        """Every angle is equally likely, and stays so."""
        return Rotation(-math.pi, math.pi, symmetric=True, learn_high=False)

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S 1"]
    ) -> Float[Tensor, "N S *event"]:
        """Turned images."""
        return warp(x, affine_matrix(pad(self.ranges.rsample(noise), (0, 5))))

    def describe(self) -> str:
        """In words."""
        ends = self.ranges.low.item(), self.ranges.high.item()
        return _range_words("rotation", *ends) + known(bool(self.ranges.identified))

    def learned_ranges(self) -> dict[str, tuple[float, float]]:
        """In degrees."""
        return _in_units(("rotation",), self.ranges)


def _six(ends: Ends) -> Sequence[float]:
    six = list(ends) if isinstance(ends, Sequence) else [ends] * 6
    if len(six) != 6:
        raise InputError(
            f"an affine range has six parameters, {', '.join(Affine.names)}; got {len(six)} values"
        )
    return six


def _in_unit(name: str, value: float) -> float:
    """One end of a range in the unit that people use for it."""
    if name == "rotation":
        return math.degrees(value)
    if name.endswith("scale"):
        return math.exp(value)
    return 50 * value if name.endswith("shift") else value


def _in_units(names: Sequence[str], ranges: UniformRange) -> dict[str, tuple[float, float]]:
    rows = zip(names, ranges.low.tolist(), ranges.high.tolist(), strict=True)
    return {
        name + UNITS.get(name, ""): (_in_unit(name, a), _in_unit(name, b)) for name, a, b in rows
    }


def _range_words(name: str, low: float, high: float) -> str:
    """Both ends of a range with their unit."""
    if name == "rotation" and high - low >= 2 * math.pi * (1 - 1e-6):
        return "rotation by any angle"
    return f"{name} {_words(name, low)} … {_words(name, high)}"


def _words(name: str, value: float) -> str:
    """One end of a range with its unit."""
    number = _in_unit(name, value)
    if name == "rotation":
        text = f"{number:+.0f}°"
    elif name.endswith("scale"):
        text = f"×{number:.2f}"
    elif name.endswith("shift"):
        text = f"{number:+.1f}%"
    else:
        text = f"{number:+.2f}"
    return text.replace("-", "−")
