"""Orbits by name."""

import copy
import math
from collections.abc import Sequence
from typing import Literal

from orbitgp.errors import InputError
from orbitgp.orbits.affine import Affine, Rotation
from orbitgp.orbits.base import Identity, Orbit
from orbitgp.orbits.colour import Colour
from orbitgp.orbits.compose import compose
from orbitgp.orbits.crop import Crop
from orbitgp.orbits.deformation import LocalDeformation
from orbitgp.orbits.drift import Drift
from orbitgp.orbits.groups import Mirror, QuarterTurns
from orbitgp.orbits.intensity import Intensity
from orbitgp.orbits.magnitude import Magnitude
from orbitgp.orbits.points import PointRotation, Translation
from orbitgp.orbits.time_affine import SMALL_SHIFT, TimeAffine, time_shift
from orbitgp.orbits.time_warp import TimeWarp
from orbitgp.orbits.window import Window

IMAGES = (
    *("affine", "rotation", "local", "crop", "colour"),
    *("mirror", "quarter-turns", "dihedral"),
)
SERIES = ("time-shift", "cyclic-shift", "time-warp", "window", "magnitude", "drift")
POINTS = ("rotation-3d", "translation-3d")
NAMES = ("none", *IMAGES, *SERIES, *POINTS)

Kind = Literal["images", "series", "points", "any"]

MAX_COLUMNS, MAX_RATIO = 5, 2
"""Columns up to which inputs may be points, and the ratio of sides up to which they are images."""


def starting_orbit(orbit: str | Orbit, shape: Sequence[int]) -> Orbit:
    """Return a copy of the orbit that is given, or the one of a name for inputs of this shape.

    Names that are joined by + are composed, the first one first. Ranges are found from any start.
    """
    if isinstance(orbit, Orbit):
        return copy.deepcopy(orbit)
    _check_shape(orbit, shape)
    parts = [_named(name, shape) for name in orbit.split("+")]
    return compose(*parts) if len(parts) > 1 else parts[0]


def kind_of(orbit: str | Orbit) -> Kind:
    """Return the kind of inputs that an orbit acts on, if its name or its class tells."""
    if isinstance(orbit, Orbit):
        return "images" if orbit.needs_images else "any"
    names = orbit.split("+")
    kinds: list[Kind] = [_kind_of_name(name) for name in names]
    if len(names) > 1 and "none" in names:
        raise InputError(f"none is no part of a composition; got {orbit!r}")
    for other, kind in zip(names, kinds, strict=True):
        if kind != kinds[0]:
            raise InputError(
                f"{names[0]!r} acts on {kinds[0]} and {other!r} on {kind}; an orbit acts on one "
                f"kind of inputs: leave one of them out of {orbit!r}"
            )
    return kinds[0]


def are_images(shape: Sequence[int]) -> bool:
    """Return whether inputs [H, W] or [C, H, W] of this shape are hardly anything but images."""
    if len(shape) != 2:
        return len(shape) == 3
    return min(shape) > MAX_COLUMNS and max(shape) <= MAX_RATIO * min(shape)


def _kind_of_name(name: str) -> Kind:
    if name in IMAGES:
        return "images"
    if name in SERIES:
        return "series"
    if name in POINTS:
        return "points"
    if name == "none":
        return "any"
    raise InputError(
        f"no orbit is called {name!r}; choose among {', '.join(NAMES)}, join several by +, as in "
        "'mirror+affine', or pass an orbit such as orbitgp.Affine(-0.1, 0.1)"
    )


def _check_shape(name: str, shape: Sequence[int]) -> None:
    """Refuse inputs of a kind that the name is not made for, where their shape tells."""
    kind, given = kind_of(name), list(shape)
    if kind == "images" and len(given) < 2:
        raise InputError(f"{name!r} acts on images [H, W] or [C, H, W]; got inputs {given}")
    if kind == "series" and are_images(given):
        raise InputError(
            f"{name!r} acts on series [T] or [channels, T]; got inputs {given}, which look like "
            f"images: if they are series, pass an orbit such as orbitgp.TimeAffine({given[-1]})"
        )
    if kind == "points" and (len(given) != 2 or given[-1] < 3):
        raise InputError(
            f"{name!r} acts on points [points, 3 or more columns], positions first; got inputs "
            f"{given}"
        )


def _named(name: str, shape: Sequence[int]) -> Orbit:
    match _kind_of_name(name):
        case "images":
            return _of_images(name)
        case "series":
            return _of_series(name, shape[-1])
        case "points":
            return PointRotation() if name == "rotation-3d" else Translation()
    return Identity()


def _of_images(name: str) -> Orbit:
    match name:
        case "affine":
            return Affine(-0.05, 0.05)
        case "rotation":
            return Rotation(-math.radians(10), math.radians(10))
        case "local":
            return LocalDeformation(0.02)
        case "crop":
            return Crop()
        case "colour":
            return compose(Intensity(), Colour())
        case "mirror":
            return Mirror()
        case "quarter-turns":
            return QuarterTurns()
    return compose(QuarterTurns(), Mirror())


def _of_series(name: str, length: int) -> Orbit:
    match name:
        case "time-shift":
            return time_shift(length, SMALL_SHIFT * length)
        case "cyclic-shift":
            return TimeAffine(length, outside="cyclic")
        case "time-warp":
            return compose(TimeAffine(length), TimeWarp(length))
        case "window":
            return Window(length)
        case "magnitude":
            return Magnitude()
    return Drift()
