"""The end of a report: what was asked, with what, how long it took, and how to cite it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orbitgp.reports.history import Phase
from orbitgp.reports.record import FILES, Record
from orbitgp.reports.words import duration, number, size

Row = tuple[str, ...]


@dataclass(frozen=True)
class Colophon:
    """Rows of tables; `began` is empty if the log is."""

    began: str
    phases: tuple[Row, ...]
    files: tuple[Row, ...]
    settings: tuple[Row, ...]
    identity: tuple[Row, ...]
    version: str


def colophon(record: Record) -> Colophon:
    """Settings, versions, timing and files of a run."""
    history, settings = record.history, record.settings
    present = {name: record.folder / name for name in FILES if (record.folder / name).is_file()}
    identity = {name: settings.get(name) for name in ("estimator", "seed", "data_sha256")}
    versions = settings.get("versions")
    return Colophon(
        began="" if history.began is None else _when(history.began),
        phases=tuple(_timing(record)),
        files=tuple((n, size(path.stat().st_size), FILES[n]) for n, path in present.items()),
        settings=tuple(_flat("", settings.get("parameters"))),
        identity=(*_flat("", identity), *_flat("", versions)),
        version=str(versions.get("orbitgp", "")) if isinstance(versions, dict) else "",
    )


def _timing(record: Record) -> Iterable[Row]:
    phases = record.history.phases
    for phase in phases:
        reason = phase.reason or "not finished"
        yield "learning", duration(phase.seconds), _best(phase, record.shift), reason
    rest = max(record.history.seconds - sum(phase.seconds for phase in phases), 0.0)
    yield "all else", duration(rest), "", "solving for the posterior of all data, and calibrating"


def _best(phase: Phase, shift: float) -> str:
    values = [point.per_input for point in phase.curve if math.isfinite(point.per_input)]
    return number(max(values) + shift, 3) if values else "–"


def _when(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"


def _flat(prefix: str, value: Any) -> Iterable[Row]:
    """Names with dots, and values in words."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(f"{prefix}.{name}" if prefix else str(name), inner)
    else:
        yield prefix, "default" if value is None else str(value)
