"""Orbits by name."""

import copy
import math

from orbitgp.errors import InputError
from orbitgp.orbits.affine import Affine, Rotation
from orbitgp.orbits.base import Identity, Orbit
from orbitgp.orbits.compose import compose
from orbitgp.orbits.deformation import LocalDeformation
from orbitgp.orbits.groups import Mirror, QuarterTurns

NAMES = (
    *("none", "affine", "rotation", "local", "affine+local"),
    *("mirror", "quarter-turns", "dihedral"),
)


def starting_orbit(orbit: str | Orbit) -> Orbit:
    """A copy of the orbit that is given, or the one of a name; its ranges are found from any."""
    if isinstance(orbit, Orbit):
        return copy.deepcopy(orbit)
    match orbit:
        case "none":
            return Identity()
        case "affine":
            return Affine(-0.05, 0.05)
        case "rotation":
            return Rotation(-math.radians(10), math.radians(10))
        case "local":
            return LocalDeformation(0.02)
        case "affine+local":
            return compose(Affine(-0.05, 0.05), LocalDeformation(0.02))
        case "mirror":
            return Mirror()
        case "quarter-turns":
            return QuarterTurns()
        case "dihedral":
            return compose(QuarterTurns(), Mirror())
    raise InputError(
        f"no orbit is called {orbit!r}; choose among {', '.join(NAMES)}, or pass an orbit such as "
        "orbitgp.Affine(-0.1, 0.1)"
    )
