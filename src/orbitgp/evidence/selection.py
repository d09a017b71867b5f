"""Forward and backward selection of transformations, by the exact evidence of some data."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from orbitgp.evidence.fitted import NUM_PAIRED, FittedEvidence
from orbitgp.evidence.ranges import composed, learned_parameters, leaves, split_unit
from orbitgp.evidence.transformations import Transformation, is_closed, orbit_of
from orbitgp.hyperparameters.learn import Landscape, best_length
from orbitgp.hyperparameters.parameters import NARROWEST, Parameters
from orbitgp.hyperparameters.subset_evidence import Subset
from orbitgp.orbit_model import OrbitModel
from orbitgp.orbits.base import FiniteOrbit, Identity, Orbit
from orbitgp.orbits.noise import GaussianNoise

NUM_DATA, NUM_DRAWS = 300, 32
"""Data and draws that transformations are tried on."""

LENGTH_STEPS = 2

WORTHWHILE, HOPELESS = 2.0, -20.0
"""Nats that one more transformation must add to the evidence of these data, and below which it is
not tried again."""


@dataclass(frozen=True)
class Step:
    """One transformation that was tried: its best width, the nats that it added, and if it stays.

    Parameters
    ----------
    name : str
        Of the transformation.
    width : float
        The best of those that were tried, in radians, logarithms of factors or half-widths.
    gain : float
        Nats, for some of the data.
    taken : bool
        Whether it is part of the orbit from here on.
    """

    name: str
    width: float
    gain: float
    taken: bool


class Trials:
    """The evidence of the same data for one orbit after another."""

    def __init__(self, asked: FittedEvidence) -> None:
        self.asked = asked
        rows = asked.sampling.order[:NUM_DATA]
        problem = asked.sampling.problem
        self.x, self.targets = problem.examples.x[rows], asked.sampling.targets[rows]
        self.max_ratio = problem.max_ratio
        self.num_data = len(rows)
        self.start = asked.z[asked.parameters.lengths]

    def evidence(self, orbit: Orbit, lengths: np.ndarray) -> tuple[float, np.ndarray]:
        """With the best lengthscale near this one, which is returned too."""
        model = OrbitModel(**self.asked.model.parts(orbit=orbit))
        parameters = Parameters(model)
        subset = Subset(self.x, self.targets, self._noise(orbit))
        landscape = Landscape(model, parameters, subset, self.max_ratio)
        z = parameters.vector()
        z[parameters.lengths] = lengths
        z, scales = best_length(landscape, z, LENGTH_STEPS)
        return scales.evidence, z[parameters.lengths]

    def _noise(self, orbit: Orbit) -> Float[Tensor, "1 S K"] | None:
        if isinstance(orbit, FiniteOrbit) and orbit.size <= NUM_DRAWS:
            return None
        return orbit.shared_noise(NUM_DRAWS, generator=self.asked.draws())


def forward(
    trials: Trials,
    transformations: Sequence[Transformation],
    told: Callable[[Step], None] = lambda _: None,
) -> tuple[dict[Transformation, float], list[Step]]:
    """Each alone, then one after the other while it adds evidence, the most worthwhile first.

    Those that added nothing are tried again as long as others were taken meanwhile.
    """
    best, lengths = trials.evidence(orbit_of({}), trials.start)
    alone = {part: _best_width(trials, {}, part, lengths) for part in transformations}
    waiting = sorted(alone, key=lambda part: -alone[part][0])
    chosen: dict[Transformation, float] = {}
    steps: list[Step] = []
    tried: dict[Transformation, int] = {}
    while waiting:
        part = waiting.pop(0)
        if tried.get(part) == len(chosen):  # nothing was taken since it was tried last
            break
        tried[part] = len(chosen)
        trial = _best_width(trials, chosen, part, lengths) if chosen else alone[part]
        step = Step(part.name, trial[1], trial[0] - best, trial[0] > best + WORTHWHILE)
        steps.append(step)
        told(step)
        if step.taken:
            best, chosen[part], lengths = trial
        elif step.gain > HOPELESS:
            waiting.append(part)
    return chosen, steps


def _best_width(
    trials: Trials,
    chosen: Mapping[Transformation, float],
    part: Transformation,
    lengths: np.ndarray,
) -> tuple[float, float, np.ndarray]:
    """The evidence, the width and the lengthscale of one more transformation."""
    if not is_closed({**chosen, part: part.widths[0]}, trials.x.shape[1:]):
        return -math.inf, 0.0, lengths
    found = [
        (trials.evidence(orbit_of({**chosen, part: width}), lengths), width)
        for width in part.widths
    ]
    (evidence, own), width = max(found, key=lambda trial: trial[0][0])
    return evidence, width, own


class Eliminations:
    """The evidence of a fitted model without some of its transformations."""

    def __init__(self, asked: FittedEvidence, chosen: Sequence[Transformation]) -> None:
        self.asked, self.chosen = asked, tuple(chosen)
        self.orbit = asked.model.orbit

    def evidence(self, removed: Sequence[Transformation]) -> float:
        """Of some data, with the best lengthscale; ranges that stay keep their widths."""
        asked, z = self.asked, self.asked.z.copy()
        names = {name for part in removed for name in part.ranges}
        for own in learned_parameters(self.orbit):
            if split_unit(own.name)[0] in names:
                z[list(own.places)] = math.log(NARROWEST)
        asked.parameters.assign(z)
        asked.model.orbit = self._rest(removed)
        found = best_length(asked.landscape(NUM_PAIRED), z)[1].evidence
        asked.model.orbit = self.orbit
        asked.parameters.assign(asked.z)
        return found

    def _rest(self, removed: Sequence[Transformation]) -> Orbit:
        """The orbit without groups, or noise, that are removed; all others have the draws they had.

        A group of several may become a smaller one.
        """
        whole = [part for part in self.chosen if not part.ranges]
        if not set(removed) & set(whole):
            return self.orbit
        kept = orbit_of({part: part.widths[0] for part in whole if part not in removed})
        groups = [part for part in leaves(kept) if isinstance(part, FiniteOrbit)]
        noisy = any(isinstance(part, GaussianNoise) for part in leaves(kept))
        finite, others = [], []
        for part in leaves(self.orbit):
            if isinstance(part, FiniteOrbit):
                finite.append(groups.pop(0) if groups else Identity())
            else:
                others.append(part if noisy or not isinstance(part, GaussianNoise) else Identity())
        return composed([*finite, *others])


def backward(trials: Eliminations, claimed: float, num_data: int) -> list[Step]:
    """Take away the least worthwhile, one after the other, while it is worth too few nats.

    What it is worth to some data is taken to grow with their number.
    """
    share = num_data / min(num_data, NUM_PAIRED)
    removed: list[Transformation] = []
    steps: list[Step] = []
    best = trials.evidence([])
    while len(removed) < len(trials.chosen):
        waiting = [part for part in trials.chosen if part not in removed]
        left = {part: trials.evidence([*removed, part]) for part in waiting}
        part = max(left, key=lambda part: left[part])
        worth = share * (best - left[part])
        if worth >= claimed:
            break
        steps.append(Step(part.name, 0.0, worth, False))
        removed.append(part)
        best = left[part]
    return steps
