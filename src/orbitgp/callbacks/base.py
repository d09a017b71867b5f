"""Progress of a fit while it runs: callbacks."""

import json
import math
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tqdm import tqdm

from orbitgp.orbits.ranges import Range, ranges_from

SECONDS_BETWEEN_LINES = 30.0
"""Where no bar can be drawn."""


@dataclass(frozen=True)
class Evaluation:
    """The evidence after one step of a fit, and the orbit that was learned so far.

    Parameters
    ----------
    step : int
        The step, counted from 1.
    evidence : float
        Nats of `num_data` inputs. It is not scaled to all inputs of the fit.
    num_data : int
        The number of inputs that the evidence belongs to. It changes between phases of a fit.
    learned : str
        The orbit in words.
    ranges : dict of str to list of float, optional
        The two ends of each learned range, in the unit of its name.
    kind : {"exact", "bound"}, default="exact"
        Whether `evidence` is a log marginal likelihood, or a lower bound or its estimate.

    Examples
    --------
    >>> from orbitgp.callbacks.base import Evaluation
    >>> found = Evaluation(step=3, evidence=-50.0, num_data=250, learned="rotation ±12°")
    >>> found.name, found.per_input
    ('evidence of 250 inputs', -0.2)
    """

    step: int
    evidence: float
    num_data: int
    learned: str
    ranges: tuple[Range, ...] = ()
    kind: Literal["exact", "bound"] = "exact"

    @property
    def per_input(self) -> float:
        """Nats per input, which evaluations of different subsets have in common."""
        return self.evidence / self.num_data

    @property
    def name(self) -> str:
        """What `evidence` is, such as "evidence of 250 inputs"."""
        return f"{'evidence' if self.kind == 'exact' else 'bound'} of {self.num_data:,} inputs"


def evaluations_from(rows: list[dict[str, Any]]) -> list[Evaluation]:
    """Return the curve that JSON describes, or raise if a value has the wrong type."""
    curve = [Evaluation(**{**row, "ranges": ranges_from(row.get("ranges", ()))}) for row in rows]
    for point in curve:
        numbers = (point.step, point.evidence, point.num_data)
        if not all(isinstance(number, int | float) for number in numbers):
            raise TypeError(f"a point of the curve is {point!r:.200}")
        float(point.evidence)  # refuses integers beyond all floats
        if not 1 <= point.num_data < 2**53 or point.kind not in ("exact", "bound"):
            raise ValueError(f"a point of the curve is {point!r:.200}")
    return curve


class Callback:
    """Receives the progress of a fit; derive from it and override some methods.

    See Also
    --------
    ProgressBar, JsonlLog : The callbacks of the library.

    Examples
    --------
    >>> from orbitgp import Callback, InvariantGPClassifier
    >>> class Print(Callback):
    ...     def evaluated(self, evaluation):
    ...         print(evaluation.step, evaluation.learned)
    >>> model = InvariantGPClassifier("affine", callbacks=[Print()])
    """

    def started(self, max_steps: int) -> None:
        """Before the first step."""

    def stepped(self, step: int) -> None:
        """After each step."""

    def evaluated(self, evaluation: Evaluation) -> None:
        """Receive each evaluation of the evidence."""

    def observed(self, model: Any) -> None:
        """Receive the model in stochastic training, after each evaluation; do not change it."""

    def announced(self, message: str) -> None:
        """Before long work that has no steps."""

    def warned(self, message: str) -> None:
        """When a guard had to act."""

    def finished(self, reason: str) -> None:
        """After the last step."""


@dataclass(frozen=True)
class Several(Callback):
    """Passes everything on to each of several callbacks."""

    callbacks: tuple[Callback, ...]

    def started(self, max_steps: int) -> None:
        """Passed on."""
        for callback in self.callbacks:
            callback.started(max_steps)

    def stepped(self, step: int) -> None:
        """Passed on."""
        for callback in self.callbacks:
            callback.stepped(step)

    def evaluated(self, evaluation: Evaluation) -> None:
        """Passed on."""
        for callback in self.callbacks:
            callback.evaluated(evaluation)

    def observed(self, model: Any) -> None:
        """Passed on."""
        for callback in self.callbacks:
            callback.observed(model)

    def announced(self, message: str) -> None:
        """Passed on."""
        for callback in self.callbacks:
            callback.announced(message)

    def warned(self, message: str) -> None:
        """Passed on."""
        for callback in self.callbacks:
            callback.warned(message)

    def finished(self, reason: str) -> None:
        """Passed on."""
        for callback in self.callbacks:
            callback.finished(reason)


class ProgressBar(Callback):
    """A bar with the evidence, the learned ranges in words and the time left.

    A terminal and a notebook redraw it; in a file or a pipe there is a line now and then.

    See Also
    --------
    Callback : Receives the progress of a fit.

    Examples
    --------
    >>> from orbitgp import InvariantGPClassifier
    >>> model = InvariantGPClassifier("affine", verbose=True)  # shows a ProgressBar
    """

    def __init__(self) -> None:
        self._bar: tqdm | None = None
        self._last_line = -math.inf

    def started(self, max_steps: int) -> None:
        """Show the bar where it can be drawn."""
        terminal = sys.stderr.isatty()
        # some terminals say that they have no columns, where tqdm would draw nothing
        sized = terminal and os.get_terminal_size(sys.stderr.fileno()).columns > 0
        self._bar = tqdm(
            total=max_steps,
            disable=not (terminal or _in_notebook()),
            dynamic_ncols=sized,
            ncols=None if sized else 100,
        )

    def stepped(self, step: int) -> None:
        """One step further."""
        if self._bar is not None:
            self._bar.update(step - self._bar.n)

    def evaluated(self, evaluation: Evaluation) -> None:
        """Show the newest evidence and ranges."""
        if self._bar is None:
            return
        evidence = f"{evaluation.name} {evaluation.evidence:,.0f} nats"
        if not self._bar.disable:
            self._bar.set_description(evidence)
            self._bar.set_postfix_str(evaluation.learned)
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            tqdm.write(f"  {evidence}, {evaluation.learned}", file=sys.stderr)

    def announced(self, message: str) -> None:
        """A line."""
        tqdm.write(message, file=sys.stderr)

    def warned(self, message: str) -> None:
        """Above the bar, which stays."""
        if self._bar is not None:
            self._bar.write(message, file=sys.stderr)

    def finished(self, reason: str) -> None:
        """Leave the bar as it is."""
        del reason
        if self._bar is not None:
            self._bar.close()


def _in_notebook() -> bool:
    """Whether a notebook shows what is written to stderr: it is no terminal, but redraws lines."""
    return type(sys.stderr).__module__.startswith("ipykernel.")


class JsonlLog(Callback):
    """One JSON object a line, flushed at once, so that a killed run leaves its history.

    Parameters
    ----------
    path : pathlib.Path
        The file, to which lines are appended.

    Examples
    --------
    >>> from pathlib import Path
    >>> from orbitgp import InvariantGPClassifier, JsonlLog
    >>> model = InvariantGPClassifier("affine", callbacks=[JsonlLog(Path("log.jsonl"))])
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._torn = path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")

    def started(self, max_steps: int) -> None:
        """The first line."""
        self._write(event="started", max_steps=max_steps)

    def evaluated(self, evaluation: Evaluation) -> None:
        """The curve, point by point."""
        self._write(event="evaluated", **asdict(evaluation))

    def announced(self, message: str) -> None:
        """What comes next."""
        self._write(event="announced", message=message)

    def warned(self, message: str) -> None:
        """What a guard did."""
        self._write(event="warned", message=message)

    def finished(self, reason: str) -> None:
        """The last line."""
        self._write(event="finished", reason=reason)

    def _write(self, **fields: object) -> None:
        line = json.dumps({"time": time.time(), **fields}, ensure_ascii=False) + "\n"
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write("\n" + line if self._torn else line)  # a killed run may leave half a line
        self._torn = False
