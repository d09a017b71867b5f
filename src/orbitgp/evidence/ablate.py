"""What each transformation of a fitted model is worth, and how far it may go.

The evidence is profiled: wherever a range is moved to, the kernel's variance and the noise take
their best values, and so does the lengthscale where a range is removed, halved or doubled. The
other ranges stay where they are. The interval of a range are the widths at which this evidence
falls by at most 2 nats, which for many data is an interval of 95 % (Wilks 1938).
"""

import functools
import math
import statistics
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from orbitgp.errors import InputError
from orbitgp.estimators.folder import num_inputs
from orbitgp.evidence.ablation import Ablation, Worth, write_ablation
from orbitgp.evidence.fitted import FittedEvidence
from orbitgp.evidence.ranges import (
    LearnedRange,
    fixed_parts,
    learned_parameters,
    with_width,
)
from orbitgp.fit.checks import IDENTIFIED, NUM_EXAMINED
from orbitgp.hyperparameters.learn import best_length
from orbitgp.hyperparameters.parameters import NARROWEST
from orbitgp.orbits.base import Orbit
from orbitgp.orbits.compose import FEWEST

FALL = 2.0
"""Nats by which the evidence falls at the ends of an interval."""

MAX_DATA = 500
"""Data whose evidence is asked, if not said otherwise."""

LENGTH_STEPS = 2
NUM_SETS = 4
"""Sets of draws that estimate the standard error of what is lost."""

WIDEST = math.log(64.0)
"""How far an interval is searched for, where a range has no limit: 64 times as wide, or as 1."""

FAR = 3.0
"""Times 2 nats: there a search ends, since the evidence may have a second optimum."""

NUM_REFINED = 3


def ablate(
    model: Any,
    X: Any,
    y: Any,
    *,
    num_data: int | None = None,
    run: str | Path | None = None,
    random_state: int = 0,
) -> Ablation:
    """Ask for every transformation of a fitted model what the evidence loses without it.

    For classes this is the exact evidence of one-hot labels with Gaussian noise, by which ranges
    are learned, whatever the likelihood of the model. Do not compare it with a bound for another
    likelihood.

    Parameters
    ----------
    model : InvariantGPClassifier or InvariantGPRegressor
        A fitted estimator.
    X, y : array-like
        The data that it was fitted to.
    num_data : int, optional
        Inputs whose evidence is asked; all, but at most 500, if not given. More inputs give
        narrower intervals.
    run : str or pathlib.Path, optional
        Folder of the fitted model's run, where the result is kept for the report.
    random_state : int, default=0
        Seed of the order of the data and of the orbit draws.

    Returns
    -------
    Ablation
        For each transformation its range with an interval, and the nats that are lost if it is
        removed, halved or doubled. Printed, it is a sentence for each.

    Raises
    ------
    InputError
        If the model is not fitted, the data do not suit it, or `run` is not the folder of a
        finished run.

    See Also
    --------
    compare : Rank whole orbits.

    Examples
    --------
    >>> import numpy as np
    >>> from orbitgp import InvariantGPRegressor, SignFlips, ablate
    >>> X = np.random.default_rng(0).uniform(-2, 2, (40, 1))
    >>> model = InvariantGPRegressor(SignFlips(0), random_state=0).fit(X, np.cos(2 * X[:, 0]))
    >>> ablate(model, X, np.cos(2 * X[:, 0]))["sign of coordinate 0"].identified
    True
    """
    if run is not None and not (Path(run) / "model.safetensors").is_file():
        raise InputError(
            f"run is the folder of a finished run, with model.safetensors in it; got {run}: give "
            "the folder that was passed as run=… to the estimator, or none"
        )
    generator = torch.Generator().manual_seed(random_state)
    asked = FittedEvidence(model, X, y, generator=generator)
    if run is not None:
        _warn_of_other_data(Path(run), asked.num_data)
    found = Ablating(asked, MAX_DATA if num_data is None else num_data).all()
    if run is not None:
        write_ablation(found, Path(run))
    return found


def _warn_of_other_data(run: Path, num_data: int) -> None:
    fitted = num_inputs(run)
    if fitted != num_data:
        warnings.warn(
            f"the model of {run} was fitted to {fitted:,} inputs, and these are {num_data:,}: its "
            "report will show what transformations are worth to these",
            stacklevel=3,
        )


class Ablating:
    """The profiled evidence of a fitted model as it is, and without some of its parts."""

    def __init__(self, asked: FittedEvidence, num_data: int) -> None:
        self.asked, self.size = asked, min(asked.num_data, num_data)
        self.landscape = asked.landscape(self.size)
        self.at, scales = best_length(self.landscape, asked.z, LENGTH_STEPS)
        self.best = scales.evidence

    def all(self) -> Ablation:
        """Of every transformation."""
        orbit = self.asked.model.orbit
        worths = [self.of_range(part) for part in learned_parameters(orbit)]
        worths += [self.of_part(part, rest) for part, rest in fixed_parts(orbit)]
        return Ablation(worths, self.size)

    def of_range(self, part: LearnedRange) -> Worth:
        """Of one learned range."""
        asked, places = self.asked, part.places
        upper = max(asked.parameters.bounds[place][1] for place in places)
        own = float(self.at[places[-1]])

        def moved(log_width: float) -> np.ndarray:
            """Where the upper end has this width."""
            other = self.at.copy()
            other[list(places)] += log_width - own
            return other

        def near(log_width: float) -> float:
            """The evidence; so near that the lengthscale hardly changes."""
            return self.landscape.at(moved(log_width)).evidence

        def far(log_width: float) -> float:
            """The evidence with the lengthscale that suits this width."""
            return best_length(self.landscape, moved(log_width), LENGTH_STEPS)[1].evidence

        off, without = best_length(
            self.landscape, with_width(self.at, places, math.log(NARROWEST)), LENGTH_STEPS
        )
        interval = interval_around(near, own, self.best, lowest=without.evidence, upper=upper)
        ends = tuple(self._end(part, width) for width in interval)
        asked.parameters.assign(asked.z)
        removed = self.best - without.evidence
        return Worth(
            name=part.range.words,
            range=replace(part.range, identified=removed >= IDENTIFIED),
            interval=(ends[0], ends[1]),
            removed=removed,
            removed_error=self._error(self.by_draws, self._by_draws(off)),
            halved=self.best - far(own - math.log(2)),
            doubled=self.best - far(min(own + math.log(2), upper)),
        )

    def of_part(self, part: Orbit, rest: Orbit) -> Worth:
        """Of a group, or noise: the orbit without it has as many draws of all the others."""
        asked, whole, error = self.asked, self.asked.model.orbit, 0.0
        num_draws, before = asked.num_draws, [] if asked.sampling.enumerated else self.by_draws
        asked.model.orbit = rest
        if num_draws >= FEWEST * whole.num_points:
            asked.num_draws = num_draws * rest.num_points // whole.num_points
        without = best_length(asked.landscape(self.size), self.at)[1].evidence
        if before:
            error = self._error(before, self._by_draws(self.at))
        asked.model.orbit, asked.num_draws = whole, num_draws
        return Worth(part.describe(), None, None, self.best - without, error)

    def _end(self, part: LearnedRange, log_width: float) -> float:
        """The upper end of a range with this width, in its unit."""
        width = max(log_width, math.log(NARROWEST))
        self.asked.parameters.assign(with_width(self.at, part.places, width))
        ranges = {found.key: found for found in self.asked.model.orbit.learned_ranges()}
        end = ranges[part.range.key].high
        return end if math.isfinite(log_width) else round(end, 5)

    @functools.cached_property
    def by_draws(self) -> list[float]:
        """The evidence of the whole orbit with each set of draws."""
        return self._by_draws(self.at)

    def _by_draws(self, z: np.ndarray) -> list[float]:
        """That of the orbit that the model has now."""
        size = min(self.size, NUM_EXAMINED)
        return [self.asked.landscape(size, place).at(z).evidence for place in range(NUM_SETS)]

    def _error(self, whole: list[float], without: list[float]) -> float:
        """The standard deviation of what is lost over sets of draws, for all data asked."""
        lost = [a - b for a, b in zip(whole, without, strict=True)]
        return statistics.stdev(lost) * max(1.0, self.size / NUM_EXAMINED)


def interval_around(
    evidence: Callable[[float], float], own: float, best: float, *, lowest: float, upper: float
) -> tuple[float, float]:
    """The log widths around the best one at which the evidence falls by 2 nats.

    −∞ where a width of 0 is inside, of which the evidence is `lowest`, and at most `upper`.
    """
    seen = {own: best}

    def fall(width: float) -> float:
        seen[width] = seen[width] if width in seen else evidence(width)
        return max(seen.values()) - seen[width]

    ends = []
    for way in (-1.0, 1.0):
        last = math.log(NARROWEST) if way < 0 else min(upper, max(own, 0.0) + WIDEST)
        if way < 0 and max(seen.values()) - lowest < FALL:
            ends.append(-math.inf)
        else:
            ends.append(_outermost(fall, _outward(fall, own, way, last)))
    return ends[0], ends[1]


def _outward(fall: Callable[[float], float], own: float, way: float, last: float) -> list[float]:
    """Half, a quarter, …, or double, four times, …, until the evidence is far below its best."""
    widths = [own]
    while widths[-1] != last and fall(widths[-1]) < FAR * FALL:
        width = widths[-1] + way * math.log(2)
        widths.append(max(width, last) if way < 0 else min(width, last))
    return widths


def _outermost(fall: Callable[[float], float], widths: list[float]) -> float:
    """The last width at which the evidence has fallen by 2 nats, or the last of all."""
    place = max(k for k, width in enumerate(widths) if k == 0 or fall(width) < FALL)
    if place == len(widths) - 1:
        return widths[-1]
    inside, outside = widths[place : place + 2]
    for _ in range(NUM_REFINED):
        middle = _crossing(fall, inside, outside)
        inside, outside = (middle, outside) if fall(middle) < FALL else (inside, middle)
    return _crossing(fall, inside, outside)


def _crossing(fall: Callable[[float], float], inside: float, outside: float) -> float:
    """Where √fall, which is nearly straight in the log width, reaches that of 2 nats."""
    low, high = (math.sqrt(max(fall(width), 0.0)) for width in (inside, outside))
    share = (math.sqrt(FALL) - low) / max(high - low, 1e-12)
    return inside + (outside - inside) * min(max(share, 0.1), 0.9)
