"""What each transformation of a fitted model is worth, and how far it may go.

The evidence is profiled: wherever a range is moved to, the lengthscale, the kernel's variance and
the noise take their best values. The other ranges stay where they are. The interval of a range are
the widths at which this evidence falls by at most 2 nats, which for many data is an interval of
95 % (Wilks 1938).
"""

import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from orbitgp.evidence.ablation import Ablation, Worth
from orbitgp.evidence.fitted import NUM_PAIRED, FittedEvidence
from orbitgp.evidence.ranges import LearnedRange, groups, learned_parameters, with_width
from orbitgp.fit.problem import NUM_DRAW_SETS
from orbitgp.hyperparameters.learn import best_length
from orbitgp.hyperparameters.parameters import NARROWEST

FALL = 2.0
"""Nats by which the evidence falls at the ends of an interval."""

MAX_DATA = 1000
"""Data whose evidence is asked, if not said otherwise."""

LENGTH_STEPS = 3
FIRST_STEP, GROWTH, LAST_STEP = 0.12, 1.8, 0.7
"""Of the logarithm of a width, away from its best value: larger and larger, up to a factor of 2."""

WIDEST = math.log(64.0)
"""How far an interval is searched for, where a range has no limit: 64 times as wide, or as 1."""

FAR = 3.0
"""Times 2 nats: there a search ends, since the evidence may have a second optimum."""

NUM_REFINED = 3


def ablate(
    model: Any, X: Any, y: Any, *, num_data: int | None = None, random_state: int = 0
) -> Ablation:
    """Ask for every transformation of a fitted model what the evidence loses without it.

    Parameters
    ----------
    model : InvariantGPClassifier or InvariantGPRegressor
        A fitted estimator.
    X, y : array-like
        The data that it was fitted to.
    num_data : int, optional
        Inputs whose evidence is asked; all, but at most 1,000, if not given. More inputs give
        narrower intervals.
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
        If the model is not fitted, or the data do not suit it.

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
    generator = torch.Generator().manual_seed(random_state)
    asked = FittedEvidence(model, X, y, generator=generator)
    size = min(asked.num_data, MAX_DATA if num_data is None else num_data)
    orbit = asked.model.orbit
    worths = [_range_worth(asked, part, size) for part in learned_parameters(orbit)]
    worths += [_group_worth(asked, name, rest, size) for name, rest in groups(orbit)]
    return Ablation(worths, size)


def _range_worth(asked: FittedEvidence, part: LearnedRange, size: int) -> Worth:
    """Of one learned range."""
    landscape, z, places = asked.landscape(size), asked.z, part.places
    upper = max(asked.parameters.bounds[place][1] for place in places)

    def profile(log_width: float) -> tuple[np.ndarray, float]:
        """The evidence with this width of the upper end, and where it is."""
        moved = z.copy()
        moved[list(places)] += log_width - z[places[-1]]
        found, scales = best_length(landscape, moved, LENGTH_STEPS)
        return found, scales.evidence

    own = float(z[places[-1]])
    at, best = profile(own)
    off, without = best_length(landscape, with_width(z, places, math.log(NARROWEST)))
    halved, doubled = (profile(min(own + math.log(k), upper))[1] for k in (0.5, 2.0))
    interval = interval_around(
        lambda width: profile(width)[1], own, best, lowest=without.evidence, upper=upper
    )
    ends = tuple(_end(asked, part, z, width) for width in interval)
    asked.parameters.assign(z)
    return Worth(
        name=part.name,
        ends=asked.model.orbit.learned_ranges()[part.name],
        interval=(ends[0], ends[1]),
        removed=best - without.evidence,
        removed_error=_spread(
            lambda place: (
                asked.landscape(min(size, NUM_PAIRED), place).at(at).evidence
                - asked.landscape(min(size, NUM_PAIRED), place).at(off).evidence
            ),
            size,
        ),
        halved=best - halved,
        doubled=best - doubled,
    )


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
    """Widths further and further away, until the evidence is far below its best."""
    widths, step = [own], FIRST_STEP
    while widths[-1] != last and fall(widths[-1]) < FAR * FALL:
        width = widths[-1] + way * step
        widths.append(max(width, last) if way < 0 else min(width, last))
        step = min(step * GROWTH, LAST_STEP)
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


def _end(asked: FittedEvidence, part: LearnedRange, z: np.ndarray, log_width: float) -> float:
    """The upper end of a range with this width, in the unit of its name."""
    width = max(log_width, math.log(NARROWEST))
    asked.parameters.assign(with_width(z, part.places, width))
    end = asked.model.orbit.learned_ranges()[part.name][1]
    return end if math.isfinite(log_width) else round(end, 5)


def _group_worth(asked: FittedEvidence, name: str, rest: Any, size: int) -> Worth:
    """Of a fixed group: the orbit without it has the same draws of all others."""
    whole = asked.model.orbit

    def evidence(orbit: Any, num_data: int, place: int) -> float:
        asked.model.orbit = orbit
        found = best_length(asked.landscape(num_data, place), asked.z)[1].evidence
        asked.model.orbit = whole
        return found

    def lost(num_data: int, place: int) -> float:
        return evidence(whole, num_data, place) - evidence(rest, num_data, place)

    error = 0.0
    if not asked.sampling.enumerated:
        error = _spread(lambda place: lost(min(size, NUM_PAIRED), place), size)
    return Worth(name, None, None, lost(size, 0), error)


def _spread(difference: Callable[[int], float], size: int) -> float:
    """The standard deviation over sets of draws, for all data that are asked."""
    found = [difference(place) for place in range(NUM_DRAW_SETS)]
    return statistics.stdev(found) * max(1.0, size / NUM_PAIRED)
