"""Transformations whose parameters are drawn uniformly from learned ranges, in people's units."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.orbits.base import Orbit
from orbitgp.orbits.ranges import Ends, Range, UniformRange


@dataclass(frozen=True)
class Quantity:
    """One parameter of a transformation, as people speak of it.

    `factor` turns the parameter into its unit; a `logarithmic` one is the logarithm of a factor.
    `limit` is the largest distance of an end from 0, and `everything` is said of a range that
    reaches it on both sides. A `normal` one is no uniform parameter, but the standard deviation of
    normal noise.
    """

    name: str
    unit: str = ""
    factor: float = 1.0
    limit: float = math.inf
    digits: int = 2
    everything: str = ""
    normal: bool = False
    logarithmic: bool = False

    def of(self, end: float) -> float:
        """An end of the range in this unit."""
        return math.exp(end) if self.logarithmic else self.factor * end

    def range(self, low: float, high: float, identified: bool) -> Range:
        """The range between these ends of the parameter, in this unit."""
        ends = self.of(low), self.of(high)
        return Range(self.name, self.unit, 0, *ends, identified, self.logarithmic)

    def words(self, found: Range) -> str:
        """Both ends; what a percentage is of is left out, and a long unit is said once."""
        if self.everything and found.high - found.low >= 2 * self.of(self.limit) * (1 - 1e-6):
            return self.everything + found.remark
        if self.logarithmic:
            return f"{self.name} ×{found.low:.2f} … ×{found.high:.2f}{found.remark}"
        short = symbol(self.unit)
        after = f" {self.unit}" if self.unit and not short else ""
        sign = "+" if found.low < 0 else ""
        ends = found.low if sign else abs(found.low), found.high  # low is −0 where it is 0
        first, last = (f"{end:{sign}.{self.digits}f}".replace("-", "−") + short for end in ends)
        return f"{self.name} {first} … {last}{after}{found.remark}"


def factor_of(name: str, limit: float = math.inf) -> Quantity:
    """A factor, of which the parameter is the logarithm."""
    return Quantity(name, "×", limit=limit, logarithmic=True)


def symbol(unit: str) -> str:
    """What stands behind a number without a space: the unit, without what a percentage is of."""
    return unit[:1] if unit[:1] in ("°", "%") else ""


class RangedOrbit(Orbit):
    """An orbit of parameters φ ~ Unif(low, high) with learned ranges: all but `transform`.

    Parameters
    ----------
    quantities : sequence of Quantity
        What each parameter is.
    low, high : float or sequence of float
        Where the ends of the ranges start: one number for all parameters, or one for each.
    **options : object
        Of `UniformRange`: learn_low, learn_high, symmetric and prior.
    """

    ranges: UniformRange

    def __init__(
        self, quantities: Sequence[Quantity], low: Ends, high: Ends, **options: Any
    ) -> None:
        super().__init__()
        self.quantities = tuple(quantities)
        ends = [self._for_each(end) for end in (low, high)]
        limits = [quantity.limit for quantity in self.quantities]
        self.ranges = UniformRange(*ends, limit=limits, **options)
        self.noise_size = len(self.quantities)

    def _for_each(self, ends: Ends) -> list[float]:
        count, given = len(self.quantities), torch.as_tensor(ends).flatten().tolist()
        if len(given) not in (1, count):
            names = ", ".join(quantity.name for quantity in self.quantities)
            raise InputError(
                f"{type(self).__name__} has {_numbered(count, 'parameter')}, {names}; got "
                f"{_numbered(len(given), 'value')}"
            )
        return given if len(given) == count else given * count

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that it was made with, besides its ranges."""
        return {}

    def parameters_from(self, noise: Float[Tensor, "N S K"]) -> Float[Tensor, "N S P"]:
        """φ, from the first numbers of the noise."""
        return self.ranges.rsample(noise[..., : len(self.quantities)])

    def describe(self) -> str:
        """In words; without what is frozen at 0."""
        ranges = zip(self.quantities, self.learned_ranges(), self.ranges.used, strict=True)
        words = [quantity.words(found) for quantity, found, used in ranges if used]
        return ", ".join(words) or "no invariance"

    def learned_ranges(self) -> tuple[Range, ...]:
        """In the units that people use."""
        ranges = self.ranges
        ends = ranges.low.tolist(), ranges.high.tolist(), ranges.identified.tolist()
        each = zip(self.quantities, *ends, strict=True)
        return tuple(quantity.range(*own) for quantity, *own in each)


def _numbered(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
