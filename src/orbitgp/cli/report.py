"""`orbitgp report`: what a run found, as a page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orbitgp.cli.command import RUN, Argument, Command
from orbitgp.cli.exit_codes import DONE
from orbitgp.cli.output import Output
from orbitgp.cli.schemas import ReportRecord

OUT = Argument("--out", "HTML file; RUN/report.html if not given", path=True)


def run(options: Mapping[str, Any], output: Output) -> int:
    """`orbitgp report`."""
    from orbitgp.reports import write_report

    out = None if options["out"] is None else Path(options["out"])
    path = str(write_report(Path(options["run"]), out))
    record: ReportRecord = {"schema": "orbitgp.report/1", "run": options["run"], "report": path}
    output.show(record, path)
    return DONE


REPORT = Command("report", "write what a run found as an HTML page", (RUN, OUT), run)
