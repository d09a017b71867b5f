"""Orbits by name, each with the starts that are worth a try."""

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


def starting_orbits(orbit: str | Orbit) -> list[Orbit]:
    """Orbits to start from: a copy of the one given, or those of a name.

    Ranges grow slowly, so those that may have to go far also start far.
    """
    if isinstance(orbit, Orbit):
        return [copy.deepcopy(orbit)]
    match orbit:
        case "none":
            return [Identity()]
        case "affine":
            return [Affine(-0.05, 0.05), Affine(-0.2, 0.2)]
        case "rotation":
            angles = [math.radians(degrees) for degrees in (10, 60, 175)]
            return [Rotation(-angle, angle) for angle in angles]
        case "local":
            return [LocalDeformation(0.02), LocalDeformation(0.05)]
        case "affine+local":
            return [
                compose(Affine(-wide, wide), LocalDeformation(small))
                for wide, small in ((0.05, 0.02), (0.2, 0.05))
            ]
        case "mirror":
            return [Mirror()]
        case "quarter-turns":
            return [QuarterTurns()]
        case "dihedral":
            return [compose(QuarterTurns(), Mirror())]
    raise InputError(
        f"no orbit is called {orbit!r}; choose among {', '.join(NAMES)}, or pass an orbit such as "
        "orbitgp.Affine(-0.1, 0.1)"
    )
