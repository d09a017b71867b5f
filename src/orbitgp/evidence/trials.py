"""One candidate of a comparison: fitted, and what it found."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from orbitgp.errors import FileError
from orbitgp.estimators.classifier import AUTO
from orbitgp.evidence.fitted import FittedEvidence
from orbitgp.fit.problem import NUM_DRAW_SETS
from orbitgp.orbits.ranges import Range, ranges_from
from orbitgp.sealed import MALFORMED, write_atomically

SMALLEST, LARGEST = 250, 2048
"""Sizes of the subsets whose evidence shows how much data a conclusion needs: 250, 500, …"""

FILE = "finding.json"


@dataclass(frozen=True)
class Finding:
    """What one candidate made of the data.

    Parameters
    ----------
    name : str
        Of the candidate.
    evidence, evidence_error : float
        In nats.
    kind : str
        "exact" or "bound".
    likelihood : str
        The likelihood that all evidence refers to: "gaussian" (of numbers or one-hot labels), or
        the one that was asked for, such as "softmax".
    num_data : int
        The number of inputs of the fit.
    learned : str
        The learned transformations, in words.
    ranges : tuple of Range
        What was learned, as numbers.
    seconds : float
        The time of its fit.
    by_draws : tuple of float
        The evidence of 500 of the data with each of several sets of transformations: exact for
        "gaussian", else a bound with a variable for each input.
    by_size : dict of int to float
        The same of the first n data, with the ranges and scales learned from all data. All data are
        among them if `kind` is that of the other numbers.
    """

    name: str
    evidence: float
    evidence_error: float
    kind: str
    likelihood: str
    num_data: int
    learned: str
    ranges: tuple[Range, ...]
    seconds: float
    by_draws: tuple[float, ...]
    by_size: dict[int, float]

    def __str__(self) -> str:
        """One line."""
        return f"{self.name}: {self.evidence:,.1f} ± {self.evidence_error:.1f} nats, {self.kind}"


@dataclass(frozen=True)
class Trial:
    """A candidate that is to be fitted: an estimator with its parameters, and the data."""

    name: str
    estimator: Any
    X: np.ndarray
    y: np.ndarray
    seed: int

    def run(self) -> tuple[Finding, Any]:
        """Fit, or read what was fitted before, and ask for the evidence of parts of the data."""
        start = time.perf_counter()
        estimator = self.estimator.fit(self.X, self.y)
        seconds = time.perf_counter() - start
        folder = None if estimator.run is None else Path(estimator.run)
        if folder is not None and (folder / FILE).exists():
            return read_finding(folder / FILE), estimator
        found = finding_of(estimator, self, seconds)
        if folder is not None:
            text = json.dumps(asdict(found), indent=2, ensure_ascii=False)
            write_atomically(folder / FILE, text.encode())
        return found, estimator


def finding_of(estimator: Any, trial: Trial, seconds: float) -> Finding:
    """What a fitted candidate found."""
    generator = torch.Generator().manual_seed(trial.seed)
    asked = FittedEvidence(estimator, trial.X, trial.y, generator=generator)
    by_size = {size: asked.at(size) for size in subset_sizes(asked.num_data)}
    if estimator.evidence_kind_ == asked.kind:
        by_size[asked.num_data] = float(estimator.evidence_)
    return Finding(
        name=trial.name,
        evidence=float(estimator.evidence_),
        evidence_error=float(estimator.evidence_error_),
        kind=estimator.evidence_kind_,
        likelihood=likelihood_of(estimator),
        num_data=asked.num_data,
        learned=estimator.orbit_.describe(),
        ranges=estimator.orbit_.learned_ranges(),
        seconds=round(seconds, 2),
        by_draws=asked.by_draws(),
        by_size=by_size,
    )


def likelihood_of(estimator: Any) -> str:
    """Return the likelihood that the evidence of an estimator refers to."""
    name = getattr(estimator, "likelihood", AUTO)  # a regressor has one only
    return AUTO if name == "auto" else str(name)


def subset_sizes(num_data: int) -> list[int]:
    """250, 500, 1,000, 2,000, as far as they are fewer than all."""
    sizes = [SMALLEST]
    while sizes[-1] * 2 <= LARGEST:
        sizes.append(sizes[-1] * 2)
    return [size for size in sizes if size < num_data]


def read_finding(path: Path) -> Finding:
    """What a trial wrote before."""
    try:
        found = json.loads(path.read_bytes())
        return _finding_from(found)
    except (OSError, RecursionError, *MALFORMED) as error:
        raise FileError(
            f"{path} cannot be read ({type(error).__name__}: {error}); delete it to compute it "
            "again"
        ) from None


def _finding_from(found: Mapping[str, Any]) -> Finding:
    if found.keys() != {field.name for field in fields(Finding)}:
        raise ValueError(f"keys {sorted(found)}")
    if len(found["by_draws"]) not in (1, NUM_DRAW_SETS):
        raise ValueError(f"{len(found['by_draws'])} sets of draws")
    by_size = {int(size): float(value) for size, value in found["by_size"].items()}
    num_data = int(found["num_data"])
    if not all(0 < size <= num_data < 2**53 for size in (num_data, *by_size)):
        raise ValueError(f"sizes {sorted(by_size)} of {num_data} inputs")
    return Finding(
        name=str(found["name"]),
        evidence=float(found["evidence"]),
        evidence_error=float(found["evidence_error"]),
        kind=str(found["kind"]),
        likelihood=str(found["likelihood"]),
        num_data=num_data,
        learned=str(found["learned"]),
        ranges=ranges_from(found["ranges"]),
        seconds=float(found["seconds"]),
        by_draws=tuple(float(value) for value in found["by_draws"]),
        by_size=by_size,
    )
