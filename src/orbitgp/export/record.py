"""A policy as a plain dictionary, which JSON can hold."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from orbitgp.export.step import Step
from orbitgp.orbits.ranges import Range

SCHEMA = "orbitgp.policy/1"

WARP = {"interpolation": "bilinear", "outside": 0, "centre": "of the image", "y": "downward"}

CONVENTIONS: dict[str, dict[str, Any]] = {
    "affine": {
        **WARP,
        "order": ["scale", "shear", "rotation", "shift"],
        "rotation": "counter-clockwise",
        "shear": "x += shear * y, in pixels from the centre",
        "shift": "to the right and downward",
    },
    "local deformation": {
        **WARP,
        "formula": "image(p + d(p)) + thickness(p) * |slope of it|",
        "fields": "cosines of normal coefficients, each of standard deviation 1 on average, "
        "weighted by exp(-(smoothness * frequency)^2 / 2)",
    },
    "intensity": {"formula": "contrast * image + brightness", "clipped": False},
    "noise": {"formula": "image + noise, independent for every value", "clipped": False},
    "quarter turns": {"rotation": "counter-clockwise"},
}
"""What the numbers of a step do to an image, by its kind."""


def to_record(
    steps: Sequence[Step], left_out: Sequence[str], unidentified: Sequence[Range]
) -> dict[str, Any]:
    """Every number with its unit and distribution; steps are applied in their order."""
    written = [{**step.to_dict(), "convention": CONVENTIONS.get(step.kind, {})} for step in steps]
    missing = {"left_out": list(left_out), "unidentified": list(map(asdict, unidentified))}
    return {"schema": SCHEMA, "steps": written, **missing}


def json_source(
    steps: Sequence[Step], left_out: Sequence[str], unidentified: Sequence[Range]
) -> str:
    """The record as text."""
    record = to_record(steps, left_out, unidentified)
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"
