"""The transformations that make sense for a kind of data, and orbits that are made of them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from orbitgp.errors import InputError
from orbitgp.evidence.ranges import composed, leaves
from orbitgp.orbits.affine import Affine
from orbitgp.orbits.base import FiniteOrbit, Identity, Orbit
from orbitgp.orbits.deformation import LocalDeformation
from orbitgp.orbits.groups import Mirror, PermutationGroup, QuarterTurns, SignFlips
from orbitgp.orbits.intensity import Intensity
from orbitgp.orbits.noise import GaussianNoise

MAX_CHECKED = 64
"""Points up to which a group is checked to be one."""

MAX_SWAPPED = 8
"""Columns up to which every pair of them is tried."""


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


AFFINE = {
    "rotation": ("rotation",),
    "scale": ("x-scale", "y-scale"),
    "shear": ("shear",),
    "shift": ("x-shift", "y-shift"),
}
"""The parameters of an affine transformation that go together."""

QUARTER_TURNS = "quarter turns"


def image_transformations(shape: Sequence[int]) -> list[Transformation]:
    """Of images [H, W] or [C, H, W]; quarter turns if they are square."""
    turns = tuple(math.radians(angle) for angle in (5, 15, 45, 90, 180))
    event_shape = tuple(shape)
    found = [
        Transformation("horizontal mirror", (0,), "horizontal mirror", lambda _: Mirror(-1)),
        Transformation("vertical mirror", (0,), "vertical mirror", lambda _: Mirror(-2)),
        *(
            Transformation(name, widths, "affine", _affine, AFFINE[name], tuple(contained))
            for name, widths, *contained in (
                ("rotation", turns, QUARTER_TURNS),
                ("scale", (0.05, 0.15, 0.4)),
                ("shear", (0.05, 0.15, 0.4)),
                ("shift", (0.05, 0.12, 0.25, 0.5)),
            )
        ),
        Transformation("local deformation", (0.02, 0.06), "local", _local, LocalDeformation.names),
        Transformation("contrast", (0.1, 0.3, 0.8), "intensity", _intensity, ("contrast",)),
        Transformation("brightness", (0.03, 0.1, 0.3), "intensity", _intensity, ("brightness",)),
        Transformation(
            "noise",
            (0.03, 0.1),
            "noise",
            lambda widths: GaussianNoise(widths["noise"], event_shape=event_shape),
        ),
    ]
    if shape[-1] == shape[-2]:
        turn = Transformation(QUARTER_TURNS, (0,), QUARTER_TURNS, lambda _: QuarterTurns())
        found.insert(0, turn)
    return found


def vector_transformations(num_columns: int) -> list[Transformation]:
    """Of rows of numbers: swaps and signs of columns, and cyclic shifts."""
    everything = tuple(range(num_columns))
    columns = range(num_columns if num_columns <= MAX_SWAPPED else 0)
    generators = {
        f"swap of columns {first} and {second}": swapped(everything, first, second)
        for second in columns
        for first in range(second)
    }
    if num_columns > 2:
        generators["cyclic shift"] = (*everything[1:], 0)
    signs = {f"sign of column {column}": column for column in columns}

    def permutations(widths: Mapping[str, float]) -> Orbit:
        """The group that all of them generate."""
        return PermutationGroup(*(generators[name] for name in widths))

    def flips(widths: Mapping[str, float]) -> Orbit:
        return SignFlips(*(signs[name] for name in widths))

    return [
        *(Transformation(name, (0,), "permutations", permutations) for name in generators),
        *(Transformation(name, (0,), "signs", flips) for name in signs),
    ]


def swapped(places: tuple[int, ...], first: int, second: int) -> tuple[int, ...]:
    """Two of them exchanged."""
    exchanged = {first: second, second: first}
    return tuple(exchanged.get(place, place) for place in places)


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
    finite = [part for part in leaves(orbit_of(chosen)) if isinstance(part, FiniteOrbit)]
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


def kind_of(shape: Sequence[int]) -> list[Transformation]:
    """Those that suit inputs of this shape."""
    if len(shape) == 1:
        return vector_transformations(shape[0])
    if len(shape) in (2, 3):
        return image_transformations(shape)
    raise InputError(
        f"inputs are images [H, W] or [C, H, W], or rows of numbers; got shape {list(shape)}: pass "
        "transformations= of your own"
    )


def _affine(widths: Mapping[str, float]) -> Orbit:
    own = {part: width for name, width in widths.items() for part in AFFINE[name]}
    high = [own.get(name, 0.0) for name in Affine.names]
    learned = [name in own for name in Affine.names]
    low = [-end for end in high]
    return Affine(low, high, learn_low=learned, learn_high=learned, symmetric=True)


def _intensity(widths: Mapping[str, float]) -> Orbit:
    high = [widths.get(name, 0.0) for name in Intensity.names]
    learned = [name in widths for name in Intensity.names]
    low = [-end for end in high]
    return Intensity(low, high, learn_low=learned, learn_high=learned, symmetric=True)


def _local(widths: Mapping[str, float]) -> Orbit:
    return LocalDeformation(widths["local deformation"])
