"""Help and completion, by argparse alone: parsing with YAML takes much longer to import."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from orbitgp.cli.command import SHARED, Argument, Command
from orbitgp.cli.exit_codes import EPILOG

CONFIG = Argument("--config", "YAML file of options; what comes after it wins", path=True)
PRINT_CONFIG = Argument("--print_config", "print all options as YAML, for --config", bool)


def usage_parser(
    commands: Sequence[Command], version: str, path_completion: Any = None
) -> argparse.ArgumentParser:
    """A parser that knows all names and checks no value."""
    parser = argparse.ArgumentParser(
        prog="orbitgp",
        description="Gaussian processes that learn invariances from data.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"orbitgp {version}")
    _add_commands(parser, commands, path_completion)
    return parser


def _add_commands(
    parser: argparse.ArgumentParser, commands: Sequence[Command], path_completion: Any
) -> None:
    added = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in commands:
        about = f"{command.help[0].upper()}{command.help[1:]}."
        sub = added.add_parser(command.name, help=command.help, description=about, epilog=EPILOG)
        config = (CONFIG, PRINT_CONFIG) if command.config else ()
        for argument in (*config, *command.arguments, *SHARED):
            action = sub.add_argument(argument.name, **_details(argument))
            if argument.path and path_completion is not None:
                setattr(action, "complete", path_completion)  # noqa: B010 - as shtab wants it


def _details(argument: Argument) -> Mapping[str, Any]:
    if argument.kind is bool:
        return {"action": "store_true", "help": argument.help}
    shown = "" if argument.default in (None, []) else f" (default: {argument.default})"
    shown = " (required)" if argument.required else shown
    details = {"help": f"{argument.help}{shown}", "nargs": argument.nargs}
    return {**details, "metavar": argument.metavar, "choices": argument.choices or None}
