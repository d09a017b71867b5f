"""How a run came to what it learned: evidence and ranges, step by step."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from orbitgp.callbacks.base import Evaluation
from orbitgp.orbits.ranges import Range
from orbitgp.reports.charts import (
    Point,
    axis_of,
    band,
    curve,
    dots,
    note,
    plot,
    steps_axis,
    straight,
)
from orbitgp.reports.record import Record
from orbitgp.reports.words import end, number


@dataclass(frozen=True)
class Training:
    """Charts; `evidence` is empty if no value is finite."""

    evidence: Markup
    ranges: tuple[Markup, ...]


def training(record: Record) -> Training:
    """Of the curve of a run."""
    panels = [range_chart(found, ends_of(found, record.curve)) for found in record.ranges]
    return Training(evidence_chart(record.curve), tuple(filter(None, panels)))


def evidence_chart(points: Sequence[Evaluation]) -> Markup:
    """Draw the evidence per input over the steps; empty if no value is finite."""
    shown = [(float(point.step), point.per_input) for point in points]
    finite = [value for _, value in shown if math.isfinite(value)]
    x = steps_axis([point.step for point in points], 5)
    y = axis_of(finite, "evidence per input (nats)")
    if y is None:
        return Markup()
    label = (
        f"Evidence per input over {len(points)} evaluations, from {number(finite[0], 3)} to "
        f"{number(finite[-1], 3)} nats"
    )
    return plot(x, y, label=label, curves=curve(shown, x, y), marks=dots(shown, x, y))


def ends_of(found: Range, curve: Sequence[Evaluation]) -> list[tuple[float, float, float]]:
    """Each step at which the range is known, and its ends there."""
    return [
        (point.step, own.low, own.high)
        for point in curve
        for own in point.ranges
        if own.key == found.key
    ]


def range_chart(found: Range, rows: Sequence[tuple[float, float, float]]) -> Markup:
    """Both ends of a range over the steps, and their last values; nothing if there are none."""
    values, ends = [value for row in rows for value in row[1:]], (found.low, found.high)
    none = found.neutral
    y = axis_of([*values, *ends, none], found.title, margin=0.12, count=4)
    if y is None or not rows or not all(map(math.isfinite, ends)):
        return Markup()
    x = steps_axis([int(step) for step, _, _ in rows], 3)
    lower: list[Point] = [(step, low) for step, low, _ in rows]
    upper: list[Point] = [(step, high) for step, _, high in rows]
    curves = band(lower, upper, x, y) + curve(lower, x, y) + curve(upper, x, y)
    marks = straight((x.low, none), (x.high, none), x, y)
    marks += dots([(x.high, value) for value in ends], x, y)
    low, high = _apart(y.place(ends[0]), y.place(ends[1]))
    marks += note(end(found, ends[0]), (x.high, ends[0]), x, y, dy=low)
    if ends[0] != ends[1]:
        marks += note(end(found, ends[1]), (x.high, ends[1]), x, y, dy=high)
    words = f"{found.title}: in the end from {end(found, ends[0])} to {end(found, ends[1])}"
    return plot(x, y, label=words, shape="small", curves=curves, marks=marks)


def _apart(low: float, high: float) -> tuple[int, int]:
    """How far to move two labels so that they do not overlap, in pixels down."""
    return (7, -7) if abs(high - low) < 14 else (0, 0)
