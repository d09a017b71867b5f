"""What a command prints: lines for people, or one JSON object and nothing else."""

import json
import math
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Output:
    """Standard output for results, standard error for all the rest."""

    as_json: bool
    quiet: bool = False
    warned: list[str] = field(default_factory=list)

    def say(self, line: str) -> None:
        """A line for people, at once."""
        if not self.as_json and not self.quiet:
            print(line, flush=True)

    def show(self, record: Mapping[str, Any], text: str) -> None:
        """The result, in one of its two forms."""
        print(json.dumps(plain(record), ensure_ascii=False) if self.as_json else text, flush=True)

    def note(self, line: str) -> None:
        """A line beside the result, in both forms."""
        print(f"orbitgp: {line}", file=sys.stderr, flush=True)

    def fail(self, kind: str, message: str, code: int) -> None:
        """Why a command could not be done, on one line."""
        line = " ".join(message.split())
        self.note(line)
        if self.as_json and os.environ.get("RANK", "0") == "0":  # one object for all processes
            error = {"kind": kind, "message": line, "exit_code": code}
            self.show({"schema": "orbitgp.error/1", "error": error}, "")

    @contextmanager
    def keeping_warnings(self) -> Iterator[None]:
        """Print warnings to stderr, and keep them for the JSON result."""

        def keep(message: Warning | str, category: type[Warning], *_: Any) -> None:
            self.warned.append(" ".join(str(message).split()))
            # without --json the progress of a fit has said it already
            if category.__name__ != "ConvergenceWarning" or self.as_json or self.quiet:
                self.note(f"warning: {self.warned[-1]}")

        with warnings.catch_warnings():
            warnings.showwarning = keep
            yield


def plain(value: Any) -> Any:
    """A value as JSON can hold it: what is not finite is null."""
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def table(rows: Mapping[str, str]) -> str:
    """Names and values in two columns."""
    width = max(map(len, rows)) + 2
    return "\n".join(f"{name:<{width}}{value}" for name, value in rows.items())
