"""`orbitgp resume`: continue a run that was stopped or killed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orbitgp.cli.command import RUN, Command
from orbitgp.cli.fit import fit_or_resume
from orbitgp.cli.options import read_options
from orbitgp.cli.output import Output
from orbitgp.errors import FileError


def run(options: Mapping[str, Any], output: Output) -> int:
    """`orbitgp resume`."""
    folder = Path(options["run"])
    if not folder.is_dir():
        raise FileError(f"{folder} is not a folder; give one that `orbitgp fit --out` made")
    return fit_or_resume(read_options(folder), folder, output)


RESUME = Command("resume", "continue a run that was interrupted", (RUN,), run)
