"""Learning the hyperparameters: scans, climbs, and a search over the width of the ranges.

1. A scan over common factors of the ranges on few data, then L-BFGS.
2. A scan over each range alone; L-BFGS once more from there, if that has more evidence.
3. A search over k × ranges, k from 0 to 1½, on the evidence of as many data as is affordable.

All draws are made at the start, so learning that is resumed after any step ends with the same bits.
"""

import functools
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.callbacks.base import Callback, Evaluation, evaluations_from
from orbitgp.errors import FileError, InputError
from orbitgp.fit.checkpoint import Checkpoint
from orbitgp.fit.plan import Plan
from orbitgp.fit.problem import Problem, Sampling
from orbitgp.fit.settings import TrainingSettings
from orbitgp.hyperparameters.learn import Landscape, climb, fine_scan, scan, scan_each, search_width
from orbitgp.hyperparameters.parameters import Parameters
from orbitgp.likelihoods.gaussian import Scales
from orbitgp.sealed import MALFORMED

INTERRUPTED = "interrupted; the best hyperparameters so far were kept"
CONVERGED = "the evidence rose no further"

NUM_PHASES = 4

MAX_FINE, FINE_STEPS = (600, 16_000), 10
"""Data and orbit points up to which the search ends with a fine scan and a climb, and its steps."""

NUM_CHECKED = 64
"""Data that the orbit is tried on before anything else is done."""


class Learning:
    """The phases of learning, and what passes from one to the next."""

    def __init__(
        self, problem: Problem, sampling: Sampling, settings: TrainingSettings, plan: Plan
    ) -> None:
        self.problem, self.sampling, self.settings = problem, sampling, settings
        self.plan = plan
        self.parameters = Parameters(problem.model)
        self.z = self.start = self.parameters.vector()
        self.phase = self.num_steps = 0
        self.curve: list[Evaluation] = []
        self.stopped = ""
        self._check_orbit()

    def finish(self, callback: Callback, checkpoint: Checkpoint) -> None:
        """Learn to the end from wherever it stands, and give the model what was learned."""
        try:
            self._climb(callback, checkpoint)
            callback.finished(self.stopped)
            self._search(callback, checkpoint)
        except KeyboardInterrupt:
            if self.problem.group.size > 1:  # the others may stand elsewhere: resume instead
                raise
            if self.stopped != CONVERGED:
                callback.finished(INTERRUPTED)
            self.stopped = INTERRUPTED
        self.parameters.assign(self.z)

    @property
    def noise(self) -> Float[Tensor, "1 S K"] | None:
        """Of the draws that all inputs share; None where a finite orbit is enumerated."""
        return self.sampling.noise(self.plan.num_draws)

    def landscape(self, num_data: int, num_draws: int, place: int = 0) -> Landscape:
        """The evidence of some data as a function of z."""
        return self.sampling.landscape(self.parameters, num_data, num_draws, place)

    def climbed(self) -> Landscape:
        """That of the data of L-BFGS."""
        return self.landscape(self.settings.climb_size, self.settings.climb_draws)

    def searched(self) -> Landscape:
        """That of the data of the last search."""
        return self.landscape(self.settings.search_size, self.plan.num_draws)

    def _climb(self, callback: Callback, checkpoint: Checkpoint) -> None:
        """The scan and the climbs that are still to come."""
        callback.started(1 + self.settings.max_steps)
        for phase in (self._scan, self._rise, self._one_by_one)[self.phase :]:
            phase(callback)
            self.phase += 1
            checkpoint.keep(self)
        self.stopped = CONVERGED

    def _scan(self, callback: Callback) -> None:
        """The best common factor of all ranges."""
        landscape = self.landscape(self.settings.scan_size, self.settings.scan_draws)
        _tell(callback, 1, "trying widths of the ranges", landscape)
        self._stepped(landscape, callback, *scan(landscape, self.z))

    def _rise(self, callback: Callback, start: np.ndarray | None = None) -> None:
        """L-BFGS, from where learning stands if no other start is given."""
        landscape = self.climbed()
        if start is None:
            _tell(callback, 2, "learning ranges and lengthscale", landscape)
        stepped = functools.partial(self._stepped, landscape, callback)
        start, known = (self.z, None) if start is None else (start, self.z)
        most = self.settings.max_steps
        self.z, _ = climb(landscape, start, known, max_steps=most, on_step=stepped)

    def _one_by_one(self, callback: Callback) -> None:
        """Start again from fewer ranges, if they have more evidence than all that were climbed."""
        if self.parameters.num_widths < 2:
            return
        # few draws are enough for few ranges
        few = self.landscape(self.settings.scan_size, (self.settings.scan_draws + 1) // 2)
        _tell(callback, 3, "trying each range alone", few)
        few_ranges, _ = scan_each(few, self.z, self.start)
        others, landscape = self.parameters.without_parts(self.z), self.climbed()
        best = max((self.z, few_ranges, *others), key=lambda z: landscape.at(z).evidence)
        if best is not self.z:
            self.z = best
            self._rise(callback, self.parameters.lifted(best, self.start))

    def _search(self, callback: Callback, checkpoint: Checkpoint) -> None:
        """The width of the ranges on the evidence that is reported, or on that of many data."""
        if self.phase == NUM_PHASES:
            return
        landscape = self.searched()
        _tell(callback, 4, "searching the common width of the ranges", landscape)
        z, _ = search_width(landscape, self.z)
        points = landscape.size * self.plan.num_draws
        if landscape.size <= MAX_FINE[0] and points <= MAX_FINE[1] and len(z):
            z, _ = fine_scan(landscape, z)
            z, _ = climb(landscape, z, max_steps=FINE_STEPS, on_step=lambda *_: None)
        self.z, self.phase = z, NUM_PHASES
        checkpoint.keep(self)

    def _stepped(
        self, landscape: Landscape, callback: Callback, z: np.ndarray, scales: Scales
    ) -> None:
        """Keep the hyperparameters of one more step, and report their evidence."""
        self.z, self.num_steps = z, self.num_steps + 1
        self.parameters.assign(z)
        orbit = self.problem.model.orbit
        found = scales.evidence, landscape.size, orbit.describe(), orbit.learned_ranges()
        self.curve.append(Evaluation(self.num_steps, *found))
        callback.evaluated(self.curve[-1])
        callback.stepped(self.num_steps)

    def _check_orbit(self) -> None:
        """What an orbit refuses, or makes of inputs, is known before any work is done."""
        self.problem.model.orbit.check(self.problem.examples.x[:NUM_CHECKED])
        points = self.landscape(NUM_CHECKED, 2).subset.points(self.problem.model)
        if not torch.isfinite(points).all():
            raise InputError(
                f"the orbit ({self.problem.model.orbit.describe()}) turns some inputs into values "
                "that are not finite; look for a division by 0 or a logarithm in it, or start "
                "with a narrower range"
            )

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """All that the rest depends on besides data, settings and seed."""
        config = {
            "phase": self.phase,
            "num_steps": self.num_steps,
            "stopped": self.stopped,
            "curve": [asdict(evaluation) for evaluation in self.curve],
            "sizes": self.plan.sizes,
        }
        # one number more, since files hold no empty tensors
        return config, {"z": torch.from_numpy(np.append(self.z, 0.0))}

    def restore(self, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Go on where `state` was taken."""
        try:
            z = tensors["z"].double().numpy()[:-1]
            if z.shape != self.z.shape or not np.isfinite(z).all():
                raise ValueError(f"{len(z)} hyperparameters where there are {len(self.z)}")
            if config["sizes"] != self.plan.sizes:
                raise ValueError(f"sizes {config['sizes']!r:.80} where {self.plan.sizes} are taken")
            phase, num_steps = int(config["phase"]), int(config["num_steps"])
            if not 0 <= phase <= NUM_PHASES or num_steps < 0:
                raise ValueError(f"phase {phase} after {num_steps} steps")
            curve = evaluations_from(config["curve"])
            self.phase, self.num_steps, self.z = phase, num_steps, z.copy()
            self.stopped, self.curve = str(config["stopped"]), curve
        except FileError:
            raise
        except MALFORMED as error:
            raise FileError(
                f"the checkpoint does not belong to this run ({type(error).__name__}: {error}); "
                "delete it to start again"
            ) from None
        self.parameters.assign(self.z)


def _tell(callback: Callback, step: int, work: str, landscape: Landscape) -> None:
    """Evidence of different subsets differs, so a step says which one it is of."""
    callback.announced(f"step {step} of 5: {work}, by the evidence of {landscape.size:,} inputs")
