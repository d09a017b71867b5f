"""The entry point: parse, run, and end with the right exit code."""

import codecs
import io
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import orbitgp
from orbitgp.cli.command import Command
from orbitgp.cli.commands import COMMANDS
from orbitgp.cli.exit_codes import DEFECT, PIPE_CLOSED, code_of
from orbitgp.cli.output import Output


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    _print_in_utf8()
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        # also a line that cannot be parsed may ask for its error as JSON
        return _run(given, Output("--json" in given))
    except BrokenPipeError:
        # nobody reads any more; the interpreter would complain of it once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED


def _print_in_utf8() -> None:
    """Write files and pipes in UTF-8 on all systems; no character stops a terminal of another."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _run(given: list[str], output: Output) -> int:
    debug = "--debug" in given
    try:
        command, options = _parsed(given)
        output, debug = Output(options["json"]), options["debug"]
        with output.keeping_warnings():
            return command.run(options, output)
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt) as error:
        code = code_of(error)
        if debug or code == DEFECT:
            traceback.print_exc()
        output.fail(type(error).__name__, str(error) or type(error).__name__, code)
        return code


def _parsed(given: list[str]) -> tuple[Command, Mapping[str, Any]]:
    if {"-h", "--help", "--version"} & set(given):
        from orbitgp.cli.usage import usage_parser

        usage_parser(COMMANDS, orbitgp.__version__).parse_args(given)  # prints and exits
    from orbitgp.cli.parser import parse

    return parse(COMMANDS, given)
