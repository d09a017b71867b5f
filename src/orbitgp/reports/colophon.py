"""The end of a report: what was asked, with what, how long it took, and how to cite it."""

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from orbitgp.reports.history import Phase
from orbitgp.reports.record import FILES, Record
from orbitgp.reports.words import duration, number, safe, size

PAPER = """@inproceedings{vanderwilk2018learning,
  title     = {Learning Invariances using the Marginal Likelihood},
  author    = {van der Wilk, Mark and Bauer, Matthias and John, ST and Hensman, James},
  booktitle = {Advances in Neural Information Processing Systems 31},
  year      = {2018},
  url       = {https://arxiv.org/abs/1808.05563}
}"""
SOFTWARE = """@software{{orbitgp,
  title   = {{orbitgp: Gaussian processes that learn invariances from data}},
  author  = {{{{The orbitgp developers}}}},
  version = {{{version}}},
  license = {{Apache-2.0}}
}}"""


def colophon(record: Record) -> str:
    """Settings, versions, timing, files, citation."""
    parts = _timing(record) + _files(record) + _settings(record)
    return f'<section id="run"><h2>The run</h2>{parts}</section>{_cite(record)}'


def _timing(record: Record) -> str:
    history = record.history
    if history.began is None:
        return '<p class="missing">The log of this run is empty.</p>'
    resumed = f"; resumed {history.resumed} times" if history.resumed else ""
    rows = "".join(
        f'<tr><th scope="row">learning</th>'
        f'<td class="num">{duration(phase.seconds)}</td>'
        f'<td class="num">{_best(phase, record.shift)}</td>'
        f"<td>{safe(phase.reason or 'not finished')}</td></tr>"
        for phase in history.phases
    )
    rest = history.seconds - sum(phase.seconds for phase in history.phases)
    solving = (
        f'<tr><th scope="row">all else</th><td class="num">{duration(max(rest, 0.0))}</td><td></td>'
        "<td>solving for the posterior of all data, and calibrating</td></tr>"
    )
    return (
        f"<h3>Timing</h3><p>Began {_when(history.began)}{resumed}.</p>"
        '<div class="scroll"><table class="facts"><thead><tr><th scope="col">Phase</th>'
        '<th scope="col" class="num">Time</th><th scope="col" class="num">Best bound (nats)</th>'
        '<th scope="col">Ended because</th></tr></thead>'
        f"<tbody>{rows}{solving}</tbody></table></div>"
    )


def _best(phase: Phase, shift: float) -> str:
    values = [point.elbo for point in phase.curve if math.isfinite(point.elbo)]
    return number(max(values) + shift, 1) if values else "–"


def _when(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"


def _files(record: Record) -> str:
    present = {name: record.folder / name for name in FILES if (record.folder / name).is_file()}
    rows = "".join(
        f'<tr><th scope="row"><code>{name}</code></th>'
        f'<td class="num">{size(path.stat().st_size)}</td><td>{FILES[name]}</td></tr>'
        for name, path in present.items()
    )
    return (
        f"<h3>Files</h3><p>In <code>{safe(record.folder.resolve().name)}</code>:</p>"
        f'<div class="scroll"><table class="facts">{rows}</table></div>'
    )


def _settings(record: Record) -> str:
    settings = record.settings
    asked = _rows(_flat("", settings.get("parameters")))
    identity = {name: settings.get(name) for name in ("estimator", "seed", "data_sha256")}
    versions = _rows([*_flat("", identity), *_flat("", settings.get("versions"))])
    return (
        '<details><summary>Settings</summary><div class="scroll">'
        f'<table class="facts">{asked}</table></div></details>'
        '<details><summary>Versions and identity</summary><div class="scroll">'
        f'<table class="facts">{versions}</table></div></details>'
    )


def _flat(prefix: str, value: Any) -> Iterable[tuple[str, str]]:
    """Names with dots, and values in words."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(f"{prefix}.{name}" if prefix else str(name), inner)
    else:
        yield prefix, "default" if value is None else str(value)


def _rows(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(
        f'<tr><th scope="row">{safe(name)}</th><td>{safe(value)}</td></tr>' for name, value in pairs
    )


def _cite(record: Record) -> str:
    versions = record.settings.get("versions")
    version = versions.get("orbitgp", "") if isinstance(versions, dict) else ""
    software = SOFTWARE.format(version=version)
    return (
        '<section id="cite"><h2>How to cite</h2><p>The method: M. van der Wilk, M. Bauer, ST John '
        "and J. Hensman, <cite>Learning Invariances using the Marginal Likelihood</cite>, NeurIPS "
        '2018, <a href="https://arxiv.org/abs/1808.05563">arXiv:1808.05563</a>; and the software.'
        f'</p><div class="scroll"><pre>{safe(PAPER)}\n\n{safe(software)}</pre></div></section>'
    )
