"""How a run came to what it learned: evidence and ranges, step by step."""

import math
from collections.abc import Sequence

from orbitgp.callbacks.base import Evaluation
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
from orbitgp.reports.record import Fitted, Record
from orbitgp.reports.words import Ends, end, neutral, number, safe


def training(record: Record) -> str:
    """Both charts, or a sentence in their place."""
    if not record.curve:
        body = '<p class="missing">The bound has not been evaluated yet.</p>'
    else:
        body = _evidence(record) + _ranges(record)
    return f'<section id="training"><h2>Training</h2>{body}</section>'


def _evidence(record: Record) -> str:
    drawing = evidence_chart(record.curve)
    if not drawing:
        return '<p class="missing">No evaluation of the bound gave a finite number.</p>'
    unit = (
        ""
        if record.classifies or record.fitted is not None
        else " Until a regression ends, its evidence is that of standardised targets."
    )
    return (
        f"<figure><figcaption><h3>Evidence</h3><p>{_curve_words(record.fitted)}{unit}</p>"
        "</figcaption>"
        f"{drawing}</figure>"
    )


def _curve_words(fitted: Fitted | None) -> str:
    """What the curve shows, and where it ends."""
    if fitted is None:
        return "What learning has found so far, in nats of all data."
    final = f"{number(fitted.evidence, 1)} nats"
    if fitted.kind == "exact":
        return (
            "The exact evidence of the subsets that the ranges are learned from, as if all data "
            f"were like them. Subsets differ, so the curve may fall where one takes the place of "
            f"another. The exact evidence of all data is {final} in the end."
        )
    return (
        "A lower bound on the evidence of all data, with few inducing variables, ± its standard "
        f"error, most of which all points share. Solved with all {fitted.num_points:,}, it is "
        f"{final} in the end."
    )


def evidence_chart(points: Sequence[Evaluation]) -> str:
    """The bound over the steps with its error; nothing if no value is finite."""
    steps = [float(point.step) for point in points]
    middle = list(zip(steps, [point.elbo for point in points], strict=True))
    lower = [(p.step, p.elbo - p.standard_error) for p in points]
    upper = [(p.step, p.elbo + p.standard_error) for p in points]
    shown = [value for _, value in (*middle, *lower, *upper)]
    x, y = steps_axis([p.step for p in points], 5), axis_of(shown, "evidence (nats)")
    if y is None or not any(math.isfinite(value) for _, value in middle):
        return ""
    marks = dots(middle, x, y)
    finite = [value for _, value in middle if math.isfinite(value)]
    label = (
        f"Evidence over {len(points)} evaluations, from {number(finite[0])} to "
        f"{number(finite[-1])} nats"
    )
    curves = band(lower, upper, x, y) + curve(middle, x, y)
    return plot(x, y, label=label, curves=curves, marks=marks)


def _ranges(record: Record) -> str:
    panels = [
        range_chart(
            name,
            [(p.step, *ends_of(p, name)) for p in record.curve if name in p.ranges],
            ends,
        )
        for name, ends in record.ranges.items()
    ]
    drawn = "".join(f'<div class="panel">{panel}</div>' for panel in panels if panel)
    if not drawn:
        return ""
    return (
        "<figure><figcaption><h3>Learned ranges</h3><p>What may be done to an input: the band lies "
        "between the two ends, and the dotted line is no change at all.</p></figcaption>"
        f'<div class="panels">{drawn}</div></figure>'
    )


def ends_of(point: Evaluation, name: str) -> Ends:
    """Of one range at one step."""
    low, high = point.ranges[name]
    return low, high


def range_chart(name: str, rows: Sequence[tuple[float, float, float]], ends: Ends) -> str:
    """Both ends of a range over the steps, and their last values; nothing if there are none."""
    values = [value for row in rows for value in row[1:]]
    y = axis_of([*values, *ends, neutral(name)], name, margin=0.12, count=4)
    if y is None or not rows or not all(map(math.isfinite, ends)):
        return ""
    x = steps_axis([int(step) for step, _, _ in rows], 3)
    lower: list[Point] = [(step, low) for step, low, _ in rows]
    upper: list[Point] = [(step, high) for step, _, high in rows]
    curves = band(lower, upper, x, y) + curve(lower, x, y) + curve(upper, x, y)
    none = neutral(name)
    marks = straight((x.low, none), (x.high, none), x, y)
    marks += dots([(x.high, value) for value in ends], x, y)
    low, high = _apart(y.place(ends[0]), y.place(ends[1]))
    marks += note(end(name, ends[0]), (x.high, ends[0]), x, y, dy=low)
    if ends[0] != ends[1]:
        marks += note(end(name, ends[1]), (x.high, ends[1]), x, y, dy=high)
    words = f"{safe(name)}: in the end from {end(name, ends[0])} to {end(name, ends[1])}"
    return plot(x, y, label=words, shape="small", curves=curves, marks=marks)


def _apart(low: float, high: float) -> tuple[int, int]:
    """How far to move two labels so that they do not overlap, in pixels down."""
    return (7, -7) if abs(high - low) < 14 else (0, 0)
