"""The steps that an orbit consists of, with the numbers that it has now."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from orbitgp.export.step import Parameter, Step
from orbitgp.orbits.affine import Affine, Rotation
from orbitgp.orbits.base import Identity, Orbit
from orbitgp.orbits.compose import Composition, FiniteComposition, parts_of
from orbitgp.orbits.deformation import FIELDS, LocalDeformation
from orbitgp.orbits.groups import CyclicShifts, Mirror, PermutationGroup, QuarterTurns, SignFlips
from orbitgp.orbits.intensity import Intensity
from orbitgp.orbits.noise import GaussianNoise
from orbitgp.orbits.points import PointMirror
from orbitgp.orbits.random_order import RandomOrder
from orbitgp.orbits.ranged import Quantity, RangedOrbit
from orbitgp.orbits.ranges import Range

OWN = "your own orbit"
"""The kind of a step whose code is not ours."""

AXES = {-1: "horizontal", -2: "vertical"}


def steps_of(orbit: Orbit) -> list[Step]:
    """In the order in which they are applied; a class derived from one of these is unknown."""
    kind = type(orbit)
    if kind is Identity:
        return []
    if isinstance(orbit, Composition | FiniteComposition):
        return [step for part in parts_of(orbit) for step in steps_of(part)]
    if isinstance(orbit, Affine | Rotation) and kind in (Affine, Rotation):
        return [Step("affine", _quantities(orbit))]
    if isinstance(orbit, Intensity) and kind is Intensity:
        return [Step("intensity", _quantities(orbit))]
    if isinstance(orbit, LocalDeformation) and kind is LocalDeformation:
        return [_deformation(orbit)]
    if isinstance(orbit, GaussianNoise) and kind is GaussianNoise:
        return [_noise(orbit)]
    if isinstance(orbit, RangedOrbit) and kind.__module__.startswith("orbitgp.orbits."):
        return [Step(_name_of(orbit), _quantities(orbit), _settings(orbit.settings))]
    return [_group(orbit)]


def _group(orbit: Orbit) -> Step:
    """Finite groups; what is unknown is the user's."""
    kind = type(orbit)
    if isinstance(orbit, Mirror) and kind is Mirror:
        mirrored = Parameter("mirrored", "", "choice", (0, 1))
        return Step("mirror", (mirrored,), (("axis", _axis(orbit.dim)),))
    if kind is QuarterTurns:
        return Step("quarter turns", (Parameter("turn", "°", "choice", (0, 90, 180, 270)),))
    if isinstance(orbit, CyclicShifts) and kind is CyclicShifts:
        places = tuple(range(0, orbit.length, orbit.step))
        settings = (("length", orbit.length), ("step", orbit.step), ("axis", _axis(orbit.dim)))
        return Step("cyclic shifts", (Parameter("shift", "pixels", "choice", places),), settings)
    if isinstance(orbit, PermutationGroup) and kind is PermutationGroup:
        element = Parameter("element", "", "choice", tuple(range(int(orbit.size))))
        settings = (("generators", orbit.generators), ("axis", orbit.dim))
        return Step("permutations", (element,), settings)
    if isinstance(orbit, SignFlips) and kind is SignFlips:
        element = Parameter("element", "", "choice", tuple(range(int(orbit.size))))
        return Step("sign flips", (element,), (("coordinates", tuple(orbit.coordinates)),))
    if isinstance(orbit, PointMirror) and kind is PointMirror:
        mirrored = Parameter("mirrored", "", "choice", (0, 1))
        return Step(_name_of(orbit), (mirrored,), (("along", orbit.axis),))
    if isinstance(orbit, RandomOrder) and kind is RandomOrder:
        any_order = math.isinf(orbit.spread)
        spread = () if any_order else (Parameter("norm", "", "normal", _plain([orbit.spread])),)
        settings = {"length": orbit.length, "pairs": orbit.pairs}
        return Step(_name_of(orbit), spread, _settings(settings))
    return Step(OWN)


def _name_of(orbit: Orbit) -> str:
    """PointMirror is a "point mirror"."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", type(orbit).__name__).lower()


def _settings(settings: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, value) for name, value in settings.items() if value is not None)


def _quantities(orbit: RangedOrbit) -> tuple[Parameter, ...]:
    """The ranges that are used, each with its distribution."""
    used = zip(orbit.quantities, orbit.learned_ranges(), orbit.ranges.used, strict=True)
    return tuple(_parameter(quantity, found) for quantity, found, is_used in used if is_used)


def _parameter(quantity: Quantity, found: Range) -> Parameter:
    """Factors are uniform in their logarithm; of a normal quantity, the end is a deviation."""
    if quantity.normal:
        return Parameter(found.name, found.unit, "normal", _plain([found.high]))
    distribution = "log-uniform" if found.logarithmic else "uniform"
    return Parameter(found.name, found.unit, distribution, _plain([found.low, found.high]))


def _deformation(orbit: LocalDeformation) -> Step:
    *fields, smooth = orbit.learned_ranges()
    parameters = (
        *map(_parameter, FIELDS, fields),
        Parameter(smooth.name, smooth.unit, "fixed", _plain([smooth.high])),
    )
    settings = (("num_frequencies", orbit.num_frequencies), ("first_order", orbit.tangent))
    return Step("local deformation", parameters, settings)


def _noise(orbit: GaussianNoise) -> Step:
    """One standard deviation, or one for each number of an input of the shape."""
    low, high = orbit.scale.min().item(), orbit.scale.max().item()
    if low == high:
        return Step("noise", (Parameter("deviation", "", "normal", _plain([low])),))
    whole = orbit.scale.detach().expand(orbit.event_shape).flatten().tolist()
    shape = (("shape", tuple(orbit.event_shape)),)
    return Step("noise", (Parameter("deviation", "", "normal", _plain(whole)),), shape)


def _axis(dim: int) -> str | int:
    """Of an image, if it is one; the first axis may be that of channels or that of rows."""
    return AXES.get(dim, dim)


def _plain(numbers: Sequence[float]) -> tuple[float, ...]:
    """Six digits, as many as rounding in float32 leaves; no −0."""
    return tuple(float(f"{number:.6g}") + 0.0 for number in numbers)
