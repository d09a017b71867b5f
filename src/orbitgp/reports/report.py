"""The report of a run: one HTML file."""

from pathlib import Path

from orbitgp.errors import FileError
from orbitgp.reports.colophon import colophon
from orbitgp.reports.gallery import gallery
from orbitgp.reports.page import render
from orbitgp.reports.performance import performance
from orbitgp.reports.record import Record, read_record
from orbitgp.reports.sizes import sizes
from orbitgp.reports.summary import summary
from orbitgp.reports.training import training
from orbitgp.reports.worths import worths
from orbitgp.sealed import write_atomically

SECTIONS = (summary, gallery, worths, sizes, training, performance, colophon)
"""Each makes of the record what the template of its name shows."""


def write_report(run: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of a run folder, by default to report.html in it; returns its path.

    Only the folder is read, and of folders beside it what `compare` left there; the same files give
    the same bytes.
    """
    folder = Path(run)
    path = folder / "report.html" if out is None else Path(out)
    text = report_html(read_record(folder))
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error}") from None
    return path


def report_html(record: Record) -> str:
    """The whole page."""
    views = {section.__name__: section(record) for section in SECTIONS}
    return render("report.html.jinja", record=record, **views)
