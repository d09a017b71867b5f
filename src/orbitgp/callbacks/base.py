"""Progress of a fit while it runs: callbacks."""

import json
import math
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from orbitgp.orbits.ranges import Range, ranges_from

SECONDS_BETWEEN_LINES = 30.0
"""Where no bar can be drawn."""


@dataclass(frozen=True)
class Evaluation:
    """The bound after some steps, in nats of all data, and what had been learned by then."""

    step: int
    elbo: float
    standard_error: float
    learned: str
    ranges: tuple[Range, ...] = ()


def evaluations_from(rows: list[dict[str, Any]]) -> list[Evaluation]:
    """A curve from its JSON."""
    curve = [Evaluation(**{**row, "ranges": ranges_from(row.get("ranges", ()))}) for row in rows]
    for point in curve:
        numbers = (point.step, point.elbo, point.standard_error)
        if not all(isinstance(number, int | float) for number in numbers):
            raise TypeError(f"a point of the curve is {point}")
    return curve


class Callback:
    """Receives the progress of a fit; derive from it and override some methods.

    See Also
    --------
    ProgressBar, JsonlLog, TensorBoardLog, MLflowLog : The callbacks there are.

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
        """After each evaluation of the bound."""

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
        """The newest bound and ranges."""
        if self._bar is None:
            return
        bound = f"evidence {evaluation.elbo:,.0f} nats"
        if not self._bar.disable:
            self._bar.set_description(bound)
            self._bar.set_postfix_str(evaluation.learned)
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            tqdm.write(f"  {bound}, {evaluation.learned}", file=sys.stderr)

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
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" + line if self._torn else line)  # a killed run may leave half a line
        self._torn = False
