"""A fit by exact inference: learn on subsets, search on all data, factorise once, calibrate.

1. A scan over scales of the ranges on few data, then L-BFGS on subsets that grow.
2. A search over k × ranges, k from 0 to 1½, on the reported evidence.
3. One factorisation of the covariance of all data: evidence, posterior, and leave-one-out.
4. Class probabilities are calibrated on the leave-one-out predictions.

All draws are made at the start, so a fit that is resumed after any step ends with the same bits.
"""

import functools
import math
import statistics
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import FileError, InputError
from orbitgp.exact_model import ExactInvariantGP
from orbitgp.fit.plan import ExactPlan
from orbitgp.hyperparameters.learn import (
    Landscape,
    climb,
    fine_scan,
    lost_without,
    scan,
    search_width,
)
from orbitgp.hyperparameters.parameters import Parameters, learned_ranges
from orbitgp.hyperparameters.subset_evidence import Subset
from orbitgp.inference.exact import climbed_ratio, evidence_at, exact_posterior, orbit_points
from orbitgp.kernels import average_covariances_among
from orbitgp.likelihoods.gaussian import Gaussian, OneHotGaussian
from orbitgp.orbit_model import OrbitModel
from orbitgp.posterior.exact import ExactSolution, leave_one_out
from orbitgp.scales import Scales
from orbitgp.sealed import MALFORMED
from orbitgp.training.calibration import calibrate_codes
from orbitgp.training.callbacks import Callback, Evaluation, evaluations_from
from orbitgp.training.checkpoint import Checkpoint
from orbitgp.training.run import Outcome
from orbitgp.training.settings import TrainingSettings
from orbitgp.training.solving import evidence_of_nothing

INTERRUPTED = "interrupted; the best hyperparameters so far were kept"
CONVERGED = "the evidence rose no further"

SCANNED = (250, 16)
"""Data and orbit draws of the scan."""

LEVELS = ((250, 32, 16), (500, 32, 4))
"""Data, draws and steps of each climb."""

NUM_SEARCHED = 2048
"""Data of the last search, if there are more."""

MAX_FINE, FINE_STEPS = 16_000, 10
"""Orbit points up to which the last search ends with a fine scan and a climb."""

MAX_REFINED = 10_000
"""Data up to which the search goes on with all of them."""

NUM_EXAMINED = 1000
"""Data that tell how much the evidence depends on the draws, and whether intervals hold."""

NUM_CHECKED = 64
"""Data that the orbit is tried on before anything else is done."""

NUM_DRAW_SETS = 4
"""Other sets of draws that tell the standard error of the evidence."""

IDENTIFIED = 2.0
"""Nats that a range must be worth, to the data of the last climb."""

MIN_COVERED, FEWEST_COVERED = 0.8, 20
"""The part of left-out targets that intervals of 95 % must hold, and how many can tell."""

MAX_LEFT_OUT = 4096
"""Data that are left out in turn for calibration."""


@dataclass(frozen=True)
class Problem:
    """What is to be learned from: a model at its start, data, and the largest v k_f(x, x)/σ²."""

    model: OrbitModel
    x: Float[Tensor, "N *event"]
    y: Tensor
    max_ratio: float

    @property
    def targets(self) -> Float[Tensor, "N C"]:
        """What a Gaussian likelihood makes of y."""
        return self.model.likelihood.quadratic_bound(self.x, self.y).targets


class ExactFit:
    """The phases of a fit, and all that passes from one to the next."""

    def __init__(
        self,
        problem: Problem,
        plan: ExactPlan,
        settings: TrainingSettings,
        *,
        generator: torch.Generator,
    ) -> None:
        self.problem, self.plan, self.settings = problem, plan, settings
        model, size = problem.model, len(problem.x)
        self.targets = problem.targets
        self.order = torch.randperm(size, generator=generator).to(problem.x.device)
        shape = (1 + NUM_DRAW_SETS,)
        self.seeds = torch.randint(2**62, shape, generator=generator).tolist()
        self.parameters = Parameters(model.orbit, model.kernel)
        self.z = self.parameters.vector()
        self.phase = self.num_steps = 0
        self.curve: list[Evaluation] = []
        self.stopped = ""
        self._check_start()

    def finish(self, callback: Callback, checkpoint: Checkpoint) -> Outcome:
        """Go on to the end from wherever the fit stands."""
        callback.announced(self.plan.describe())
        checkpoint.restore(self)
        try:
            self._learn(callback, checkpoint)
        except KeyboardInterrupt:
            self.stopped = INTERRUPTED
        callback.finished(self.stopped)
        callback.announced("searching the width of the ranges on the evidence, then solving")
        self.parameters.assign(self.z)
        if self.stopped != INTERRUPTED and self.phase <= len(LEVELS) + 1:
            self.z = self._searched(self._landscape(NUM_SEARCHED, self.plan.num_draws))
            self.phase = len(LEVELS) + 2
            checkpoint.keep(self)
        model, solution = self._solve()
        noise = model.likelihood
        assert isinstance(noise, Gaussian)
        self._examine()
        if isinstance(noise, OneHotGaussian):
            rows = self.order[:MAX_LEFT_OUT]
            left_out = leave_one_out(solution, self.targets, noise.noise.item(), rows)
            calibrate_codes(noise, left_out, self.problem.y[rows])
        error = self._spread_over_draws()
        self._warn(model, solution, error, callback)
        return Outcome(
            model,
            solution.evidence,
            error,
            self.curve,
            self.num_steps,
            self.stopped,
            kind="exact",
            num_draws=self.plan.num_draws,
        )

    def _searched(self, landscape: Landscape) -> np.ndarray:
        """The width of the ranges on the evidence that is reported, or on that of many data."""
        z, _ = search_width(landscape, self.z)
        if landscape.size * self.plan.num_draws <= MAX_FINE and len(z):
            z, _ = fine_scan(landscape, z)
            z, _ = climb(landscape, z, max_steps=FINE_STEPS, on_step=lambda *_: None)
        return z

    def _learn(self, callback: Callback, checkpoint: Checkpoint) -> None:
        """The scan and the climbs that are still to come."""
        steps = [min(level[2], self.settings.max_steps) for level in LEVELS]
        callback.started(1 + sum(steps))
        while self.phase <= len(LEVELS):
            if self.phase == 0:
                landscape = self._landscape(*SCANNED)
                self._stepped(landscape, callback, *scan(landscape, self.z))
            else:
                num_data, num_draws, _ = LEVELS[self.phase - 1]
                landscape = self._landscape(num_data, num_draws)
                stepped = functools.partial(self._stepped, landscape, callback)
                most = steps[self.phase - 1]
                self.z, _ = climb(landscape, self.z, max_steps=most, on_step=stepped)
            self.phase += 1
            checkpoint.keep(self)
        self.stopped = CONVERGED

    def _check_start(self) -> None:
        """What an orbit refuses, or makes of inputs, is known before any work is done."""
        points = self._landscape(NUM_CHECKED, 2).subset.points(self.problem.model)
        if not torch.isfinite(points).all():
            raise InputError(
                f"the orbit ({self.problem.model.orbit.describe()}) turns some inputs into values "
                "that are not finite; look for a division by 0 or a logarithm in it, or start "
                "with a narrower range"
            )

    def _stepped(
        self, landscape: Landscape, callback: Callback, z: np.ndarray, scales: Scales
    ) -> None:
        """One step further; the evidence is told as if all data were like those of the subset."""
        self.z, self.num_steps = z, self.num_steps + 1
        self.parameters.assign(z)
        orbit, share = self.problem.model.orbit, len(self.order) / landscape.size
        ranges = {name: list(ends) for name, ends in orbit.learned_ranges().items()}
        self.curve.append(
            Evaluation(self.num_steps, share * scales.evidence, 0.0, orbit.describe(), ranges)
        )
        callback.evaluated(self.curve[-1])
        callback.stepped(self.num_steps)

    def _noise(self, num_draws: int, place: int = 0) -> Float[Tensor, "1 S K"] | None:
        """Noise of so many draws that all inputs share, of several sets; None if enumerated."""
        if self.plan.enumerated:
            return None
        orbit, generator = self.problem.model.orbit, torch.Generator()
        generator.manual_seed(self.seeds[place])
        return orbit.shared_noise(int(min(num_draws, orbit.size)), generator=generator)

    def _landscape(self, num_data: int, num_draws: int, place: int = 0) -> Landscape:
        """The evidence of the first data of the order, with one set of draws."""
        rows = self.order[:num_data]
        subset = Subset(self.problem.x[rows], self.targets[rows], self._noise(num_draws, place))
        return Landscape(self.problem.model, self.parameters, subset, self.problem.max_ratio)

    def _solve(self) -> tuple[ExactInvariantGP, ExactSolution]:
        """The best scales for all data, after a last look at narrower ranges, and the posterior."""
        size, draws = len(self.order), self.plan.num_draws
        landscape = self._landscape(NUM_SEARCHED, draws)
        ratio = landscape.at(self.z).ratio
        covariance = self._covariance(self.z)
        if size > NUM_SEARCHED and size <= MAX_REFINED:
            covariance = self._narrowed(ratio, covariance)
        limits = {"start": ratio, "max_ratio": self.problem.max_ratio}
        if size <= MAX_REFINED:
            scales = climbed_ratio(covariance, self.targets, **limits)
        else:
            largest = self.problem.max_ratio / covariance.diagonal().mean().item()
            scales = evidence_at(covariance, self.targets, min(ratio, largest))
        self.parameters.assign(self.z)
        noise = self._noise(draws)
        data = self.problem.x, self.targets, noise
        return exact_posterior(self.problem.model, *data, scales, covariance)

    def _narrowed(self, ratio: float, covariance: Tensor) -> Float[Tensor, "N N"]:
        """More data are worth narrower ranges, or a shorter lengthscale, than fewer are."""
        parameters = self.parameters
        moved = parameters.widths if parameters.num_widths else parameters.lengths
        best = evidence_at(covariance, self.targets, ratio)
        other = self.z.copy()
        other[moved] += math.log(0.8)
        narrower = self._covariance(other)
        found = evidence_at(narrower, self.targets, ratio)
        if found.evidence > best.evidence:
            self.z = other
            return narrower
        return covariance

    def _covariance(self, z: np.ndarray) -> Float[Tensor, "N N"]:
        self.parameters.assign(z)
        model = self.problem.model
        points = orbit_points(model, self.problem.x, self._noise(self.plan.num_draws))
        return average_covariances_among(model.kernel, points)

    def _examine(self) -> None:
        """Mark the ranges whose evidence hardly changes when they are switched off."""
        if not self.parameters.num_widths:
            return
        # with many draws: few of them cover several directions so badly that any seems too many
        landscape = self._landscape(*LEVELS[-1][:2])
        worth = torch.from_numpy(lost_without(landscape, self.z)) >= IDENTIFIED
        for part in learned_ranges(self.problem.model.orbit):
            own, worth = worth.tensor_split([int(part.learned.sum())])
            found = torch.ones_like(part.learned)
            found[part.learned] = own.to(found.device)
            part.identified.copy_(found.any(0))

    def _spread_over_draws(self) -> float:
        """The standard deviation of the evidence over sets of draws; 0 for a whole orbit."""
        if self.plan.enumerated:
            return 0.0
        found = [
            self._landscape(NUM_EXAMINED, self.plan.num_draws, place).at(self.z).evidence
            for place in range(len(self.seeds))
        ]
        size = min(NUM_EXAMINED, len(self.order))
        return statistics.stdev(found) * len(self.order) / size

    def _warn(
        self, model: ExactInvariantGP, solution: ExactSolution, error: float, callback: Callback
    ) -> None:
        likelihood, value = model.likelihood, solution.evidence
        assert isinstance(likelihood, Gaussian)
        nothing = evidence_of_nothing(likelihood, self.problem.x, self.problem.y, len(self.order))
        if value + 2 * error <= nothing + 1:
            callback.warned(
                f"nothing was learned: the evidence, {value:.1f} nats, is no more than the "
                f"{nothing:.1f} nats of a constant; look for shuffled labels, inputs without "
                "information, too few data, or an orbit that is far too wide"
            )
        if not isinstance(likelihood, OneHotGaussian):
            self._warn_of_narrow_intervals(solution, likelihood.noise.item(), callback)

    def _warn_of_narrow_intervals(
        self, solution: ExactSolution, noise: float, callback: Callback
    ) -> None:
        """A noise that has collapsed shows in targets that are left out."""
        rows = self.order[:NUM_EXAMINED]
        left_out = leave_one_out(solution, self.targets, noise, rows)
        error = (self.targets[rows] - left_out.mean).abs()
        covered = (error <= 2 * (left_out.variance + noise).sqrt()).double().mean().item()
        if covered < MIN_COVERED and len(rows) >= FEWEST_COVERED:
            callback.warned(
                f"intervals are too narrow: of the training targets, each predicted from all "
                f"others, {covered:.0%} lie within two standard deviations, where 95 % should; "
                f"the noise may have collapsed (its variance is {noise:.2g} of that of the "
                "targets): look for an orbit that is not an invariance, or repeated inputs"
            )

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """All that the rest of the fit depends on besides data, settings and seed."""
        config = {
            "phase": self.phase,
            "num_steps": self.num_steps,
            "stopped": self.stopped,
            "curve": [asdict(evaluation) for evaluation in self.curve],
            "plan": [self.plan.num_draws, self.plan.enumerated],
        }
        # one number more, since files hold no empty tensors
        return config, {"z": torch.from_numpy(np.append(self.z, 0.0))}

    def restore(self, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Go on where `state` was taken."""
        try:
            z = tensors["z"].double().numpy()[:-1]
            if z.shape != self.z.shape or not np.isfinite(z).all():
                raise ValueError(f"{len(z)} hyperparameters where there are {len(self.z)}")
            num_draws, enumerated = config["plan"]
            if enumerated != self.plan.enumerated or num_draws not in range(1, 65):
                raise ValueError(f"a plan of {num_draws} draws")
            phase, num_steps = int(config["phase"]), int(config["num_steps"])
            if not 0 <= phase <= len(LEVELS) + 2 or num_steps < 0:
                raise ValueError(f"phase {phase} after {num_steps} steps")
            self.plan = replace(self.plan, num_draws=num_draws)
            self.phase, self.num_steps, self.z = phase, num_steps, z.copy()
            self.stopped, self.curve = str(config["stopped"]), evaluations_from(config["curve"])
        except FileError:
            raise
        except MALFORMED as error:
            raise FileError(
                f"the checkpoint does not belong to this run ({type(error).__name__}: {error}); "
                "delete it to start again"
            ) from None
        self.parameters.assign(self.z)
