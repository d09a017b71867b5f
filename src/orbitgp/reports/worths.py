"""What each transformation is worth: nats that the evidence loses without it."""

from dataclasses import dataclass

from markupsafe import Markup

from orbitgp.evidence.ablation import Worth
from orbitgp.reports.charts import axis_of, level
from orbitgp.reports.record import Record
from orbitgp.reports.words import number


@dataclass(frozen=True)
class Bar:
    """A transformation, its range with an interval, and its worth as words and as a bar."""

    name: str
    range: str
    worth: str
    drawing: Markup


@dataclass(frozen=True)
class Worths:
    """A bar and a row of a table for each transformation."""

    num_data: int
    kind: str
    bars: tuple[Bar, ...]
    rows: tuple[tuple[str, ...], ...]


def worths(record: Record) -> Worths | None:
    """Nothing if the folder holds no ablation, or one of nothing."""
    found = record.ablation
    if found is None or not found.worths:
        return None
    ends = [w.removed + way * w.removed_error for w in found.worths for way in (-1, 1)]
    axis = axis_of([0.0, *ends], "nats", margin=0.02)
    drawings = [
        level(worth.removed, worth.removed_error, axis) if axis else Markup()
        for worth in found.worths
    ]
    bars = map(_bar, found.worths, drawings)
    return Worths(found.num_data, found.kind, tuple(bars), tuple(map(_row, found.worths)))


def _bar(worth: Worth, drawing: Markup) -> Bar:
    between = f"{worth.ends_in_words} ({worth.interval_in_words})" if worth.range else ""
    return Bar(worth.name, between, worth.removed_in_words, drawing)


def _row(worth: Worth) -> tuple[str, ...]:
    ends = (worth.ends_in_words or "–", worth.interval_in_words or "–")
    removed = f"{number(worth.removed, 1)} ± {number(worth.removed_error, 1)}"
    moved = ("–" if n is None else number(n, 1) for n in (worth.halved, worth.doubled))
    return worth.name, *ends, removed, *moved, "yes" if worth.identified else "no"
