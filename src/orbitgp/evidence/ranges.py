"""The parts of an orbit that can be asked for one by one: learned ranges, and fixed groups."""

import copy
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orbitgp.orbits.base import Identity, Orbit
from orbitgp.orbits.compose import compose, parts_of
from orbitgp.orbits.ranged import symbol
from orbitgp.orbits.ranges import Range, UniformRange


@dataclass(frozen=True)
class LearnedRange:
    """One parameter of an orbit with a learned range.

    `places` are its widths in the vector z of hyperparameters: one if both ends are tied, two if
    they are free.
    """

    range: Range
    places: tuple[int, ...]


def learned_parameters(orbit: Orbit) -> list[LearnedRange]:
    """All parameters with learned ranges, in the order of the vector of hyperparameters."""
    found, first = [], 0
    for part, own in parts_with_ranges(orbit):
        ranges = getattr(part, "ranges", None)
        if not isinstance(ranges, UniformRange) or not ranges.learned.any():
            continue
        number = first + ranges.learned.flatten().cumsum(0).view_as(ranges.learned) - 1
        for column, one in enumerate(own[: ranges.learned.shape[1]]):
            places = number[:, column][ranges.learned[:, column]].tolist()
            if places:
                found.append(LearnedRange(one, tuple(places)))
        first += int(ranges.learned.sum())
    return found


def parts_with_ranges(orbit: Orbit) -> list[tuple[Orbit, tuple[Range, ...]]]:
    """Return each part of an orbit with its own among the ranges of the whole."""
    found = iter(orbit.learned_ranges())
    return [
        (part, tuple(itertools.islice(found, len(part.learned_ranges()))))
        for part in parts_of(orbit)
    ]


def fixed_parts(orbit: Orbit) -> list[tuple[Orbit, Orbit]]:
    """The parts of an orbit that are taken whole, and the orbit without each of them.

    These are groups, and noise. The identity takes their place, so that the noise of all others
    stays where it is.
    """
    parts = parts_of(orbit)
    found = []
    for place, part in enumerate(parts):
        if part.size > 1 and not isinstance(getattr(part, "ranges", None), UniformRange):
            others = [*parts[:place], Identity(), *parts[place + 1 :]]
            found.append((part, copy.deepcopy(composed(others))))
    return found


def composed(parts: Sequence[Orbit]) -> Orbit:
    """One orbit after another; a single one is itself."""
    return compose(*parts) if len(parts) > 1 else parts[0]


def with_width(z: np.ndarray, places: tuple[int, ...], log_width: float) -> np.ndarray:
    """z with these widths."""
    other = z.copy()
    other[list(places)] = log_width
    return other


def end_in_words(of: Range, value: float) -> str:
    """One end of a range with its unit."""
    if of.logarithmic:
        return f"×{value:.2f}"
    joined = of.unit if not of.unit or symbol(of.unit) else f" {of.unit}"
    return number_in_words(value) + joined


def interval_in_words(of: Range, low: float, high: float) -> str:
    """Both ends of an interval; a long unit is said once."""
    each = of.logarithmic or of.unit == "°"
    first = end_in_words(of, low) if each else number_in_words(low)
    return f"{first} to {end_in_words(of, high)}"


def number_in_words(value: float) -> str:
    """With two digits, or all before the point."""
    number = f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"
    return number.replace("-", "−")
