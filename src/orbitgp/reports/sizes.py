"""How the differences between candidates grow with the number of inputs."""

import math
from dataclasses import dataclass

from markupsafe import Markup

from orbitgp.evidence.comparison import Comparison, limit_in_words
from orbitgp.reports.charts import axis_of, curve, dots, names_beside, plot, sizes_axis, straight
from orbitgp.reports.record import Record
from orbitgp.reports.words import kind_in_words, number, plus_minus

LONGEST = 16
"""Letters of a name beside a curve; the table has all of it."""


@dataclass(frozen=True)
class Sizes:
    """A curve for each candidate, and a table that begins with the best."""

    num_data: int
    best: str
    likelihood: str
    has_all: bool
    """Return whether the chart ends with all inputs."""
    drawing: Markup
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sizes(record: Record) -> Sizes | None:
    """Nothing if no other candidate for the same data is beside the run."""
    if len(record.findings) < 2:
        return None
    own = record.findings[0]
    found = Comparison(record.findings, own.num_data)
    gaps = found.by_size()
    known = sorted({size for row in gaps.values() for size in row})
    parts = [size for size in known if size < own.num_data]
    return Sizes(
        num_data=own.num_data,
        best=found.best.name,
        likelihood=own.likelihood,
        has_all=own.num_data in known,
        drawing=sizes_chart(gaps, own.name),
        head=("Candidate", "Evidence (nats)", "Kind", "Difference", *(f"n = {n:,}" for n in parts)),
        rows=tuple(_row(found, name, parts, gaps[name]) for name in gaps),
    )


def _row(found: Comparison, name: str, parts: list[int], gaps: dict[int, float]) -> tuple[str, ...]:
    finding, (difference, error) = found[name], found.difference(name)
    words = "best"
    if finding is not found.best:
        limit = limit_in_words(finding, found.best)
        words = f"{limit}{number(difference, 1)} {plus_minus(error)}"
    by_part = (number(gaps[n], 1) if n in gaps else "–" for n in parts)
    kind = kind_in_words(finding.kind)
    return name, number(finding.evidence, 1), kind, words, *by_part


def sizes_chart(gaps: dict[str, dict[int, float]], own: str) -> Markup:
    """Differences to the best over the number of inputs; that of this run stands out."""
    known = [size for row in gaps.values() for size in row]
    heights = [gap for row in gaps.values() for gap in row.values()]
    y = axis_of([0.0, *heights], "difference to the best (nats)")
    if y is None or len(set(known)) < 2:
        return Markup()
    x, curves, marks, ends = sizes_axis(known, "inputs"), Markup(), Markup(), []
    marks += straight((x.low, 0.0), (x.high, 0.0), x, y)
    for name, row in gaps.items():
        points = [(math.log2(size), gap) for size, gap in sorted(row.items())]
        if not points:
            continue
        other = "" if name == own else " other"
        curves += curve(points, x, y, colour=f"line{other}")
        marks += dots(points, x, y, colour=f"dot{other}")
        short = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
        ends.append((short, points[-1][1]))
    label = f"Differences of {len(gaps)} candidates to the best over the number of inputs"
    marks += names_beside(ends, x, y)
    return plot(x, y, label=label, shape="wide named", curves=curves, marks=marks)
