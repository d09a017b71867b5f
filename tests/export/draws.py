"""A program that was exported, run; and its draws as the noise that leads an orbit to them."""

import math

import numpy as np
import torch

from orbitgp import (
    Affine,
    CyclicShifts,
    GaussianNoise,
    Identity,
    Intensity,
    LocalDeformation,
    Mirror,
    QuarterTurns,
    Rotation,
    export_policy,
)
from orbitgp.orbits.base import UNIT, FiniteOrbit
from orbitgp.orbits.compose import parts_of

AFFINE = ("rotation", "x_scale", "y_scale", "shear", "x_shift", "y_shift")
INTENSITY = ("contrast", "brightness")


def run(orbit, library):
    """What the file defines."""
    names = {"__name__": "policy"}
    exec(compile(export_policy(orbit, library).source, "policy.py", "exec"), names)
    return names


def transformed(names, library, images):
    """Images [N, C, H, W] by the transform that the file defines, and its draws [N, ...]."""
    transform = names["LearnedAugmentation"]()
    if library == "torchvision":
        params = transform.make_params([images])
        return transform.transform(images, params), params["draws"]
    return transform(images), transform._params


def many_draws(names, count, shape=(1, 4, 4)):
    """Draws alone, for images [C, H, W]."""
    return names["draw_all"]((count, *shape))


def noise_of(orbit, draws):
    """The noise [N, K] with which the orbit makes the same points."""
    parts = [leaf for leaf in parts_of(orbit) if not isinstance(leaf, Identity)]
    columns = [
        own_noise(part, lambda name, place=place: draws[f"{place}_{name}"].double())
        for place, part in enumerate(parts)
    ]
    if not isinstance(orbit, FiniteOrbit):
        return torch.cat(columns, -1)
    factors = np.cumprod([1, *(int(part.size) for part in parts)])
    return sum(factor * column for factor, column in zip(factors, columns, strict=False))


def own_noise(part, drawn):
    """That of one part, by the names of its draws."""
    match part:
        case Affine() | Rotation():
            found = [drawn(name) for name in AFFINE[: part.noise_size]]
            own = [torch.deg2rad, torch.log, torch.log, lambda h: h, lambda t: t / 50]
            values = [f(v) for f, v in zip([*own, own[-1]], found, strict=False)]
            return unit(part.ranges, torch.stack(values, -1))
        case Intensity():
            contrast, brightness = (drawn(name) for name in INTENSITY)
            return unit(part.ranges, torch.stack([contrast.log(), brightness], -1))
        case Mirror():
            return drawn("mirrored")[:, None]
        case QuarterTurns():
            return drawn("turns")[:, None]
        case CyclicShifts():
            return drawn("shift")[:, None] / part.step
        case GaussianNoise():
            return uniform(drawn("normal").flatten(1))
        case LocalDeformation():
            orders = torch.arange(part.num_frequencies, dtype=torch.float64) * math.pi / 2
            place = (orders[:, None].square() + orders.square()).flatten().argsort(stable=True)
            return uniform(drawn("normal").flatten(2)[..., place].mT.flatten(1))
    raise AssertionError(part)


def unit(ranges, values):
    """Where values are between the ends; the middle, where there is no room."""
    low, high = ranges.low.detach().double(), ranges.high.detach().double()
    width = high - low
    return torch.where(width > 0, (values - low) / width.clamp(min=1e-12), 0.5)


def uniform(normal):
    """The uniforms that become these normal numbers."""
    return torch.special.ndtr(normal) - 0.5 / UNIT
