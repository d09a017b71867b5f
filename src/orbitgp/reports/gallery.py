"""Inputs beside others that the model takes for the same: Figure 1 of the paper."""

from dataclasses import dataclass

import numpy as np
import torch
from markupsafe import Markup
from torch import Tensor

from orbitgp.orbits.base import FiniteOrbit, Orbit
from orbitgp.reports.pictures import Kind, limits, picture
from orbitgp.reports.record import Record

NUM_SAMPLES = 8
SEED = 0


@dataclass(frozen=True)
class Shown:
    """An input, and others of its orbit."""

    label: str
    picture: Markup
    others: tuple[Markup, ...]


@dataclass(frozen=True)
class Gallery:
    """Inputs with what the others are, in words; `missing` says why something is not shown."""

    missing: str
    words: str = ""
    shown: tuple[Shown, ...] = ()


def gallery(record: Record) -> Gallery:
    """A row for each example, each input alone, or a sentence where nothing can be shown."""
    if record.examples is None:
        return Gallery("There are no examples in the folder; a run keeps them when it ends.")
    inputs, labels = record.examples
    if record.kind is Kind.OTHER:
        shape = " × ".join(str(length) for length in inputs.shape[1:])
        return Gallery(f"Inputs of {shape} numbers are not drawn; images and series are.")
    orbit = record.fitted and record.fitted.orbit
    points, words, missing = inputs[:, None][:, :0], "", ""
    if orbit is None:
        missing = (
            "The orbit of this run is code of your own, which is not in its files, so that nothing "
            "can be drawn from it here; the inputs alone are shown."
        )
    elif orbit.size == 1:
        missing = "Without an invariance each input stands for itself alone."
    else:
        points, words = draw(orbit, inputs)
    rows = zip(inputs.numpy(), points.numpy(), labels, strict=True)
    return Gallery(missing, words, tuple(_shown(*row) for row in rows))


def draw(orbit: Orbit, inputs: Tensor) -> tuple[Tensor, str]:
    """Points of the orbit of each input, the same whenever asked, and what they are in words."""
    with torch.no_grad():
        if isinstance(orbit, FiniteOrbit) and orbit.size <= NUM_SAMPLES + 1:
            return orbit.enumerate(inputs).points[
                :, 1:
            ], "all others of its orbit. They share one prediction."
        generator = torch.Generator().manual_seed(SEED)
        sample = orbit.sample(inputs, NUM_SAMPLES, generator=generator, group_size=NUM_SAMPLES)
    words = (
        f"{NUM_SAMPLES} random draws from its orbit. The prediction for the input is a mean over "
        "such draws."
    )
    return sample.points, words


def _shown(x: np.ndarray, around: np.ndarray, label: object) -> Shown:
    low, high = limits(np.concatenate([x[None], around]))
    others = tuple(picture(point, low, high) for point in around)
    name = _label(label)
    return Shown(name, picture(x, low, high, words="" if others else name), others)


def _label(label: object) -> str:
    values = label if isinstance(label, list) else [label]
    return ", ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in values)
