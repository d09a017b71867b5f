"""Forward and backward selection of transformations, by the exact evidence of some data."""

import copy
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from orbitgp.evidence.fitted import FittedEvidence
from orbitgp.evidence.ranges import composed, learned_parameters
from orbitgp.evidence.transformations import Transformation, is_closed, is_contained, orbit_of
from orbitgp.hyperparameters.learn import Landscape, best_length, climb
from orbitgp.hyperparameters.parameters import NARROWEST, Parameters
from orbitgp.hyperparameters.subset_evidence import Subset
from orbitgp.orbit_model import OrbitModel
from orbitgp.orbits.base import FiniteOrbit, Identity, Orbit
from orbitgp.orbits.compose import FEWEST, parts_of
from orbitgp.orbits.noise import GaussianNoise

NUM_DATA, NUM_DRAWS, MAX_POINTS = 300, 32, 64
"""Data and draws that transformations are tried on; draws times a group that is tried, at most."""

FEW_DATA, FEW_POINTS = 150, 16
"""Those that their widths are chosen on, and the order in which they are tried."""

LENGTH_STEPS, CLIMB_STEPS = 2, 4

WORTHWHILE, HOPELESS = 2.0, -20.0
"""Nats that one more transformation must add to the evidence of these data, and below which it is
not tried again."""


@dataclass(frozen=True)
class SelectionStep:
    """A transformation that was tried: its best width, the nats that it added, and if it stays.

    Parameters
    ----------
    name : str
        Of the transformation.
    width : float
        The best of those that were tried, in radians, logarithms of factors or half-widths.
    gain : float
        Nats of exact evidence that it adds on some of the data; for classes, of one-hot labels. If
        all that was selected is dropped at the end, the nats that all of it adds to the evidence of
        the fit to all data.
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

    def __init__(self, asked: FittedEvidence, num_data: int = NUM_DATA) -> None:
        self.asked = asked
        rows = asked.sampling.order[:num_data]
        problem = asked.sampling.problem
        self.x, self.targets = problem.examples.x[rows], asked.sampling.targets[rows]
        self.max_ratio = problem.max_ratio
        self.num_data = len(rows)
        self.start = asked.z[asked.parameters.lengths]

    def landscape(self, orbit: Orbit, num_draws: int) -> Landscape:
        """The evidence with this orbit, as a function of its hyperparameters.

        The draws are those of all but groups, whose points are all taken for each: with fewer
        draws, a group would seem worth less than it is.
        """
        model = OrbitModel(**self.asked.model.parts(orbit=orbit))
        subset = Subset(self.x, self.targets, self._noise(orbit, num_draws))
        return Landscape(model, Parameters(model), subset, self.max_ratio)

    def evidence(
        self, orbit: Orbit, lengths: np.ndarray, num_draws: int
    ) -> tuple[float, np.ndarray]:
        """With the best lengthscale near this one, which is returned too."""
        landscape = self.landscape(orbit, num_draws)
        places = landscape.parameters.lengths
        z = landscape.parameters.vector()
        z[places] = lengths
        z, scales = best_length(landscape, z, LENGTH_STEPS)
        return scales.evidence, z[places]

    def _noise(self, orbit: Orbit, num_draws: int) -> Float[Tensor, "1 S K"] | None:
        if isinstance(orbit, FiniteOrbit) and orbit.size <= NUM_DRAWS:
            return None
        count = orbit.num_shared(num_draws * orbit.num_points)
        return orbit.shared_noise(count, generator=self.asked.draws())


def draws_beside(orbit: Orbit, most: int = NUM_DRAWS) -> int:
    """Draws for each point of a group, so that at most so many orbit points come out."""
    return max(FEWEST, min(NUM_DRAWS, most // orbit.num_points))


def forward(
    trials: Trials,
    transformations: Sequence[Transformation],
    report: Callable[[SelectionStep], None] = lambda _: None,
) -> tuple[dict[Transformation, float], list[SelectionStep]]:
    """Each alone, then one after the other while it adds evidence, the most worthwhile first.

    Their order and their widths are those of fewer data. Those that added nothing are tried again
    as long as others were taken meanwhile.
    """
    few, so_far = Chosen(Trials(trials.asked, FEW_DATA)), Chosen(trials)
    alone = {part: few.with_best_width(part, part.widths, FEW_POINTS) for part in transformations}
    waiting = sorted(alone, key=lambda part: -alone[part].gain)
    steps: list[SelectionStep] = []
    tried: dict[Transformation, int] = {}
    for part in [part for part in waiting if -math.inf < alone[part].gain <= HOPELESS]:
        steps.append(SelectionStep(part.name, alone[part].width, alone[part].gain, False))
        report(steps[-1])
        waiting.remove(part)
    while waiting:
        part, size = waiting.pop(0), len(so_far.widths)
        if tried.get(part) == size:  # nothing was taken since it was tried last
            break
        tried[part] = size
        found = so_far.with_one_more(part, alone[part].width)
        if found.gain == -math.inf:  # no use beside the others
            continue
        step = SelectionStep(part.name, found.width, found.gain, found.gain > WORTHWHILE)
        steps.append(step)
        report(step)
        if step.taken:
            so_far = Chosen(trials, {**so_far.widths, part: found.width}, found.lengths)
        elif step.gain > HOPELESS:
            waiting.append(part)
    return so_far.widths, steps


@dataclass(frozen=True)
class OneMore:
    """The nats that one more transformation adds, its best width, and the lengthscale with it."""

    gain: float
    width: float
    lengths: np.ndarray


class Chosen:
    """The transformations that were taken so far, with their widths and the lengthscale."""

    def __init__(
        self,
        trials: Trials,
        widths: dict[Transformation, float] | None = None,
        lengths: np.ndarray | None = None,
    ) -> None:
        self.trials, self.widths = trials, widths or {}
        self.lengths = trials.start if lengths is None else lengths
        self.evidence = functools.cache(self._evidence)

    def _evidence(self, num_draws: int) -> float:
        """Without any more, and with this many draws."""
        return self.trials.evidence(orbit_of(self.widths), self.lengths, num_draws)[0]

    def with_one_more(self, part: Transformation, width: float) -> OneMore:
        """Both sides have the same draws of all but groups; fewer, if there are groups.

        What a group adds is estimated with enough draws to see it.
        """
        is_group = isinstance(orbit_of({part: width}), FiniteOrbit)
        return self.with_best_width(part, (width,), MAX_POINTS if is_group else NUM_DRAWS)

    def with_best_width(
        self, part: Transformation, widths: Sequence[float], num_points: int
    ) -> OneMore:
        """The one that adds most, with so many orbit points."""
        whole = {**self.widths, part: part.widths[0]}
        if is_contained(part, self.widths) or not is_closed(whole, self.trials.x.shape[1:]):
            return OneMore(-math.inf, 0.0, self.lengths)
        num_draws = draws_beside(orbit_of(whole), num_points)
        best = OneMore(-math.inf, 0.0, self.lengths)
        for width in widths:
            orbit = orbit_of({**self.widths, part: width})
            evidence, lengths = self.trials.evidence(orbit, self.lengths, num_draws)
            gain = evidence - self.evidence(num_draws)
            best = OneMore(gain, width, lengths) if gain > best.gain else best
        return best


class Eliminations:
    """The evidence without some of the transformations that were chosen.

    All ranges are learned together once; those that stay keep their widths.
    """

    def __init__(self, trials: Trials, chosen: Mapping[Transformation, float]) -> None:
        self.trials, self.chosen = trials, tuple(chosen)
        self.orbit = orbit_of(chosen)
        self.num_draws = draws_beside(self.orbit)
        landscape = trials.landscape(self.orbit, self.num_draws)
        z = landscape.parameters.vector()
        z, _ = best_length(landscape, z)
        z, scales = climb(landscape, z, max_steps=CLIMB_STEPS, on_step=lambda *_: None)
        landscape.parameters.assign(z)
        self.best, self.lengths = scales.evidence, z[landscape.parameters.lengths]

    def evidence(self, removed: Sequence[Transformation]) -> float:
        """With the best lengthscale."""
        names = {name for part in removed for name in part.ranges}
        orbit = copy.deepcopy(self._rest(removed))
        landscape = self.trials.landscape(orbit, self.num_draws)
        z = landscape.parameters.vector()
        z[landscape.parameters.lengths] = self.lengths
        for own in learned_parameters(orbit):
            if own.range.name in names:
                z[list(own.places)] = math.log(NARROWEST)
        return best_length(landscape, z)[1].evidence

    def _rest(self, removed: Sequence[Transformation]) -> Orbit:
        """The orbit without groups, or noise, that are removed.

        A group of several may become a smaller one.
        """
        whole = [part for part in self.chosen if not part.ranges]
        if not set(removed) & set(whole):
            return self.orbit
        kept = orbit_of({part: part.widths[0] for part in whole if part not in removed})
        groups = [part for part in parts_of(kept) if isinstance(part, FiniteOrbit)]
        noisy = any(isinstance(part, GaussianNoise) for part in parts_of(kept))
        finite, others = [], []
        for part in parts_of(self.orbit):
            if isinstance(part, FiniteOrbit):
                finite.append(groups.pop(0) if groups else Identity())
            else:
                others.append(part if noisy or not isinstance(part, GaussianNoise) else Identity())
        return composed([*finite, *others])


def backward(trials: Eliminations, claimed: float) -> list[SelectionStep]:
    """Take away the least worthwhile, one after the other, while it is worth too few nats."""
    removed: list[Transformation] = []
    steps: list[SelectionStep] = []
    best = trials.best
    while len(removed) < len(trials.chosen):
        waiting = [part for part in trials.chosen if part not in removed]
        left = {part: trials.evidence([*removed, part]) for part in waiting}
        part = max(left, key=lambda part: left[part])
        worth = best - left[part]
        if worth >= claimed:
            break
        steps.append(SelectionStep(part.name, 0.0, worth, False))
        removed.append(part)
        best = max(best, left[part])
    return steps
