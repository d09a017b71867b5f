"""Forward and backward selection of transformations, by the exact evidence of some data."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from orbitgp.evidence.fitted import FittedEvidence
from orbitgp.evidence.ranges import composed, learned_parameters, leaves, split_unit
from orbitgp.evidence.transformations import Transformation, is_closed, orbit_of
from orbitgp.hyperparameters.learn import Landscape, best_length, climb
from orbitgp.hyperparameters.parameters import NARROWEST, Parameters
from orbitgp.hyperparameters.subset_evidence import Subset
from orbitgp.orbit_model import OrbitModel
from orbitgp.orbits.base import FiniteOrbit, Identity, Orbit
from orbitgp.orbits.noise import GaussianNoise

NUM_DATA, NUM_DRAWS, MAX_POINTS = 300, 32, 128
"""Data and draws that transformations are tried on, and orbit points that draws and groups make."""

LENGTH_STEPS, CLIMB_STEPS = 2, 4

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

    def __str__(self) -> str:
        """One line."""
        sign = "+" if self.taken else "·"
        return f"{sign} {self.name}: {self.gain:+,.1f} nats".replace("-", "−")


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

    def landscape(self, orbit: Orbit) -> Landscape:
        """The evidence with this orbit, as a function of its hyperparameters."""
        model = OrbitModel(**self.asked.model.parts(orbit=orbit))
        subset = Subset(self.x, self.targets, self._noise(orbit))
        return Landscape(model, Parameters(model), subset, self.max_ratio)

    def evidence(self, orbit: Orbit, lengths: np.ndarray) -> tuple[float, np.ndarray]:
        """With the best lengthscale near this one, which is returned too."""
        landscape = self.landscape(orbit)
        places = landscape.parameters.lengths
        z = landscape.parameters.vector()
        z[places] = lengths
        z, scales = best_length(landscape, z, LENGTH_STEPS)
        return scales.evidence, z[places]

    def _noise(self, orbit: Orbit) -> Float[Tensor, "1 S K"] | None:
        """A group is added to the draws: with fewer, it would seem worth less than it is."""
        if isinstance(orbit, FiniteOrbit) and orbit.size <= NUM_DRAWS:
            return None
        count = orbit.num_shared(min(NUM_DRAWS * orbit.num_points, MAX_POINTS))
        return orbit.shared_noise(count, generator=self.asked.draws())


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
    """The evidence without some of the transformations that were chosen.

    All ranges are learned together once; those that stay keep their widths.
    """

    def __init__(self, trials: Trials, chosen: Mapping[Transformation, float]) -> None:
        self.trials, self.chosen = trials, tuple(chosen)
        self.orbit = orbit_of(chosen)
        landscape = trials.landscape(self.orbit)
        z = landscape.parameters.vector()
        z, _ = best_length(landscape, z)
        z, scales = climb(landscape, z, max_steps=CLIMB_STEPS, on_step=lambda *_: None)
        landscape.parameters.assign(z)
        self.best, self.lengths = scales.evidence, z[landscape.parameters.lengths]

    def evidence(self, removed: Sequence[Transformation]) -> float:
        """With the best lengthscale."""
        names = {name for part in removed for name in part.ranges}
        orbit = copy.deepcopy(self._rest(removed))
        landscape = self.trials.landscape(orbit)
        z = landscape.parameters.vector()
        z[landscape.parameters.lengths] = self.lengths
        for own in learned_parameters(orbit):
            if split_unit(own.name)[0] in names:
                z[list(own.places)] = math.log(NARROWEST)
        return best_length(landscape, z)[1].evidence

    def _rest(self, removed: Sequence[Transformation]) -> Orbit:
        """The orbit without groups, or noise, that are removed; the number of draws is the same.

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


def backward(trials: Eliminations, claimed: float) -> list[Step]:
    """Take away the least worthwhile, one after the other, while it is worth too few nats."""
    removed: list[Transformation] = []
    steps: list[Step] = []
    best = trials.best
    while len(removed) < len(trials.chosen):
        waiting = [part for part in trials.chosen if part not in removed]
        left = {part: trials.evidence([*removed, part]) for part in waiting}
        part = max(left, key=lambda part: left[part])
        worth = best - left[part]
        if worth >= claimed:
            break
        steps.append(Step(part.name, 0.0, worth, False))
        removed.append(part)
        best = max(best, left[part])
    return steps
