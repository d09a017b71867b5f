"""Who did best with the same training inputs, and did the evidence choose well?"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from benchmarks.suite.methods import methods_for
from experiments.splits import SOURCES

Result = dict[str, Any]

SMALL = 1000
"""Training inputs up to which results count."""

MAX_ECE = 0.05
ENCODER = "encoder-"
BY_NAME = {source.name: source for source in SOURCES}


class Contest(NamedTuple):
    """Ours and all others, with the same data, size and seed.

    Methods behind an encoder, which know other images, are contests of their own. Our own model
    without an orbit is among the others.
    """

    ours: Result
    others: Sequence[Result]

    @property
    def complete(self) -> bool:
        """Whether every method was run, though some may have failed."""
        source, encoded = BY_NAME[self.ours["data"]], is_encoded(self.ours)
        known = [m for m in methods_for(source) if m.name.startswith(ENCODER) == encoded]
        return len(self.others) == len(known) - 1

    def other(self, name: str) -> Result | None:
        """What another method found, if it did."""
        return next((o for o in self.others if o["method"] == name and "failed" not in o), None)


def is_encoded(result: Result) -> bool:
    """Whether its method saw images through an encoder."""
    return result["method"].startswith(ENCODER)


def contests(results: Iterable[Result]) -> list[Contest]:
    """Those of at most 1,000 training inputs that ours was run in."""
    groups: dict[tuple[Any, ...], list[Result]] = {}
    for found in results:
        if found["size"] <= SMALL:
            key = (found["data"], found["size"], found["seed"], is_encoded(found))
            groups.setdefault(key, []).append(found)
    met = []
    for group in groups.values():
        first = [found for found in group if found["method"] in ("ours", "encoder-ours")]
        others = [found for found in group if found not in first]
        met += [Contest(ours, others) for ours in first]
    return met


def loss(result: Result) -> float:
    """Error, or mean absolute error of numbers."""
    return result["error"] if "error" in result else result["mae"]


def has_best_nll(contest: Contest) -> bool | None:
    """Whether no other has less NLL; None if no other has any."""
    others = [other["nll"] for other in contest.others if other.get("nll") is not None]
    if not others:
        return None
    return "failed" not in contest.ours and contest.ours["nll"] <= min(others)


def has_best_error(contest: Contest) -> bool | None:
    """Whether no other has less error than ours less one standard error of theirs."""
    others = [other for other in contest.others if "failed" not in other]
    if not others:
        return None
    return "failed" not in contest.ours and is_tied(contest.ours, min(others, key=loss))


def evidence_picked(contest: Contest) -> bool | None:
    """Whether what the evidence chose is as good as the best of our candidates; None if unknown.

    `discover` tells two of them, what it found and no orbit; one, if it found nothing.
    """
    ours = contest.ours
    if "failed" in ours:
        return None
    if "candidates" in ours:
        tested = ours["candidates"]
        return is_tied(tested[ours["best"]], min(tested.values(), key=loss))
    none = contest.other("ours-none")
    if none is None or len(ours.get("evidence", {})) < 2:
        return None
    return is_tied(ours, min(ours, none, key=loss))  # `discover` takes nothing with less evidence


def is_calibrated(contest: Contest) -> bool | None:
    """Whether the ECE of ours is small; None for numbers."""
    if BY_NAME[contest.ours["data"]].kind == "molecules":
        return None
    return "failed" not in contest.ours and contest.ours["ece"] <= MAX_ECE


def is_tied(first: Result, best: Result) -> bool:
    """Whether an error is at most another one and its standard error, √(e(1 − e)/n) of classes."""
    return loss(first) <= loss(best) + best["error_error"]


QUESTIONS: dict[str, Callable[[Contest], bool | None]] = {
    "best_nll": has_best_nll,
    "best_or_tied_error": has_best_error,
    "evidence_picks": evidence_picked,
    "ece_within": is_calibrated,
}


def fractions(results: Iterable[Result]) -> dict[str, Any]:
    """The fraction of contests that each question is answered with yes, and of how many."""
    met = contests(results)
    answers = {
        name: [answer for answer in map(ask, met) if answer is not None]
        for name, ask in QUESTIONS.items()
    }
    return {
        **{name: sum(own) / len(own) if own else None for name, own in answers.items()},
        "cells": {name: len(own) for name, own in answers.items()},
        "contests": len(met),
        "complete_contests": sum(contest.complete for contest in met),
    }
