"""The log of a run, read back."""

import itertools
import json
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from orbitgp.callbacks.base import Evaluation, evaluations_from
from orbitgp.estimators.folder import ENDED, RESUMED
from orbitgp.sealed import MALFORMED


@dataclass(frozen=True)
class Phase:
    """Steps from one start of the optimiser to its end; `reason` is empty if it was cut off."""

    curve: tuple[Evaluation, ...]
    seconds: float
    reason: str


@dataclass(frozen=True)
class History:
    """All that a run said of itself; `began` in seconds since 1970, if it said anything."""

    began: float | None
    seconds: float
    phases: tuple[Phase, ...]
    warnings: tuple[str, ...]
    resumed: int


def read_history(path: Path) -> History:
    """Of log.jsonl; lines that a killed run left torn are passed over."""
    events = _events(path)
    ended = [place for place, event in enumerate(events) if event.get("message") == ENDED]
    # a run that has ended may be read again, which the log says too
    events = events[: ended[0] + 1] if ended else events
    phases: list[list[dict[str, Any]]] = []
    for event in events:
        running = phases and phases[-1][-1]["event"] != "finished"
        if running:
            phases[-1].append(event)
        elif event["event"] == "started":
            phases.append([event])
    warnings = [str(event["message"]) for event in events if event["event"] == "warned"]
    return History(
        began=events[0]["time"] if events else None,
        seconds=_seconds(events),
        phases=tuple(_phase(phase) for phase in phases),
        warnings=tuple(dict.fromkeys(warnings)),
        resumed=sum(_is_resumption(event) for event in events),
    )


def _events(path: Path) -> list[dict[str, Any]]:
    lines = path.read_bytes().decode(errors="replace").splitlines() if path.is_file() else []
    events = [_event(line) for line in lines]
    return [event for event in events if event is not None]


def _event(line: str) -> dict[str, Any] | None:
    """The event of a line, if the line is complete and holds one."""
    try:
        event = json.loads(line)
        event["time"] = float(event["time"])
        needed = {"started": "max_steps", "warned": "message", "announced": "message"}
        needed |= {"finished": "reason", "evaluated": "step"}
        _ = event[needed[event["event"]]]
        if event["event"] == "evaluated":
            names = {field.name for field in fields(Evaluation)}
            row = {name: value for name, value in event.items() if name in names}
            event["evaluation"] = evaluations_from([row])[0]
        return event if math.isfinite(event["time"]) else None
    except MALFORMED:
        return None


def _phase(events: list[dict[str, Any]]) -> Phase:
    # a run that goes on repeats the steps since its last checkpoint
    points = {e["evaluation"].step: e["evaluation"] for e in events if e["event"] == "evaluated"}
    last = events[-1]
    return Phase(
        curve=tuple(points[step] for step in sorted(points)),
        seconds=_seconds(events),
        reason=str(last["reason"]) if last["event"] == "finished" else "",
    )


def _seconds(events: list[dict[str, Any]]) -> float:
    """From the first to the last, without the time that a run lay still."""
    pairs = itertools.pairwise(events)
    return sum(max(0.0, b["time"] - a["time"]) for a, b in pairs if not _is_resumption(b))


def _is_resumption(event: dict[str, Any]) -> bool:
    return event["event"] == "announced" and event["message"] == RESUMED
