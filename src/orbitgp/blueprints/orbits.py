"""Orbits, and the priors of their ranges."""

import math
from typing import Any

import torch
from torch import distributions

from orbitgp.blueprints.checks import GIVEN, Config, Tensors, integer, refuse
from orbitgp.orbits.affine import Affine, Rotation
from orbitgp.orbits.base import Identity, Orbit
from orbitgp.orbits.blur import Blur
from orbitgp.orbits.colour import Colour
from orbitgp.orbits.compose import Composition, FiniteComposition, compose, parts_of
from orbitgp.orbits.crop import Crop
from orbitgp.orbits.deformation import MAX_FREQUENCIES, LocalDeformation
from orbitgp.orbits.drift import Drift
from orbitgp.orbits.groups import CyclicShifts, Mirror, PermutationGroup, QuarterTurns, SignFlips
from orbitgp.orbits.intensity import Intensity
from orbitgp.orbits.magnitude import Magnitude
from orbitgp.orbits.noise import GaussianNoise
from orbitgp.orbits.points import AXES, Jitter, PointMirror, PointRotation, Translation
from orbitgp.orbits.random_order import RandomOrder
from orbitgp.orbits.ranged import RangedOrbit
from orbitgp.orbits.ranges import UniformRange
from orbitgp.orbits.resample import OUTSIDE
from orbitgp.orbits.time_affine import TimeAffine
from orbitgp.orbits.time_warp import TimeWarp
from orbitgp.orbits.window import Window
from orbitgp.sealed import within

ORBITS = (
    *(Identity, QuarterTurns, Mirror, CyclicShifts, PermutationGroup, SignFlips, GaussianNoise),
    *(Affine, Rotation, Crop, LocalDeformation, Intensity, Colour, Blur),
    *(TimeAffine, TimeWarp, Window, Magnitude, Drift),
    *(PointRotation, PointMirror, Translation, Jitter, RandomOrder),
    *(Composition, FiniteComposition),
)
MAX_NOISE = 4096
"""Numbers of noise that a draw may take by what a file says."""

MAX_PARTS = 64
"""Orbits in a composition, by what a file says."""

PRIORS = ("Exponential", "Gamma", "HalfCauchy", "HalfNormal", "LogNormal", "Normal", "Uniform")


def orbit_config(orbit: Orbit) -> Config:
    """The structure of an orbit."""
    kind = type(orbit)
    if kind not in ORBITS:  # a user's own class, even one derived from ours
        return GIVEN
    if isinstance(orbit, Composition | FiniteComposition):
        parts = [orbit_config(part) for part in parts_of(orbit)]
        plain = len(parts) <= MAX_PARTS and GIVEN not in parts
        return {"kind": "compose", "parts": parts} if plain else GIVEN
    if isinstance(orbit, Mirror):
        return {"kind": "Mirror", "dim": orbit.dim}
    if isinstance(orbit, CyclicShifts):
        fields = {"length": orbit.length, "step": orbit.step, "dim": orbit.dim}
        return {"kind": "CyclicShifts", **fields}
    if isinstance(orbit, PermutationGroup):
        return {
            "kind": "PermutationGroup",
            "generators": [list(g) for g in orbit.generators],
            "dim": orbit.dim,
        }
    if isinstance(orbit, SignFlips):
        return {"kind": "SignFlips", "coordinates": list(orbit.coordinates)}
    if isinstance(orbit, GaussianNoise):
        shape = list(orbit.event_shape)
        return {"kind": "GaussianNoise", "event_shape": shape, "learnable": orbit.learnable}
    if isinstance(orbit, PointMirror):
        return {"kind": "PointMirror", "axis": orbit.axis}
    if isinstance(orbit, RandomOrder):
        spread = None if math.isinf(orbit.spread) else orbit.spread
        return {
            "kind": "RandomOrder",
            "length": orbit.length,
            "spread": spread,
            "pairs": orbit.pairs,
        }
    if isinstance(orbit, RangedOrbit | LocalDeformation):
        return _ranged_config(orbit)
    return {"kind": kind.__name__}


def _ranged_config(orbit: RangedOrbit | LocalDeformation) -> Config:
    prior = _prior_config(orbit.ranges.prior)
    fields = {"kind": type(orbit).__name__, "prior": prior}
    if isinstance(orbit, LocalDeformation):
        fields |= {"num_frequencies": orbit.num_frequencies, "tangent": orbit.tangent}
        fields["learn_width"] = orbit.raw_width.requires_grad
    else:
        fields |= orbit.settings
    return GIVEN if prior == GIVEN else fields


def orbit_from(config: Config, tensors: Tensors) -> Orbit:
    """The orbit with this structure; its numbers are filled in later."""
    match config["kind"]:
        case "compose":
            parts = config["parts"]
            if len(parts) > MAX_PARTS or any(part["kind"] == "compose" for part in parts):
                refuse(f"a composition of {len(parts)} orbits, or one inside another")
            inner = [within(tensors, f"orbits.{place}") for place in range(len(parts))]
            return compose(*(orbit_from(*part) for part in zip(parts, inner, strict=True)))
        case "Identity":
            return Identity()
        case "QuarterTurns":
            return QuarterTurns()
        case "Mirror":
            return Mirror(integer(config["dim"]))
        case "CyclicShifts":
            length, step, dim = (integer(config[name]) for name in ("length", "step", "dim"))
            return CyclicShifts(length, step=step, dim=dim)
        case "PermutationGroup":
            generators = [[integer(i) for i in row] for row in config["generators"]]
            return PermutationGroup(*generators, dim=integer(config["dim"]))
        case "SignFlips":
            return SignFlips(*(integer(coordinate) for coordinate in config["coordinates"]))
        case "GaussianNoise":
            shape = tuple(integer(length) for length in config["event_shape"])
            raw = tensors["raw_scale"]
            scale = torch.ones(raw.shape)
            learnable = config["learnable"] is True
            return GaussianNoise(scale, event_shape=shape, learnable=learnable).to(raw.dtype)
        case "PointMirror":
            return PointMirror(_choice(config["axis"], AXES))
        case "RandomOrder":
            spread = math.inf if config["spread"] is None else float(config["spread"])
            length = _count(config["length"])
            return RandomOrder(length, spread=spread, pairs=config["pairs"] is True)
    orbit = _ranged_from(config, tensors)
    limit = orbit.ranges.limit.tolist()
    orbit.ranges = _ranges_from(config["prior"], within(tensors, "ranges"), limit)
    return orbit


def _ranged_from(config: Config, tensors: Tensors) -> RangedOrbit | LocalDeformation:
    """An orbit whose ranges are filled in later."""
    match config["kind"]:
        case "Affine":
            return Affine()
        case "Rotation":
            return Rotation()
        case "Crop":
            return Crop()
        case "Intensity":
            return Intensity()
        case "Colour":
            return Colour()
        case "Blur":
            return Blur()
        case "Magnitude":
            return Magnitude()
        case "LocalDeformation":
            return _deformation_from(config, tensors)
        case "TimeAffine":
            outside, rate = _choice(config["outside"], OUTSIDE), config["sampling_rate"]
            rate = None if rate is None else float(rate)
            return TimeAffine(_count(config["length"]), outside=outside, sampling_rate=rate)
        case "TimeWarp":
            frequencies = _count(config["num_frequencies"])
            return TimeWarp(_count(config["length"]), num_frequencies=frequencies)
        case "Window":
            return Window(_count(config["length"]))
        case "Drift":
            return Drift(num_frequencies=_count(config["num_frequencies"]))
        case "PointRotation":
            axis = None if config["axis"] is None else _choice(config["axis"], AXES)
            return PointRotation(axis=axis)
        case "Translation":
            return Translation(mask=_mask(config["mask"]))
        case "Jitter":
            return Jitter(num_points=_count(config["num_points"]), mask=_mask(config["mask"]))
    refuse(f"an orbit of kind {config['kind']!r}")


def _deformation_from(config: Config, tensors: Tensors) -> LocalDeformation:
    count = integer(config["num_frequencies"])
    if not 1 <= count <= MAX_FREQUENCIES:
        refuse(f"a deformation of {count} frequencies")
    orbit = LocalDeformation(
        num_frequencies=count,
        tangent=config["tangent"] is True,
        learn_width=config["learn_width"] is True,
    )
    return orbit.to(tensors["raw_width"].dtype)


def _count(value: object) -> int:
    count = integer(value)
    if not 1 <= count <= MAX_NOISE:
        refuse(f"an orbit of {count} numbers")
    return count


def _mask(value: object) -> int | None:
    return None if value is None else integer(value)


def _choice(value: object, choices: tuple[Any, ...]) -> Any:
    if value not in choices:
        refuse(f"{value!r:.40}, where one of {', '.join(choices)} was expected")
    return value


def _ranges_from(prior: Config | None, tensors: Tensors, limit: list[float]) -> UniformRange:
    symmetric, size = tensors["raw"].shape[0] == 1, tensors["raw"].shape[1]
    if size != len(limit):
        refuse(f"{size} ranges where {len(limit)} are needed")
    high = [min(1.0, end) for end in limit]  # until the numbers are filled in
    low = [-end for end in high]
    ranges = UniformRange(low, high, symmetric=symmetric, limit=limit, prior=_prior_from(prior)).to(
        tensors["raw"].dtype
    )
    return ranges.requires_grad_(bool(tensors["learned"].any()))


def _prior_config(prior: distributions.Distribution | None) -> Config | None:
    if prior is None:
        return None
    name = type(prior).__name__
    if name not in PRIORS or type(prior) is not getattr(distributions, name):
        return GIVEN
    values = {key: getattr(prior, key).tolist() for key in prior.arg_constraints}
    return {"kind": name, "parameters": values}


def _prior_from(config: Config | None) -> distributions.Distribution | None:
    if config is None:
        return None
    if config["kind"] not in PRIORS:
        refuse(f"a prior of kind {config['kind']!r}")
    values = {key: torch.as_tensor(value) for key, value in config["parameters"].items()}
    return getattr(distributions, config["kind"])(**values)
