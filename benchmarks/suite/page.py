"""docs/benchmarks.md, made of the recorded results."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.suite.contests import ENCODER, Result
from benchmarks.suite.methods import METHODS, methods_for
from benchmarks.suite.run import cells
from experiments.splits import SEEDS, SOURCES, Source, sizes_of
from experiments.tables import spread, table

FIGURE = "images/benchmarks.png"

TITLES = {
    "images": "Images",
    "encoder": "Photographs through an encoder",
    "series": "Series",
    "molecules": "Molecules",
}
SHOWN = {"error": (100, 1), "mae": (1, 2), "nll": (1, 3)}
"""Factor and digits of a score in a table."""

INTRODUCTION = (
    "orbitgp with its defaults beside other methods, with the same training inputs. "
    "This page is made by `python -m benchmarks.suite.summary` from what "
    "`python -m benchmarks.suite.run` recorded, whatever it says.",
    "The seed chooses the training inputs and starts each method; series are taken as their "
    "archive has them, so that there a method without random numbers gives the same with every "
    "seed. At most 2,000 test inputs are looked at, the same every time. Orbits and all else that "
    "is ours come from the training inputs by the evidence; others have their constants "
    "cross-validated, or stop by a fifth of the training inputs, and networks see images augmented "
    "by hand, as is usual for such images. Of 100 inputs a fifth are few to stop by: of "
    "fashion-mnist the network then stops early, with 62 % errors, where it has 44 % at its best.",
    "A cell is the mean and the standard deviation over seeds, of which there are {seeds} unless "
    "[n] says how many; – stands for what was not run, has failed, or has no probabilities. The "
    "best mean of a row is bold, ours or not.",
)
EXPLAINED = (
    "Each data set with each size, up to 1,000, and seed counts once. Our model without an orbit "
    "is one of the others. An error is tied if it exceeds the least one by at most one standard "
    "error of that, √(e(1 − e)/n) with n test inputs. The evidence picks well if the error of its "
    "choice is tied with that of the best of our candidates; `discover` has two candidates, what "
    "it found and no orbit, and does not count where it found nothing. Whether a test has 2,000 "
    "inputs or 28, it counts the same."
)
QUESTIONS = {
    "best_nll": "ours has the least NLL",
    "best_or_tied_error": "ours has the least error, or is tied",
    "evidence_picks": "the evidence picks the best of our candidates, or is tied",
    "ece_within": "our ECE is at most 0.05",
}


def page(results: Sequence[Result], summary: dict[str, Any], *, figure: bool) -> str:
    """All of it."""
    introduction = [wrapped(words.format(seeds=len(SEEDS))) for words in INTRODUCTION]
    parts = ["# Benchmarks", *introduction, "## In short", wrapped(EXPLAINED), short(summary)]
    if figure:
        parts.append(f"![Test error against the number of training images]({FIGURE})")
    for kind in TITLES:
        parts += section(kind, results)
    return "\n\n".join([*parts, *missing(results)]) + "\n"


def wrapped(words: str) -> str:
    """Lines of at most 100 characters."""
    return textwrap.fill(words, 100, break_long_words=False, break_on_hyphens=False)


def short(summary: dict[str, Any]) -> str:
    """The fractions, and how many cells each is over."""
    rows = []
    for name, words in QUESTIONS.items():
        share, many = summary[name], summary["cells"][name]
        rows.append([words, "–" if share is None else f"{100 * share:.0f} %", many])
    complete = f"{summary['complete_contests']} of {summary['contests']}"
    rows.append(["all methods were run", "", complete])
    return table(["", "share", "cells"], rows)


def section(kind: str, results: Sequence[Result]) -> list[str]:
    """Errors, then NLL, of one kind of data."""
    encoded = kind == "encoder"
    kinds = {"images": ("images", "photographs"), "encoder": ("photographs",)}.get(kind, (kind,))
    sources = [source for source in SOURCES if source.kind in kinds]
    known = [
        method.name
        for method in METHODS
        if set(kinds) & set(method.kinds) and method.name.startswith(ENCODER) == encoded
    ]
    score, unit = ("mae", "MAE, kcal/mol") if kind == "molecules" else ("error", "error, %")
    return [
        f"## {TITLES[kind]}",
        *(
            f"Test {words}:\n\n{scores(results, sources, known, name)}"
            for name, words in (
                (score, unit),
                ("nll", "NLL, nats"),
            )
        ),
    ]


def scores(
    results: Sequence[Result], sources: Sequence[Source], methods: Sequence[str], score: str
) -> str:
    """Rows are data and sizes, columns methods."""
    by_cell: dict[tuple[Any, ...], list[float]] = {}
    for found in results:
        if found.get(score) is not None:
            key = (found["data"], found["size"], found["method"])
            by_cell.setdefault(key, []).append(SHOWN[score][0] * found[score])
    rows = []
    for source in sources:
        for size in sizes_of(source):
            values = [by_cell.get((source.name, size, method), []) for method in methods]
            means = [sum(own) / len(own) if own else float("inf") for own in values]
            told = [
                _told(own, score, bold=bool(own) and mean == min(means))
                for own, mean in zip(values, means, strict=True)
            ]
            rows.append([source.name, f"{size:,}", *told])
    return table(["data", "N", *methods], rows)


def _told(values: Sequence[float], score: str, *, bold: bool) -> str:
    words = spread(values, SHOWN[score][1])
    words = f"**{words}**" if bold else words
    return f"{words} [{len(values)}]" if values and len(values) != len(SEEDS) else words


def missing(results: Sequence[Result]) -> list[str]:
    """What was not run, and what failed."""
    there = {(r["data"], r["size"], r["method"], r["seed"]) for r in results}
    every = cells()
    absent = [
        cell
        for cell in every
        if (cell.source.name, cell.size, cell.method.name, cell.seed) not in there
    ]
    failed = [found for found in results if "failed" in found]
    words = f"{len(absent):,} of {len(every):,} cells were not run, {len(failed):,} failed."
    parts = ["## What was not run", wrapped(words)]
    if absent:
        parts.append(_counts([(cell.source.name, cell.method.name) for cell in absent], every))
    if failed:
        reasons = Counter((r["data"], r["size"], r["method"], _line(r["failed"])) for r in failed)
        rows = [[*key, count] for key, count in sorted(reasons.items())]
        parts += ["What failed, and why:", table(["data", "N", "method", "reason", "seeds"], rows)]
    return parts


def _counts(absent: Sequence[tuple[str, str]], every: Sequence[Any]) -> str:
    """Cells that were not run, by data and method, of how many."""
    count, whole = Counter(absent), Counter((c.source.name, c.method.name) for c in every)

    def told(source: Source, method: str) -> str:
        key = (source.name, method)
        return f"{count[key]} of {whole[key]}" if count[key] else ""

    columns = [method.name for method in METHODS if any(m == method.name for _, m in count)]
    rows = [
        [source.name, *(told(source, method) for method in columns)]
        for source in SOURCES
        if any(count[source.name, method.name] for method in methods_for(source))
    ]
    return table(["not run", *columns], rows)


def _line(reason: str) -> str:
    """One that a table can hold."""
    return " ".join(reason.replace("|", "/").split())[:120]
