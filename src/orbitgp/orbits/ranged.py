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
from orbitgp.orbits.ranges import Ends, UniformRange, known


@dataclass(frozen=True)
class Quantity:
    """One parameter of a transformation, as people speak of it.

    `factor` turns the parameter into its unit; of a "×" the parameter is the logarithm. `limit` is
    the largest distance of an end from 0, and `everything` is said of a range that reaches it on
    both sides. A `normal` one is no uniform parameter, but the standard deviation of normal noise.
    """

    name: str
    unit: str = ""
    factor: float = 1.0
    limit: float = math.inf
    digits: int = 2
    everything: str = ""
    normal: bool = False

    @property
    def title(self) -> str:
        """The name with its unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def of(self, end: float) -> float:
        """An end of the range in this unit."""
        return math.exp(end) if self.unit == "×" else self.factor * end

    def words(self, low: float, high: float) -> str:
        """Both ends; what a percentage is of is left out, and a long unit is said once."""
        if self.everything and high - low >= 2 * self.limit * (1 - 1e-6):
            return self.everything
        short = self.unit[:1] if self.unit[:1] in "°%" else ""
        after = f" {self.unit}" if self.unit not in ("", "×") and not short else ""
        sign = "+" if low < 0 else ""
        first, last = (self._number(end, sign) + short for end in (low, high))
        return f"{self.name} {first} … {last}{after}"

    def _number(self, end: float, sign: str) -> str:
        if self.unit == "×":
            return f"×{self.of(end):.2f}"
        value = self.of(end) if sign else abs(self.of(end))  # low is −0 where it is 0
        return f"{value:{sign}.{self.digits}f}".replace("-", "−")


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
        ranges = zip(self._ends(), self.ranges.used, self.ranges.identified, strict=True)
        words = [
            quantity.words(low, high) + known(bool(identified))
            for (quantity, low, high), used, identified in ranges
            if used
        ]
        return ", ".join(words) or "no invariance"

    def learned_ranges(self) -> dict[str, tuple[float, float]]:
        """In the units that people use."""
        return {q.title: (q.of(low), q.of(high)) for q, low, high in self._ends()}

    def _ends(self) -> list[tuple[Quantity, float, float]]:
        ends = self.ranges.low.tolist(), self.ranges.high.tolist()
        return list(zip(self.quantities, *ends, strict=True))


def _numbered(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
