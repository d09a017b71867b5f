"""The report of a run: one HTML file."""

from pathlib import Path

from orbitgp.errors import FileError
from orbitgp.reports.colophon import colophon
from orbitgp.reports.gallery import gallery
from orbitgp.reports.performance import performance
from orbitgp.reports.record import Record, read_record
from orbitgp.reports.summary import head, title
from orbitgp.reports.training import training
from orbitgp.reports.words import safe
from orbitgp.sealed import write_atomically

STYLE = Path(__file__).parent / "style.css"


def write_report(run: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of a run folder, by default to report.html in it; returns its path.

    Only the folder is read, and the same folder gives the same bytes.
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
    sections = [head, gallery, training, performance, colophon]
    body = "\n".join(section(record) for section in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{safe(title(record))} · orbitgp report</title>\n"
        f"<style>\n{STYLE.read_text()}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )
