"""Candidates by their evidence."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from orbitgp.errors import InputError
from orbitgp.evidence.tables import data_frame, text_table
from orbitgp.evidence.trials import Finding
from orbitgp.fit.checks import NUM_EXAMINED


@dataclass(frozen=True)
class Comparison:
    """What `compare` found, the candidate with the most evidence first.

    Parameters
    ----------
    findings : sequence of Finding
        One for each candidate.
    num_data : int
        Number of inputs.
    best_estimator : InvariantGPClassifier or InvariantGPRegressor, optional
        The fitted estimator with the most evidence; None if it was not fitted here.

    Examples
    --------
    >>> import joblib
    >>> import numpy as np
    >>> from orbitgp import compare, coordinate_swap
    >>> X = np.random.default_rng(0).uniform(-2, 2, (40, 2))
    >>> y = np.cos(X.sum(1)) + np.sin(X).prod(1)
    >>> candidates, here = {"none": "none", "swap": coordinate_swap(0, 1, 2)}, joblib.Parallel(1)
    >>> found = compare(candidates, X, y, executor=here)
    >>> found.best.name, found.difference("none")[0] < 0
    ('swap', True)
    """

    findings: Sequence[Finding]
    num_data: int
    best_estimator: Any = None

    def __post_init__(self) -> None:
        order = sorted(self.findings, key=lambda found: -found.evidence)
        object.__setattr__(self, "findings", tuple(order))

    @property
    def best(self) -> Finding:
        """The candidate with the most evidence."""
        return self.findings[0]

    def __getitem__(self, name: str) -> Finding:
        """The candidate of this name."""
        for found in self.findings:
            if found.name == name:
                return found
        names = ", ".join(found.name for found in self.findings)
        raise InputError(f"no candidate is called {name!r}; there are {names}")

    def difference(self, name: str, other: str | None = None) -> tuple[float, float]:
        """Evidence of a candidate less that of another one, and its standard error.

        Parameters
        ----------
        name : str
            The candidate.
        other : str, optional
            The one to compare it with; the best if not given.

        Returns
        -------
        tuple of float
            The difference in nats, and its standard error. Both candidates were evaluated with the
            same sets of transformations, so the error is the spread of their differences. It refers
            to the same likelihood as the evidence. If one evidence is exact and the other a bound,
            the one with the bound may have more than that.
        """
        first, second = self[name], self.best if other is None else self[other]
        return first.evidence - second.evidence, _paired_error(first, second, self.num_data)

    def by_size(self) -> dict[str, dict[int, float]]:
        """Return differences to the best for parts of the data: how much data a result needs.

        All are differences of exact evidence, or for likelihoods other than "gaussian" of bounds.

        Returns
        -------
        dict of str to dict of int to float
            For each candidate the number of inputs, and the difference in nats.
        """
        best = self.best.by_size
        return {
            found.name: {n: value - best[n] for n, value in found.by_size.items() if n in best}
            for found in self.findings
        }

    def records(self) -> list[dict[str, Any]]:
        """One dictionary for each candidate, as JSON can hold it."""
        rows = []
        for found, gaps in zip(self.findings, self.by_size().values(), strict=True):
            difference, error = self.difference(found.name)
            row = asdict(found) | {"difference": difference, "difference_error": error}
            rows.append(row | {"difference_by_size": gaps})
        return rows

    def frame(self) -> Any:
        """The table as a pandas DataFrame, one row for each candidate.

        Returns
        -------
        pandas.DataFrame
            Columns evidence, error, kind, difference, difference_error, learned, seconds, and the
            difference for each number of inputs, such as n=250.
        """
        columns = ("name", "evidence", "evidence_error", "kind", "difference", "difference_error")
        rows = [
            {name: row[name] for name in (*columns, "learned", "seconds")}
            | {f"n={size}": gap for size, gap in row["difference_by_size"].items()}
            for row in self.records()
        ]
        return data_frame(rows, index="name")

    def __str__(self) -> str:
        """The table for people."""
        likelihood = self.best.likelihood
        unit = "nats" if likelihood == "gaussian" else f"nats, {likelihood}"
        head = ["candidate", f"evidence ({unit})", "difference", "seconds", "learned"]
        rows = [
            [
                found.name,
                f"{found.evidence:,.1f} {found.kind}",
                limit_in_words(found, self.best) + _gap(*self.difference(found.name)),
                f"{found.seconds:.0f}",
                found.learned,
            ]
            for found in self.findings
        ]
        return text_table(head, rows)


def _paired_error(first: Finding, second: Finding, num_data: int) -> float:
    """The standard deviation of differences over sets of draws, for all data.

    Where a whole orbit needs no draws there is one number for all sets. The spread is
    estimated from some of the data, and taken to grow with their number.
    """
    if first is second:
        return 0.0
    count = max(len(first.by_draws), len(second.by_draws))
    if count == 1:
        return 0.0
    (a, b) = (
        f.by_draws if len(f.by_draws) == count else f.by_draws * count for f in (first, second)
    )
    gaps = [x - z for x, z in zip(a, b, strict=True)]
    return statistics.stdev(gaps) * max(1.0, num_data / NUM_EXAMINED)


def limit_in_words(found: Finding, best: Finding) -> str:
    """Return "≥ " or "≤ " if one of the two has a bound, and perhaps more evidence than that."""
    if found.kind == best.kind:
        return ""
    return "≥ " if found.kind == "bound" else "≤ "


def _gap(difference: float, error: float) -> str:
    return f"{difference:+,.1f} ± {error:.1f}".replace("-", "−") if difference else "best"
