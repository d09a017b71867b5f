"""Parsing, with YAML files and overrides: the border with jsonargparse."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentError, ArgumentParser

from orbitgp.cli.command import SHARED, Argument, Command
from orbitgp.errors import FileError, InputError


def parse(commands: Sequence[Command], given: Sequence[str]) -> tuple[Command, dict[str, Any]]:
    """The command that is asked for and its options; what cannot be parsed is an InputError."""
    _check_config(given)
    parser = _new_parser(prog="orbitgp")
    _add_commands(parser, commands)
    try:
        parsed = parser.parse_args([_underscored(word) for word in given]).as_dict()
    except ArgumentError as error:
        message = _as_typed(str(error), commands)
        raise InputError(f"{message}; see {_where_help_is(commands, given)}") from None
    command = next(command for command in commands if command.name == parsed["command"])
    return command, parsed[command.name]


def _underscored(word: str) -> str:
    """--image-size is --image_size; the value behind = stays as it is."""
    name, equals, value = word.partition("=")
    return (
        name.replace("-", "_").replace("__", "--", 1) + equals + value if _is_option(word) else word
    )


def _is_option(word: str) -> bool:
    return word.startswith("--") and len(word) > 2


def _as_typed(message: str, commands: Sequence[Command]) -> str:
    """Options by the names that are typed: --out instead of fit.out."""
    for command in commands:
        for argument in command.arguments:
            key = f"{command.name}.{argument.name.removeprefix('--')}"
            message = message.replace(key, argument.name)
    return message


class Joined(tuple[str, ...]):
    """Choices, and those that are joined by +."""

    def __contains__(self, value: object) -> bool:
        """Whether each part is a choice."""
        return isinstance(value, str) and all(
            tuple.__contains__(self, part) for part in value.split("+")
        )


def _new_parser(**kwargs: Any) -> ArgumentParser:
    return ArgumentParser(exit_on_error=False, allow_abbrev=False, **kwargs)


def _add_commands(parser: ArgumentParser, commands: Sequence[Command]) -> None:
    added = parser.add_subcommands(dest="command")
    for command in commands:
        sub = _new_parser()
        added.add_subcommand(command.name, sub)
        if command.config:
            sub.add_argument("--config", action="config")
        for argument in (*command.arguments, *SHARED):
            sub.add_argument(argument.name, **_details(argument))


def _details(argument: Argument) -> dict[str, Any]:
    if argument.kind is bool:
        return {"action": "store_true"}
    details: dict[str, Any] = {"default": argument.default, "nargs": argument.nargs}
    if argument.choices:
        details["choices"] = Joined(argument.choices) if argument.joined else argument.choices
    else:
        optional = argument.is_optional and argument.nargs is None
        details["type"] = argument.kind | None if optional else argument.kind
    if argument.required:
        details["required"] = True
    return {name: value for name, value in details.items() if value is not None}


def _check_config(given: Sequence[str]) -> None:
    for option, path in pairwise(given):
        if option == "--config" and not Path(path).is_file():
            raise FileError(f"--config: there is no file {path}")


def _where_help_is(commands: Sequence[Command], given: Sequence[str]) -> str:
    known = given and given[0] in {command.name for command in commands}
    return f"orbitgp {given[0]} --help" if known else "orbitgp --help"
