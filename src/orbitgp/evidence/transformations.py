"""The transformations that make sense for a kind of data, and orbits that are made of them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from orbitgp.evidence.ranges import composed
from orbitgp.orbits.base import FiniteOrbit, Identity, Orbit
from orbitgp.orbits.compose import parts_of

MAX_CHECKED = 64
"""Points up to which a group is checked to be one."""


@dataclass(frozen=True)
class Transformation:
    """Something that may leave labels as they are, for `discover` to choose from.

    Parameters
    ----------
    name : str
        What it is called.
    widths : tuple of float
        Those to try; (0,) for a fixed group.
    family : str
        Transformations of the same family are parts of one orbit.
    make : callable
        Builds that orbit from a mapping of the names of the family to their widths.
    ranges : tuple of str, default=()
        The names of its learned ranges; without any, the orbit is taken or left as a whole.
    contains : tuple of str, default=()
        Groups that are part of it if it is at least half as wide as it can be, and would only be
        more draws of the same beside it.
    alters : {"places", "values"}, default="places"
        Whether values are moved, or changed where they are. Features that normalise contrast hardly
        see the latter.

    Examples
    --------
    >>> from orbitgp import Mirror, Transformation
    >>> mirror = Transformation("mirror", (0,), "mirror", lambda widths: Mirror())
    >>> mirror.make({"mirror": 0}).size
    2
    """

    name: str
    widths: tuple[float, ...]
    family: str
    make: Callable[[Mapping[str, float]], Orbit]
    ranges: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    alters: Literal["places", "values"] = "places"


def orbit_of(chosen: Mapping[Transformation, float]) -> Orbit:
    """The orbit of these transformations with these widths, groups first."""
    families: dict[str, dict[str, float]] = {}
    makers = {}
    for part, width in chosen.items():
        families.setdefault(part.family, {})[part.name] = width
        makers[part.family] = part.make
    parts = [makers[family](widths) for family, widths in families.items()]
    if not parts:
        return Identity()
    parts.sort(key=lambda part: not isinstance(part, FiniteOrbit))
    return composed(parts)


def is_contained(part: Transformation, chosen: Mapping[Transformation, float]) -> bool:
    """Whether one of those that were chosen does all that this one does."""
    return any(
        part.name in other.contains and width >= other.widths[-1] / 2
        for other, width in chosen.items()
    )


def is_closed(chosen: Mapping[Transformation, float], shape: Sequence[int]) -> bool:
    """Whether the groups among them make a group together.

    Otherwise an average over their points is no invariance: a swap of two columns and the sign of
    one of them would need that of the other, too.
    """
    finite = [part for part in parts_of(orbit_of(chosen)) if isinstance(part, FiniteOrbit)]
    group = composed(finite) if finite else Identity()
    if not isinstance(group, FiniteOrbit) or len(finite) < 2 or group.size > MAX_CHECKED:
        return True
    x = torch.arange(1.0, 1 + math.prod(shape)).view(1, *shape)
    points = group.enumerate(x).points[0]
    once = {tuple(point) for point in points.flatten(1).tolist()}
    twice = {
        tuple(point) for point in group.enumerate(points).points.flatten(0, 1).flatten(1).tolist()
    }
    return once == twice
