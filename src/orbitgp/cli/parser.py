"""Parsing, with YAML files and overrides: the border with jsonargparse."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentError, ArgumentParser

from orbitgp.cli.command import SHARED, Argument, Command, Group
from orbitgp.errors import FileError, InputError


def parse(
    commands: Sequence[Command | Group], given: Sequence[str]
) -> tuple[Command, dict[str, Any]]:
    """The command that is asked for and its options; what cannot be parsed is an InputError."""
    _check_config(given)
    parser = _new_parser(prog="orbitgp")
    _add_commands(parser, commands)
    try:
        return _chosen(commands, parser.parse_args(list(given)).as_dict())
    except ArgumentError as error:
        raise InputError(f"{error}; see {_where_help_is(commands, given)}") from None


def _chosen(
    commands: Sequence[Command | Group], parsed: dict[str, Any]
) -> tuple[Command, dict[str, Any]]:
    command = next(command for command in commands if command.name == parsed["command"])
    options = parsed[command.name]
    return (
        (command, options) if isinstance(command, Command) else _chosen(command.commands, options)
    )


def _new_parser(**kwargs: Any) -> ArgumentParser:
    return ArgumentParser(exit_on_error=False, allow_abbrev=False, **kwargs)


def _add_commands(parser: ArgumentParser, commands: Sequence[Command | Group]) -> None:
    added = parser.add_subcommands(dest="command")
    for command in commands:
        sub = _new_parser()
        added.add_subcommand(command.name, sub)
        if isinstance(command, Group):
            _add_commands(sub, command.commands)
            continue
        if command.config:
            sub.add_argument("--config", action="config")
        for argument in (*command.arguments, *SHARED):
            sub.add_argument(argument.name, **_details(argument))


def _details(argument: Argument) -> dict[str, Any]:
    if argument.kind is bool:
        return {"action": "store_true"}
    details: dict[str, Any] = {"default": argument.default, "nargs": argument.nargs}
    if argument.choices:
        details["choices"] = argument.choices
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


def _where_help_is(commands: Sequence[Command | Group], given: Sequence[str]) -> str:
    for command in commands:
        if [command.name] == list(given[:1]):
            inner = command.commands if isinstance(command, Group) else ()
            rest = _where_help_is(inner, given[1:]).removeprefix("orbitgp ")
            return f"orbitgp {command.name} {rest}"
    return "orbitgp --help"
