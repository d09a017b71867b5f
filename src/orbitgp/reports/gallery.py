"""Inputs beside others that the model takes for the same: Figure 1 of the paper."""

import numpy as np
import torch
from torch import Tensor

from orbitgp.orbits.base import FiniteOrbit, Orbit
from orbitgp.reports.pictures import Kind, limits, picture
from orbitgp.reports.record import Record
from orbitgp.reports.words import safe

NUM_SAMPLES = 8
SEED = 0


def gallery(record: Record) -> str:
    """A row for each example; a sentence where nothing can be shown."""
    body = _body(record)
    return f'<section id="orbits"><h2>Inputs and their orbits</h2>{body}</section>'


def _body(record: Record) -> str:
    if record.examples is None:
        return _missing("There are no examples in the folder; a run keeps them when it ends.")
    inputs, labels = record.examples
    if record.kind is Kind.OTHER:
        shape = " × ".join(str(length) for length in inputs.shape[1:])
        return _missing(f"Inputs of {shape} numbers are not drawn; images and series are.")
    orbit = record.fitted and record.fitted.orbit
    if orbit is None:
        return _missing(
            "The orbit of this run is code of your own, which is not in its files, so that nothing "
            "can be drawn from it here; the inputs alone are shown."
        ) + _inputs_alone(inputs, labels, record.kind)
    if orbit.size == 1:
        return _missing(
            "Without an invariance each input stands for itself alone."
        ) + _inputs_alone(inputs, labels, record.kind)
    points, words = draw(orbit, inputs)
    rows = "".join(
        _row(x, around, label, record.kind)
        for x, around, label in zip(inputs.numpy(), points.numpy(), labels, strict=True)
    )
    return (
        f"<p>Left an input, beside it {words}</p>"
        f'<div class="orbits {record.kind.value} n{points.shape[1]}">{rows}</div>'
    )


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


def _row(x: np.ndarray, around: np.ndarray, label: object, kind: Kind) -> str:
    low, high = limits(np.concatenate([x[None], around]))
    name = safe(_label(label))
    words = f"{kind.value} labelled {name}, and {len(around)} others of its orbit"
    others = "".join(picture(point, low, high) for point in around)
    return (
        f'<figure role="img" aria-label="{words}"><figcaption>{name}</figcaption>'
        f'<div class="self">{picture(x, low, high)}</div>{others}</figure>'
    )


def _inputs_alone(inputs: Tensor, labels: list[object], kind: Kind) -> str:
    tiles = "".join(
        f"<figure>{picture(x, *limits(x), words=safe(_label(label)))}"
        f"<figcaption>{safe(_label(label))}</figcaption></figure>"
        for x, label in zip(inputs.numpy(), labels, strict=True)
    )
    return f'<div class="tiles {kind.value}">{tiles}</div>'


def _label(label: object) -> str:
    values = label if isinstance(label, list) else [label]
    return ", ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in values)


def _missing(sentence: str) -> str:
    return f'<p class="missing">{sentence}</p>'
