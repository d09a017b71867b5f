"""`orbitgp completion`: a script that completes commands and options in a shell."""

from collections.abc import Mapping
from typing import Any

import orbitgp
from orbitgp.cli.codes import DONE
from orbitgp.cli.command import Argument, Command
from orbitgp.cli.output import Output
from orbitgp.cli.schemas import CompletionRecord
from orbitgp.errors import InputError

SHELL = Argument(
    "shell", 'as in: eval "$(orbitgp completion bash)"', choices=("bash", "zsh", "fish", "tcsh")
)


def run(options: Mapping[str, Any], output: Output) -> int:
    """`orbitgp completion`."""
    from orbitgp.cli.commands import COMMANDS  # which imports this module
    from orbitgp.cli.usage import usage_parser

    try:
        import shtab
    except ImportError as error:
        raise InputError(
            f'shtab is not here ({error}); pip install "orbitgp[completion]"'
        ) from None
    parser = usage_parser(COMMANDS, orbitgp.__version__, shtab.FILE)
    script = shtab.complete(parser, options["shell"])
    record: CompletionRecord = {
        "schema": "orbitgp.completion/1",
        "shell": options["shell"],
        "script": script,
    }
    output.show(record, script)
    return DONE


COMPLETION = Command("completion", "a script that completes commands", (SHELL,), run)
