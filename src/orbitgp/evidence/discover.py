"""Which transformations leave the labels unchanged, among all that make sense for the data?

Forward: on some of the data, one transformation after the other while it adds evidence. Backward:
their ranges are learned together, and what is worth too little is taken away again. Then a fit
learns the ranges from all data.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from orbitgp.evidence.ablate import ablate
from orbitgp.evidence.ablation import Ablation
from orbitgp.evidence.compare import folder_of, prepared
from orbitgp.evidence.discovery import Discovery
from orbitgp.evidence.fitted import FittedEvidence
from orbitgp.evidence.kinds import checked_kind, suitable_transformations
from orbitgp.evidence.selection import Eliminations, SelectionStep, Trials, backward, forward
from orbitgp.evidence.transformations import Transformation, orbit_of
from orbitgp.fit.settings import TrainingSettings

CLAIMED = 5.0
"""Nats that a transformation must be worth to all data."""

NUM_ABLATED = 300
"""Inputs from which the intervals of ranges are estimated."""

LAST_FIT = {
    "max_steps": 6,
    "scan_size": 100,
    "climb_size": 200,
    "climb_draws": 16,
    "search_size": 300,
}
"""Training settings, at most, of the last fit, which starts from the widths that were found."""


def discover(
    X: Any,
    y: Any,
    *,
    estimator: Any = None,
    kind: str | None = None,
    transformations: Sequence[Transformation] | None = None,
    run: str | Path | None = None,
    random_state: int = 0,
    verbose: bool = False,
) -> Discovery:
    """Find the transformations that leave labels unchanged, without a list of candidates.

    For images: mirrors, quarter turns, rotation, scale, shear, shift, local deformation, contrast,
    brightness and noise, of colour images saturation and hue, too. For series: shift in time,
    cyclic shift, stretch, warp, scale, offset, drift and noise. For points in space: rotation,
    mirrors, translation, jitter and order. For rows of numbers: swaps and signs of columns, and
    cyclic shifts.

    Parameters
    ----------
    X : array-like of shape (n, H, W), (n, C, H, W) or (n, n_features)
        Inputs; series are (n, T) or (n, channels, T), points (n, points, columns).
    y : array-like of shape (n,) or (n, n_outputs)
        Labels, or numbers.
    estimator : InvariantGPClassifier or InvariantGPRegressor, optional
        Has all parameters but the orbit, such as `feature_map`. Without it, a regressor for floats
        and a classifier for all else, with their defaults.
    kind : {"images", "series", "points", "vectors"}, optional
        What inputs are. Without it short rows of numbers are vectors, and (n, H, W) or
        (n, C, H, W) images; give it where a shape may be something else.
    transformations : sequence of Transformation, optional
        What to choose from, if not what suits the kind of data.
    run : str or pathlib.Path, optional
        Folder with a run for each set of transformations that is learned from all data; the same
        call continues an interrupted one. `estimator.run` is the last of them, and keeps what each
        transformation is worth for its report.
    random_state : int, default=0
        Seed of all random draws.
    verbose : bool, default=False
        Print a line for each step.

    Returns
    -------
    Discovery
        The transformations, the path to them, the fitted estimator, what each is worth, and a
        sentence for a methods section.

    Raises
    ------
    InputError
        If the data cannot be used.

    See Also
    --------
    compare : Rank a list of candidates.
    ablate : What each transformation of a fitted model is worth.

    Examples
    --------
    >>> import numpy as np
    >>> from orbitgp import discover
    >>> X = np.random.default_rng(0).uniform(-2, 2, (60, 2))
    >>> discover(X, np.sin(X).sum(1)).names
    ['swap of columns 0 and 1']
    """
    start = time.perf_counter()
    X, y = np.asarray(X), np.asarray(y)
    if transformations is None:  # refused before the first fit
        kind = checked_kind(getattr(estimator, "image_shape", None) or X.shape[1:], kind)

    def fitted(chosen: Mapping[Transformation, float]) -> Any:
        name = "+".join(part.name.replace(" ", "-") for part in chosen) or "none"
        folder = folder_of(run, name)
        model: Any = prepared(orbit_of(chosen), estimator, y, folder, random_state)
        if chosen:
            settings = model.settings or TrainingSettings()
            fewer = {name: min(most, getattr(settings, name)) for name, most in LAST_FIT.items()}
            model.settings = replace(settings, **fewer)
        return model.fit(X, y)

    def report(words: str) -> None:
        if verbose:
            seconds = time.perf_counter() - start
            print(f"{seconds:4.0f} s  {words}", file=sys.stderr, flush=True)

    plain = fitted({})
    report(f"no invariance: {plain.evidence_:,.1f} nats")
    generator = torch.Generator().manual_seed(random_state)
    asked = FittedEvidence(plain, X, y, generator=generator)
    if transformations is None:
        shape = asked.sampling.problem.examples.x.shape[1:]
        transformations = suitable_transformations(shape, kind, unit=plain.scale_)
    trials = Trials(asked)
    chosen, path = forward(trials, transformations, lambda step: report(str(step)))
    if chosen:
        # nats of few data are taken to grow with their number
        share = trials.num_data / len(X)
        for step in backward(Eliminations(trials, chosen), CLAIMED * share):
            report(f"without {step.name}, which is worth {step.gain:,.1f} nats")
            path.append(step)
            chosen = {part: width for part, width in chosen.items() if part.name != step.name}
    model, ablation = plain, Ablation([], len(X))
    if chosen:
        report(f"learning {' and '.join(part.name for part in chosen)} from all data")
        model = fitted(chosen)
        report(f"{model.orbit_.describe()}: {model.evidence_:,.1f} nats")
        gain = model.evidence_ - plain.evidence_
        if gain < CLAIMED:
            path += [SelectionStep(part.name, 0.0, gain, False) for part in chosen]
            model = plain
        else:
            few = {"num_data": NUM_ABLATED, "run": model.run}
            ablation = ablate(model, X, y, **few, random_state=random_state)
    seconds = round(time.perf_counter() - start, 1)
    names = [part.name for part in transformations]
    return Discovery(model, path, names, ablation, float(plain.evidence_), len(X), seconds)
