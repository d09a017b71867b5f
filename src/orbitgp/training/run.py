"""A whole run: screen the starts, train the best of them, settle its scales, solve at large M."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from orbitgp.errors import FileError
from orbitgp.exact_model import ExactInvariantGP
from orbitgp.likelihoods.gaussian import Gaussian, OneHotGaussian
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP
from orbitgp.sealed import MALFORMED, check_like, within
from orbitgp.training.calibration import calibrate_codes, calibrate_odds, left_out_codes
from orbitgp.training.callbacks import Callback, Evaluation, evaluations_from
from orbitgp.training.carrying import carries
from orbitgp.training.checkpoint import Checkpoint
from orbitgp.training.group import ALONE, Group
from orbitgp.training.loop import INTERRUPTED, Training, train
from orbitgp.training.odds import settle_odds
from orbitgp.training.passes import Examples, Resident
from orbitgp.training.proportions import balance
from orbitgp.training.rescaling import fresh_draws, highest_bound, rescaled, with_scales
from orbitgp.training.settings import TrainingSettings
from orbitgp.training.solving import (
    NUM_VARIANCES,
    evidence,
    evidence_of_nothing,
    make_coarse,
    projected,
    solve_large,
    solve_local,
)
from orbitgp.training.starts import with_points
from orbitgp.training.subsets import MAX_POWER, settle
from orbitgp.training.whole_mean import mean_of_all, some_left_out

SCREEN_STEPS = 40
MAX_AVERAGED = 64
NUM_PREDICTED = 8
"""Orbit samples of data that are left out, for the variance of their f."""


@dataclass(frozen=True)
class Outcome:
    """What a run made of the data."""

    model: InvariantGP | ExactInvariantGP
    evidence: float
    evidence_error: float
    curve: list[Evaluation]
    num_steps: int
    stopped: str
    kind: str = "bound"
    """What the evidence is: "exact", or a lower "bound"."""
    num_draws: int = 0


@dataclass(frozen=True)
class Plan:
    """What follows stage one: M variables of J points each, and the largest v/σ².

    Where labels are learned as codes at first, `likelihood` is the one that takes their place. With
    `mean_samples`, the mean gets a variable of that many orbit points for every datum.
    """

    num_points: int
    num_averaged: int
    max_ratio: float
    likelihood: LocalLikelihood | None = None
    mean_samples: int = 0


class Run:
    """The phases of a run, and all that passes from one to the next.

    Phases 0 … K − 1 screen the K starts (ranges can be slow to grow, so those that may have to go
    far also start far), phase K trains the best of them, phase K + 1 settles and solves. A
    checkpoint holds the state between two steps, and a run that is restored from it goes on bit
    for bit as if it had never stopped.
    """

    def __init__(
        self,
        models: Sequence[InvariantGP],
        examples: Examples,
        *,
        settings: TrainingSettings,
        plan: Plan,
        generator: torch.Generator,
        group: Group = ALONE,
    ) -> None:
        self.models, self.settings = list(models), settings
        self.examples, self.group = examples, group
        self.plan, self.generator = plan, generator
        self.scores: list[float] = []
        self.curve: list[Evaluation] = []
        self.num_steps = 0
        self.stopped = ""
        self.mean_variance: float | None = None
        self._begin(0 if len(models) > 1 else 1)

    def finish(self, callback: Callback, checkpoint: Checkpoint) -> Outcome:
        """Go on to the end from wherever the run stands."""
        checkpoint.restore(self)
        while self.training is not None:
            screening = self.phase < len(self.models)
            reason = train(
                self.training,
                callback,
                keep=lambda: checkpoint.keep(self),
            )
            self._end(reason, screening)
            checkpoint.keep(self)
        callback.announced(
            f"solving with {self.plan.num_points} inducing variables, then weighing the evidence"
        )
        model, x = self._settled(), self.examples.x
        order = torch.randperm(len(x), generator=self.generator).to(x.device)
        solve = self._solve_local if carries(model) else self._solve
        model, value, error = solve(model, order)
        if isinstance(model.likelihood, Gaussian):
            data = x, self.examples.y, self.examples.num_data
            nothing = evidence_of_nothing(model.likelihood, *data)
            if value + 2 * error <= nothing + 1:
                callback.warned(
                    f"nothing was learned: the evidence, {value:.1f} nats, is no more than the "
                    f"{nothing:.1f} nats of a constant; look for shuffled labels, inputs without "
                    "information, too few data, or an orbit that is far too wide"
                )
        return Outcome(model, value, error, self.curve, self.num_steps, self.stopped)

    def _settled(self) -> InvariantGP:
        """The chosen model with the scales of most evidence, and a kernel that is fast."""
        model, x, y = self.chosen, self.examples.x, self.examples.y
        make_coarse(model)
        if isinstance(model.likelihood, Gaussian):
            weighed = {"max_ratio": self.plan.max_ratio, "generator": self.generator}
            balance(model, x, y, **weighed, group=self.group)
            settle(model, x, y, **weighed)
        if self.plan.likelihood is not None:
            model = with_points(model, likelihood=self.plan.likelihood)
        if isinstance(model.likelihood, LocalLikelihood):
            # codes, where they came first, have settled the lengthscale with more data
            self.mean_variance = settle_odds(
                model,
                x,
                y,
                apart=self.plan.mean_samples > 0,
                max_power=MAX_POWER if self.plan.likelihood is None else 0,
                generator=self.generator,
            )
        model = projected(model, x, generator=self.generator)
        make_coarse(model)
        return model

    def _solve(self, model: InvariantGP, order: Tensor) -> tuple[InvariantGP, float, float]:
        """The model at large M, its evidence, and the standard error of that."""
        x, y, num_data = self.examples.x, self.examples.y, self.examples.num_data
        own, others = order.tensor_split([self.plan.num_points])
        shared = {"generator": self.generator, "group": self.group}
        solved = solve_large(
            model, self.examples, own, num_averaged=self.plan.num_averaged, **shared
        )
        weighed = solved
        if isinstance(model.likelihood, Gaussian):
            # data without an inducing variable of their own are like those still to come
            some = torch.cat([others, own])[:NUM_VARIANCES]
            fresh = fresh_draws(solved, x[some], y[some], generator=self.generator)
            scales = rescaled(solved, fresh, 1.0, num_data)
            weighed = with_scales(solved, highest_bound(solved, fresh, scales, num_data))
            solved = with_scales(solved, scales)
        value, error = evidence(weighed.model, weighed.prior_factor, self.examples, **shared)
        model, likelihood, rows = solved.model, solved.model.likelihood, some_left_out(order)
        coded = isinstance(likelihood, OneHotGaussian)
        left = (
            left_out_codes(solved, self.examples, rows, generator=self.generator) if coded else None
        )
        del solved, weighed  # and their M×M matrices
        mean = self._take_mean_of_all(model, self.examples, order)
        if coded and left is not None:
            prediction, labels = left
            if mean is not None:
                prediction = replace(prediction, mean=mean[rows.argsort()])
            calibrate_codes(likelihood, prediction, labels)
        return model, value, error

    def _solve_local(self, model: InvariantGP, order: Tensor) -> tuple[InvariantGP, float, float]:
        """The same for a bound with local parameters; every process does all of the work."""
        assert isinstance(self.examples, Resident)
        draws = {"num_averaged": self.plan.num_averaged, "generator": self.generator}
        model, prior, examples = solve_local(
            model, self.examples, order[: self.plan.num_points], **draws
        )
        shared = {"generator": self.generator, "group": self.group}
        value, error = evidence(model, prior.factor, examples, **shared)
        if self.plan.mean_samples:
            likelihood, rows = model.likelihood, some_left_out(order)
            assert isinstance(likelihood, LocalLikelihood)
            draws = {"num_samples": NUM_PREDICTED, "generator": self.generator}
            left_out = model.predict(examples.x[rows], **draws)
            mean = self._take_mean_of_all(model, examples, order)
            if mean is not None:
                labels = likelihood.labels_of(examples.y[rows])
                calibrate_odds(likelihood, replace(left_out, mean=mean), labels)
        return model, value, error

    def _take_mean_of_all(
        self, model: InvariantGP, examples: Examples, order: Tensor
    ) -> Tensor | None:
        """A variable for every datum, if the plan has points for it; the mean that is left out."""
        if not self.plan.mean_samples:
            return None
        assert isinstance(examples, Resident)
        draws = {"num_samples": self.plan.mean_samples, "generator": self.generator}
        found = mean_of_all(model, examples, order, variance=self.mean_variance, **draws)
        model.mean_basis = None if found is None else found.basis
        return None if found is None else found.left_out

    @property
    def chosen(self) -> InvariantGP:
        """The start with the most evidence, of those that were screened."""
        return self.models[max(range(len(self.scores)), key=self.scores.__getitem__, default=0)]

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """All that the rest of the run depends on besides data and settings."""
        training = None if self.training is None else self.training.state()
        config = {
            "phase": self.phase,
            "scores": self.scores,
            "curve": [asdict(evaluation) for evaluation in self.curve],
            "num_steps": self.num_steps,
            "stopped": self.stopped,
            "sizes": [self.plan.num_points, self.plan.num_averaged, self.plan.mean_samples],
            "training": training and training[0],
        }
        tensors = {"generator": self.before}
        for place, model in enumerate(self.models):
            tensors |= {f"models.{place}.{name}": t for name, t in model.state_dict().items()}
        if training is not None:
            tensors |= {f"training.{name}": tensor for name, tensor in training[1].items()}
        return config, tensors

    def restore(self, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Go on where `state` was taken."""
        try:
            for place, model in enumerate(self.models):
                state = within(tensors, f"models.{place}")
                check_like(state, model.state_dict())
                model.load_state_dict(state)
            self.scores = [float(score) for score in config["scores"]]
            if len(self.scores) > len(self.models) or not config["phase"] >= 0:
                raise ValueError("more scores than starts, or no such phase")
            self.num_steps, self.stopped = int(config["num_steps"]), str(config["stopped"])
            sizes = sizes_from(config["sizes"], len(self.examples.x))
            names = ("num_points", "num_averaged", "mean_samples")
            self.plan = replace(self.plan, **dict(zip(names, sizes, strict=True)))
            self.curve = evaluations_from(config["curve"])
            self.generator.set_state(tensors["generator"])
            self._begin(config["phase"])
            if self.training is not None:
                self.training.restore(config["training"], within(tensors, "training"))
        except FileError:
            raise
        except MALFORMED as error:
            raise FileError(
                f"the checkpoint does not belong to this run ({type(error).__name__}: {error}); "
                "delete it to start again"
            ) from None

    def _begin(self, phase: int) -> None:
        """Enter a phase; its training draws its seeds here, from the state that is kept."""
        self.phase, self.before = phase, self.generator.get_state()
        self.training = None
        if phase <= len(self.models):
            screening = phase < len(self.models)
            model = self.models[phase] if screening else self.chosen
            steps = SCREEN_STEPS if screening else self.settings.max_steps
            settings = replace(self.settings, max_steps=min(steps, self.settings.max_steps))
            self.training = Training(
                model,
                self.examples.x,
                self.examples.y,
                settings=settings,
                generator=self.generator,
                num_data=self.examples.num_data,
                group=self.group,
            )

    def _end(self, reason: str, screening: bool) -> None:
        """Leave a phase with what it found; an interruption leaves all that are left."""
        assert self.training is not None
        if screening:
            best = self.training.best  # none if interrupted before the first evaluation
            self.scores.append(-math.inf if best is None else best[2])
        if not screening or reason == INTERRUPTED:
            self.curve, self.num_steps = self.training.curve, self.training.step
            self.stopped = reason
        self._begin(len(self.models) + 1 if reason == INTERRUPTED else self.phase + 1)


def sizes_from(sizes: list[int], num_data: int) -> tuple[int, int, int]:
    """M, J and J of the mean as the run began; another number of processes must not change them."""
    num_points, num_averaged, mean_samples = sizes
    if not all(isinstance(size, int) for size in sizes):
        raise TypeError(f"sizes {sizes}")
    within_bounds = 1 <= num_averaged <= MAX_AVERAGED and 0 <= mean_samples <= MAX_AVERAGED
    if not (1 <= num_points <= num_data and within_bounds):
        raise ValueError(f"sizes {sizes} for {num_data} data")
    return num_points, num_averaged, mean_samples
