"""`orbitgp completion`: a script that completes commands and options in a shell."""

from collections.abc import Mapping, Sequence
from typing import Any

import orbitgp
from orbitgp.cli.command import Argument, Command
from orbitgp.cli.exit_codes import DONE
from orbitgp.cli.output import Output
from orbitgp.cli.schemas import CompletionRecord
from orbitgp.errors import InputError

SHELL = Argument(
    "shell", 'as in: eval "$(orbitgp completion bash)"', choices=("bash", "zsh", "fish", "tcsh")
)


def completion(commands: Sequence[Command]) -> Command:
    """The command that completes these, and itself."""

    def run(options: Mapping[str, Any], output: Output) -> int:
        script = _script((*commands, command), options["shell"])
        record: CompletionRecord = {
            "schema": "orbitgp.completion/1",
            "shell": options["shell"],
            "script": script,
        }
        output.show(record, script)
        return DONE

    command = Command("completion", "a script that completes commands", (SHELL,), run)
    return command


def _script(commands: Sequence[Command], shell: str) -> str:
    from orbitgp.cli.usage import usage_parser

    try:
        import shtab
    except ImportError as error:
        raise InputError(
            f'shtab is not here ({error}); pip install "orbitgp[completion]"'
        ) from None
    return shtab.complete(usage_parser(commands, orbitgp.__version__, shtab.FILE), shell)
