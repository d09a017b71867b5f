"""A command: its name, its arguments and what it does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orbitgp.cli.output import Output


@dataclass(frozen=True)
class Argument:
    """One argument as a value, from which both parsers and all help are made.

    A name without dashes is that of a positional argument; `bool` is the kind of a switch. Choices
    may be `joined` by +.
    """

    name: str
    help: str
    kind: type = str
    default: Any = None
    choices: tuple[str, ...] = ()
    joined: bool = False
    nargs: int | str | None = None
    metavar: str | tuple[str, ...] | None = None
    required: bool = False
    path: bool = False

    @property
    def is_optional(self) -> bool:
        """Whether null is a value of it."""
        return self.default is None and not self.required and self.name.startswith("--")


@dataclass(frozen=True)
class Command:
    """`run` returns an exit code; only it may import what is slow to import.

    With `config`, options are also read from a YAML file.
    """

    name: str
    help: str
    arguments: tuple[Argument, ...]
    run: Callable[[Mapping[str, Any], Output], int]
    config: bool = False


RUN = Argument("run", "folder of a run", metavar="RUN", path=True)

DEVICE = Argument(
    "--device", "auto is a GPU if there is one; or cpu, or a device such as cuda:1", default="auto"
)

BUDGET = Argument(
    "--budget_seconds",
    "what inference of a model may take here, roughly; without it sizes depend on the data alone",
    float,
)

SHARED = (
    Argument("--json", "print one JSON object and nothing else", bool),
    Argument("--debug", "show the tracebacks of errors", bool),
)
"""Options of all commands."""
