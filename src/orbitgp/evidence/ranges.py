"""The parts of an orbit that can be asked for one by one: learned ranges, and fixed groups."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from orbitgp.orbits.base import FiniteOrbit, Identity, Orbit
from orbitgp.orbits.compose import compose
from orbitgp.orbits.ranges import UniformRange


@dataclass(frozen=True)
class LearnedRange:
    """One parameter of an orbit with a learned range.

    `name` is that of `learned_ranges`, and `places` are its widths in the vector z of
    hyperparameters: one if both ends are tied, two if they are free.
    """

    name: str
    places: tuple[int, ...]


def learned_parameters(orbit: Orbit) -> list[LearnedRange]:
    """All parameters with learned ranges, in the order of the vector of hyperparameters."""
    names, found, first = iter(orbit.learned_ranges()), [], 0
    for leaf in leaves(orbit):
        own = [next(names) for _ in leaf.learned_ranges()]
        ranges = getattr(leaf, "ranges", None)
        if not isinstance(ranges, UniformRange) or not ranges.learned.any():
            continue
        number = first + ranges.learned.flatten().cumsum(0).view_as(ranges.learned) - 1
        for column, name in enumerate(own[: ranges.learned.shape[1]]):
            places = number[:, column][ranges.learned[:, column]].tolist()
            if places:
                found.append(LearnedRange(name, tuple(places)))
        first += int(ranges.learned.sum())
    return found


def leaves(orbit: Orbit) -> Iterator[Orbit]:
    """The orbits that a composition is made of, in turn."""
    parts = getattr(orbit, "orbits", None)
    if parts is None:
        yield orbit
    else:
        for part in parts:
            yield from leaves(part)


def groups(orbit: Orbit) -> list[tuple[str, Orbit]]:
    """The fixed groups of an orbit, and the orbit without each of them.

    Another part takes the place of a group, so that all others have the draws they had.
    """
    parts = list(leaves(orbit))
    found = []
    for place, part in enumerate(parts):
        if isinstance(part, FiniteOrbit) and part.size > 1:
            others = [*parts[:place], Identity(), *parts[place + 1 :]]
            rest = compose(*others) if len(others) > 1 else others[0]
            found.append((part.describe(), copy.deepcopy(rest)))
    return found


def scaled(z: np.ndarray, places: tuple[int, ...], log_factor: float) -> np.ndarray:
    """z with these widths multiplied."""
    other = z.copy()
    other[list(places)] += log_factor
    return other


def with_width(z: np.ndarray, places: tuple[int, ...], log_width: float) -> np.ndarray:
    """z with these widths."""
    other = z.copy()
    other[list(places)] = log_width
    return other


def split_unit(name: str) -> tuple[str, str]:
    """The name of a range without its unit, and the unit: "rotation (°)" has "°"."""
    words, _, unit = name.partition(" (")
    return words, unit.rstrip(")")


def end_in_words(value: float, unit: str) -> str:
    """One end of a range with its unit."""
    if unit == "×":
        return f"×{value:.2f}"
    number = f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"
    joined = unit in ("°", "%") or unit.startswith("% ")
    shown = number + (unit if joined else f" {unit}" if unit else "")
    return shown.replace("-", "−")
