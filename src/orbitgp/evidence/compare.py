"""Which orbit, feature map or kernel explains the labels best?"""

import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from orbitgp.errors import InputError
from orbitgp.estimators import InvariantGPClassifier, InvariantGPRegressor
from orbitgp.estimators.base import InvariantGPEstimator
from orbitgp.evidence.comparison import Comparison
from orbitgp.evidence.executors import results_of
from orbitgp.evidence.trials import Trial, likelihood_of
from orbitgp.orbits.base import Orbit

Candidate = str | Orbit | Mapping[str, Any]


def compare(
    candidates: Mapping[str, Candidate] | Sequence[Candidate],
    X: Any,
    y: Any,
    *,
    estimator: Any = None,
    executor: Any = None,
    run: str | Path | None = None,
    random_state: int = 0,
    verbose: bool = False,
) -> Comparison:
    """Rank orbits, feature maps and kernels by their evidence on the same data.

    Every candidate is fitted with the same rows, seeds and sizes. No test or validation data are
    needed, and all data are used.

    Parameters
    ----------
    candidates : mapping of str to candidate, or sequence of candidates
        A candidate is the name of an orbit, an orbit, or a mapping of parameters of the estimator,
        as in ``{"orbit": "affine", "feature_map": OrientedEnergy()}``.
    X : array-like of shape (n, H, W), (n, C, H, W) or (n, n_features)
        Inputs.
    y : array-like of shape (n,) or (n, n_outputs)
        Labels, or numbers.
    estimator : InvariantGPClassifier or InvariantGPRegressor, optional
        Has all other parameters. Without it, a regressor for floats and a classifier for all else,
        with their defaults.
    executor : executor, optional
        Where fits run: anything with `submit`, as in `concurrent.futures`, or a `joblib.Parallel`,
        which reports each fit when it ends if its `return_as` is "generator_unordered". Without
        it, local processes share the cores.
    run : str or pathlib.Path, optional
        Folder with a run for each candidate. The same call continues an interrupted comparison.
    random_state : int, default=0
        Seed of all random draws.
    verbose : bool, default=False
        Print a line for each candidate that is done.

    Returns
    -------
    Comparison
        A table with the evidence of each candidate, the difference to the best and its standard
        error; printed as text, or `frame()` for pandas.

    Raises
    ------
    InputError
        If there is no candidate, one cannot be used, or their likelihoods differ.

    See Also
    --------
    ablate : What each transformation of a fitted model is worth.
    discover : The same without a list of candidates.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from sklearn.datasets import load_digits
    >>> from orbitgp import compare
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X.reshape(-1, 8, 8)
    >>> with ThreadPoolExecutor(1) as here:
    ...     found = compare(["none", "mirror"], X[:100], y[:100], executor=here)
    >>> found.best.name
    'none'
    """
    data = np.asarray(X), np.asarray(y)
    parts = {"estimator": estimator, "run": run, "random_state": random_state}
    trials = trials_of(candidates, *data, **parts)
    findings, best, start = [], None, time.perf_counter()
    for found, fitted in results_of([trial.run for trial in trials], executor):
        if not findings or found.evidence > max(other.evidence for other in findings):
            best = fitted  # the others are let go, since each may hold gigabytes
        findings.append(found)
        if verbose:
            done = f"{len(findings)} of {len(trials)}, {time.perf_counter() - start:.0f} s"
            print(f"{done}: {found}", file=sys.stderr, flush=True)
    return Comparison(findings, len(data[0]), best)


def trials_of(
    candidates: Mapping[str, Candidate] | Sequence[Candidate],
    X: np.ndarray,
    y: np.ndarray,
    *,
    estimator: Any = None,
    run: str | Path | None = None,
    random_state: int = 0,
) -> list[Trial]:
    """What `compare` runs, in the order of the candidates."""
    trials = []
    for name, candidate in _named(candidates).items():
        fresh = prepared(candidate, estimator, y, folder_of(run, name), random_state)
        fresh.starting_from(X)  # before any candidate is fitted
        trials.append(Trial(name, fresh, X, y, random_state))
    _check_likelihoods(trials)
    return trials


def _check_likelihoods(trials: Sequence[Trial]) -> None:
    """Refuse candidates whose evidence refers to different likelihoods."""
    found = {trial.name: likelihood_of(trial.estimator) for trial in trials}
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name!r} has {likelihood}" for name, likelihood in found.items())
        raise InputError(
            "candidates must have the same likelihood, since the density of one-hot labels and a "
            f"bound on their probability cannot be compared; {listed}: compare each likelihood by "
            "itself"
        )


def _named(candidates: Any) -> dict[str, Candidate]:
    """Each candidate with a name of its own."""
    if isinstance(candidates, Mapping):
        named = {str(name): candidate for name, candidate in candidates.items()}
    elif isinstance(candidates, Sequence) and not isinstance(candidates, str):
        named = {}
        for candidate in candidates:
            name = _name_of(candidate)
            place = sum(other.split(" #")[0] == name for other in named)
            named[f"{name} #{place + 1}" if place else name] = candidate
    else:
        raise InputError(
            f"candidates are a mapping of names to candidates, or a list; got {candidates!r:.80}"
        )
    if not named:
        raise InputError('there is no candidate to compare; give some, as in ["none", "affine"]')
    return named


def _name_of(candidate: Any) -> str:
    """A string is its own name; others are called by what they are made of."""
    if isinstance(candidate, str):
        return candidate
    if isinstance(candidate, Mapping):
        return ", ".join(f"{_name_of(value)}" for value in candidate.values()) or "defaults"
    return type(candidate).__name__ if isinstance(candidate, nn.Module) else str(candidate)


def prepared(
    candidate: Any, estimator: Any, y: np.ndarray, run: str | Path | None, seed: int
) -> InvariantGPEstimator:
    """A copy of the estimator with the parameters of a candidate."""
    given = dict(candidate) if isinstance(candidate, Mapping) else {"orbit": candidate}
    if estimator is None:
        estimator = InvariantGPRegressor() if y.dtype.kind == "f" else InvariantGPClassifier()
    if not isinstance(estimator, InvariantGPEstimator):
        raise InputError(
            "estimator must be an InvariantGPClassifier or InvariantGPRegressor; got "
            f"{estimator!r:.80}"
        )
    known = estimator.get_params(deep=False)
    unknown = given.keys() - known.keys()
    if unknown:
        raise InputError(
            f"{type(estimator).__name__} has no parameter {', '.join(sorted(unknown))}; a "
            f"candidate is a mapping of some of {', '.join(sorted(known))}"
        )
    return type(estimator)(**{**known, "random_state": seed, "run": run, **given})


def folder_of(run: str | Path | None, name: str) -> Path | None:
    """A folder for each candidate, with a name that every file system takes."""
    if run is None:
        return None
    return Path(run) / re.sub(r"[^\w+.#=-]+", "_", name)
