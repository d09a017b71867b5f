"""Orbits by name."""

import copy
import math
from collections.abc import Sequence

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


def starting_orbit(orbit: str | Orbit, shape: Sequence[int]) -> Orbit:
    """A copy of the orbit that is given, or the one of a name for inputs of this shape.

    Names that are joined by + are composed, the first one first. Ranges are found from any start.
    """
    if isinstance(orbit, Orbit):
        return copy.deepcopy(orbit)
    parts = orbit.split("+")
    if len(parts) == 1:
        return _named(orbit, shape)
    if "none" in parts:
        raise InputError(f"none is no part of a composition; got {orbit!r}")
    return compose(*(_named(part, shape) for part in parts))


def _named(orbit: str, shape: Sequence[int]) -> Orbit:
    if orbit == "none":
        return Identity()
    if orbit in IMAGES:
        return _of_images(orbit)
    if orbit in SERIES:
        return _of_series(orbit, shape[-1])
    if orbit in POINTS:
        return PointRotation() if orbit == "rotation-3d" else Translation()
    raise InputError(
        f"no orbit is called {orbit!r}; choose among {', '.join(NAMES)}, join several by +, as in "
        "'mirror+affine', or pass an orbit such as orbitgp.Affine(-0.1, 0.1)"
    )


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
