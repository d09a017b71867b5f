"""The transformations that make sense for images, series, points in space and rows of numbers."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orbitgp.errors import InputError
from orbitgp.evidence.transformations import Transformation
from orbitgp.fit.feature_choice import MIN_LENGTH
from orbitgp.orbits.affine import Affine
from orbitgp.orbits.base import Orbit
from orbitgp.orbits.colour import Colour
from orbitgp.orbits.deformation import LocalDeformation
from orbitgp.orbits.drift import Drift
from orbitgp.orbits.groups import Mirror, PermutationGroup, QuarterTurns, SignFlips
from orbitgp.orbits.intensity import Intensity
from orbitgp.orbits.magnitude import Magnitude
from orbitgp.orbits.names import are_images
from orbitgp.orbits.noise import GaussianNoise
from orbitgp.orbits.points import AXES, Axis, Jitter, PointMirror, PointRotation, Translation
from orbitgp.orbits.random_order import RandomOrder
from orbitgp.orbits.time_affine import TimeAffine
from orbitgp.orbits.time_warp import TimeWarp

KINDS = ("images", "series", "points", "vectors")

MAX_SWAPPED = 8
"""Columns up to which every pair of them is tried."""

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
        *(
            Transformation(name, widths, "intensity", _intensity, (name,), alters="values")
            for name, widths in (("contrast", (0.1, 0.3, 0.8)), ("brightness", (0.03, 0.1, 0.3)))
        ),
        _noise(event_shape),
    ]
    if len(shape) == 3 and shape[0] == 3:
        found += [
            Transformation(name, widths, "colour", _colour, (name,), alters="values")
            for name, widths in (("saturation", (0.1, 0.3, 0.8)), ("hue", (0.1, 0.3, 1.0)))
        ]
    if shape[-1] == shape[-2]:
        turn = Transformation(QUARTER_TURNS, (0,), QUARTER_TURNS, lambda _: QuarterTurns())
        found.insert(0, turn)
    return found


def series_transformations(shape: Sequence[int]) -> list[Transformation]:
    """Of series [T] or [channels, T]; widths of shifts are in samples."""
    length, event_shape = shape[-1], tuple(shape)
    part = tuple(share * length for share in (0.01, 0.03, 0.1, 0.25))

    def time(widths: Mapping[str, float]) -> Orbit:
        return TimeAffine(length, **_symmetric(("shift", "stretch"), widths))

    def cyclic(widths: Mapping[str, float]) -> Orbit:
        high = widths["cyclic shift"]
        return TimeAffine(length, -high, high, outside="cyclic")

    def drift(widths: Mapping[str, float]) -> Orbit:
        return Drift(widths["drift"])

    values: dict[str, Any] = {"alters": "values"}
    return [
        Transformation("cyclic shift", (*part, 0.5 * length), "cyclic", cyclic, ("cyclic shift",)),
        Transformation("shift", part, "time", time, ("shift",)),
        Transformation("stretch", (0.03, 0.1, 0.3), "time", time, ("stretch",)),
        Transformation(
            "warp", (0.1, 0.3), "warp", lambda widths: TimeWarp(length, widths["warp"]), ("speed",)
        ),
        Transformation("scale", (0.05, 0.15, 0.5), "magnitude", _magnitude, ("scale",), **values),
        Transformation("offset", (0.03, 0.1, 0.3), "magnitude", _magnitude, ("offset",), **values),
        Transformation("drift", (0.03, 0.1), "drift", drift, ("drift",), **values),
        _noise(event_shape),
    ]


def point_transformations(shape: Sequence[int], unit: float = 1.0) -> list[Transformation]:
    """Of point sets [A, F], positions first, divided by `unit`, of which widths are parts."""

    def translation(widths: Mapping[str, float]) -> Orbit:
        width = unit * widths["translation"]
        return _in(unit, Translation(-width, width))

    def jitter(widths: Mapping[str, float]) -> Orbit:
        return _in(unit, Jitter(unit * widths["jitter"], num_points=num_points))

    angles, num_points = tuple(math.radians(a) for a in (10, 30, 90, 180)), shape[0]
    return [
        Transformation(
            "rotation",
            angles,
            "rotation",
            lambda widths: PointRotation(widths["rotation"]),
            ("rotation in space",),
        ),
        *(
            Transformation(f"mirror {axis}", (0,), f"mirror {axis}", _point_mirror(axis))
            for axis in AXES
        ),
        Transformation(
            "translation",
            (0.03, 0.1, 0.3),
            "translation",
            translation,
            tuple(f"{axis}-translation" for axis in AXES),
        ),
        Transformation("jitter", (0.01, 0.03), "jitter", jitter, ("jitter",)),
        Transformation("any order", (0,), "any order", lambda _: RandomOrder(num_points)),
    ]


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


def suitable_transformations(
    shape: Sequence[int], kind: str | None = None, *, unit: float = 1.0
) -> list[Transformation]:
    """Those of inputs of this shape and kind, which were divided by `unit`."""
    match checked_kind(shape, kind):
        case "series":
            return series_transformations(shape)
        case "points":
            return point_transformations(shape, unit)
        case "vectors":
            return vector_transformations(shape[0])
    return image_transformations(shape)


def checked_kind(shape: Sequence[int], kind: str | None = None) -> str:
    """What inputs of this shape are; refused, if they cannot be, or may be something else."""
    if kind not in (None, *KINDS):
        raise InputError(f"kind must be one of {', '.join(KINDS)}, or None; got {kind!r:.40}")
    kind = kind or _usual_kind(shape)
    dims = {"images": (2, 3), "series": (1, 2), "points": (2,), "vectors": (1,)}
    if len(shape) not in dims[kind]:
        raise InputError(
            "inputs are images [H, W] or [C, H, W], series [T] or [channels, T], points "
            f"[points, columns], or rows of numbers; got {kind} of shape {list(shape)}: give their "
            "kind, or transformations= of your own"
        )
    return kind


def _usual_kind(shape: Sequence[int]) -> str:
    if len(shape) == 1 and shape[0] >= MIN_LENGTH:
        raise InputError(
            f"rows of {shape[0]} numbers may be series, rows of a table or images: give "
            "kind='series' or kind='vectors', or images as (n, H, W)"
        )
    if len(shape) == 2 and not are_images(shape):
        raise InputError(
            f"inputs of shape {list(shape)} may be images, series of several channels or points "
            "in space: give kind='images', kind='series' or kind='points'"
        )
    return "vectors" if len(shape) == 1 else "images"


def _symmetric(names: Sequence[str], widths: Mapping[str, float]) -> dict[str, Any]:
    """Ranges of these widths to both sides; those without one are frozen at 0."""
    high = [widths.get(name, 0.0) for name in names]
    learned = [name in widths for name in names]
    low = [-end for end in high]
    flags = {"learn_low": learned, "learn_high": learned, "symmetric": True}
    return {"low": low, "high": high, **flags}


def _affine(widths: Mapping[str, float]) -> Orbit:
    own = {part: width for name, width in widths.items() for part in AFFINE[name]}
    return Affine(**_symmetric(Affine.names, own))


def _intensity(widths: Mapping[str, float]) -> Orbit:
    return Intensity(**_symmetric(Intensity.names, widths))


def _colour(widths: Mapping[str, float]) -> Orbit:
    return Colour(**_symmetric(Colour.names, widths))


def _magnitude(widths: Mapping[str, float]) -> Orbit:
    return Magnitude(**_symmetric(Magnitude.names, widths))


def _point_mirror(axis: Axis) -> Callable[[Mapping[str, float]], Orbit]:
    return lambda _: PointMirror(axis)


def _in(unit: float, orbit: Orbit) -> Orbit:
    orbit.measured_in(unit)
    return orbit


def _noise(event_shape: tuple[int, ...]) -> Transformation:
    def noise(widths: Mapping[str, float]) -> Orbit:
        return GaussianNoise(widths["noise"], event_shape=event_shape)

    return Transformation("noise", (0.03, 0.1), "noise", noise, alters="values")


def _local(widths: Mapping[str, float]) -> Orbit:
    return LocalDeformation(widths["local deformation"])
