"""Stage one: learn kernel, noise and ranges at modest M, with the closed-form q(u) inside."""

import math
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor, nn

from orbitgp.errors import NumericalError
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP, mean_pairs, unbiased_pairs
from orbitgp.orbits.ranges import UniformRange
from orbitgp.posterior.algebra import cholesky
from orbitgp.posterior.closed_form import solve
from orbitgp.posterior.inducing import best_narrowing, kl
from orbitgp.sealed import check_like, within
from orbitgp.training.callbacks import Callback, Evaluation, evaluations_from
from orbitgp.training.carrying import carried
from orbitgp.training.fixed_point import Prior, fixed_point, rows_of
from orbitgp.training.group import ALONE, Group
from orbitgp.training.passes import (
    Resident,
    chunk_generator,
    mean_unexplained,
    pass_bounds,
    pass_seed,
    pass_statistics,
)
from orbitgp.training.settings import TrainingSettings
from orbitgp.training.teaching import teach
from orbitgp.training.updates import GradientUpdate, falling

INTERRUPTED = "interrupted; the best model so far was kept"
MAX_RECOVERIES = 3
MAX_COOLINGS = 2
NEGLIGIBLE = 0.5
"""Nats that are no progress."""

LOCAL = 2**40
"""A number that no chunk has, for the draws that local parameters come from."""

_COUNTERS = ("step", "recoveries", "coolings", "without_progress")


class Training:
    """A run of stage one: all that it changes, and the steps that change it.

    Everything a step depends on is here: model, optimiser, generators, counters. The best model so
    far is kept beside the current one, and `finish` returns to it.
    """

    def __init__(
        self,
        model: InvariantGP,
        x: Tensor,
        y: Tensor,
        *,
        settings: TrainingSettings,
        generator: torch.Generator,
        num_data: int | None = None,
        group: Group = ALONE,
    ) -> None:
        self.model, self.x, self.y, self.settings = model, x, y, settings
        self.num_data = num_data or len(x)
        self.group = group
        seeds = torch.randint(2**62, (4,), generator=generator).tolist()
        names = ("batches", "orbits", "fit", "evaluation")
        self.generators = {
            name: torch.Generator(generator.device).manual_seed(seed)
            for name, seed in zip(names, seeds, strict=True)
        }
        self.evaluation_seed = seeds[3]
        self.evaluation_set = self._subset("evaluation", settings.evaluation_size)
        self.optimizer = torch.optim.Adam(_learned(model), settings.learning_rate)
        self.update = GradientUpdate(
            model,
            self.optimizer,
            num_data=self.num_data,
            num_samples=settings.num_samples,
            generator=self.generators["orbits"],
            group_size=settings.num_samples // 2,
            group=group,
        )
        self.step = 0
        self.recoveries = 0
        self.coolings = 0
        self.without_progress = 0
        self.curve: list[Evaluation] = []
        self.best: tuple[dict[str, Tensor], Tensor, float] | None = None

    @property
    def rate(self) -> float:
        """The step size before it falls: a third after each cooling, a half after a recovery."""
        return self.settings.learning_rate * 3.0**-self.coolings * 2.0**-self.recoveries

    def advance(self, callback: Callback) -> str | None:
        """One step, with an evaluation where one is due; why to stop, if it is time to."""
        settings = self.settings
        try:
            if self.step % settings.refresh_every == 0:
                self.refresh()
            if self.step % settings.evaluate_every == 0 and self._worse_than_best(callback):
                return self._recover("the bound fell", callback)
            if self.step >= settings.max_steps:
                return "the largest number of steps was reached"
            if self.without_progress >= settings.patience:
                if self.coolings >= MAX_COOLINGS:
                    return "the evidence has settled"
                self._cool()
            self._set_step(self.rate * falling(self.step / settings.max_steps))
            batch = self._subset("batches", settings.batch_size)
            x, draws = self.x[batch], self.generators["orbits"]
            local = {"num_samples": settings.num_samples, "generator": draws}
            self.update.step(x, carried(self.model, x, self.y[batch], **local))
        except NumericalError as error:
            if self.best is None:
                raise
            return self._recover(str(error), callback)
        self.step += 1
        callback.stepped(self.step)
        return None

    def refresh(self) -> None:
        """The best q(u) for what is learned so far, from many draws of many data."""
        chosen = self._subset("fit", self.settings.fit_size)
        likelihood = self.model.likelihood
        if isinstance(likelihood, LocalLikelihood):
            self._refresh_with_local(likelihood, Resident(self.x[chosen], self.y[chosen]))
            return
        with torch.no_grad():
            statistics = pass_statistics(
                self.model,
                Resident(self.x[chosen], self.y[chosen]),
                num_samples=self.settings.fit_samples,
                weigh=mean_pairs,
                seed=pass_seed(self.generators["fit"]),
                group=self.group,
            )
            posterior = self.model.posterior
            prior = posterior.prior_covariance(self.model.kernel)
            factor = cholesky(prior, "Kuu")
            posterior.assign(solve(statistics.scaled_to(self.num_data), prior, factor))
            few = chosen[: self.settings.batch_size]
            unexplained = mean_unexplained(
                self.model,
                self.x[few],
                self.y[few],
                factor,
                num_samples=self.settings.num_samples,
                seed=pass_seed(self.generators["fit"]),
            )
            posterior.assign(replace(posterior.q, narrowing=best_narrowing(unexplained, 1)))

    def _refresh_with_local(self, likelihood: LocalLikelihood, examples: Resident) -> None:
        """The same where the bound has local parameters: q(u) and these in turn."""
        posterior, generator = self.model.posterior, self.generators["fit"]
        draws = {"num_samples": self.settings.fit_samples, "seed": pass_seed(generator)}
        rows = rows_of(self.model, examples, **draws)
        prior = Prior.of(posterior, self.model.kernel)
        weight = self.num_data / examples.num_data
        found = fixed_point(likelihood, rows, prior, weight=weight)
        posterior.assign(found.q)
        if likelihood.recognition is not None:
            teach(likelihood, examples.x, rows.labels, found.moments, generator=generator)

    def finish(self) -> None:
        """Return to the best model that was seen, with its q(u)."""
        now = -math.inf
        if not self.curve or self.curve[-1].step != self.step:
            try:
                self.refresh()
                now = self._elbo_now()[1]
            except NumericalError:
                if self.best is None:
                    raise
        if self.best is not None and not now >= self.best[2]:
            self.model.load_state_dict(self.best[0])

    def is_finite(self) -> bool:
        """Whether the last step left numbers in all parameters."""
        return all(bool(torch.isfinite(p).all()) for p in self.model.parameters())

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """All that the next step depends on besides the model: plain values, and tensors."""
        config = {
            **{name: getattr(self, name) for name in _COUNTERS},
            "curve": [asdict(evaluation) for evaluation in self.curve],
            "best": None if self.best is None else self.best[2],
        }
        tensors = {f"generators.{name}": g.get_state() for name, g in self.generators.items()}
        for place, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{place}.{name}": value for name, value in moments.items()}
        if self.best is not None:
            tensors |= {f"best.model.{name}": value for name, value in self.best[0].items()}
            tensors["best.pointwise"] = self.best[1]
        return config, tensors

    def restore(self, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Go on where `state` was taken, with the model of that moment."""
        counters = {name: int(config[name]) for name in _COUNTERS}
        most = {"coolings": MAX_COOLINGS, "recoveries": MAX_RECOVERIES}
        if min(counters.values()) < 0 or any(counters[name] > most[name] for name in most):
            raise ValueError(f"{counters}, where no more than {most} can be")
        for name, value in counters.items():
            setattr(self, name, value)
        self.curve = evaluations_from(config["curve"])
        for name, generator in self.generators.items():
            generator.set_state(tensors[f"generators.{name}"])
        whole = self.optimizer.state_dict()
        parameters = self.optimizer.param_groups[0]["params"]
        for name, value in within(tensors, "optimizer").items():
            place, moment = name.split(".")
            whole["state"].setdefault(int(place), {})[moment] = value
        for place, moments in whole["state"].items():
            like = parameters[place]
            check_like(
                moments, {"step": torch.zeros(()), "exp_avg": like, "exp_avg_sq": like.abs()}
            )
        self.optimizer.load_state_dict(whole)
        if config["best"] is not None:
            snapshot, pointwise = within(tensors, "best.model"), tensors["best.pointwise"]
            check_like(snapshot, self.model.state_dict())
            empty = torch.zeros(len(self.evaluation_set), dtype=torch.float64)
            check_like({"pointwise": pointwise}, {"pointwise": empty})
            self.best = (snapshot, pointwise, float(config["best"]))
        elif self.step:
            raise ValueError("steps were taken, but no model was kept")

    def _subset(self, name: str, size: int) -> Tensor:
        """Rows drawn without replacement; all of them, in order, if there are no more."""
        if size >= len(self.x):
            return torch.arange(len(self.x))
        order = torch.randperm(len(self.x), generator=self.generators[name])
        return order[:size].to(self.x.device)

    def _elbo_now(self) -> tuple[Tensor, float]:
        """The bound at each point of the evaluation set, with the same draws every time."""
        chosen, settings = self.evaluation_set, self.settings
        x, draws = self.x[chosen], chunk_generator(self.evaluation_seed, LOCAL)
        local = {"num_samples": settings.num_samples, "generator": draws}
        pointwise = pass_bounds(
            self.model,
            Resident(x, carried(self.model, x, self.y[chosen], **local)),
            num_samples=settings.num_samples,
            weigh=unbiased_pairs(settings.num_samples // 2),
            seed=self.evaluation_seed,
            group=self.group,
        )
        value = self.num_data * pointwise.mean() - kl(self.model.posterior.q)
        return pointwise, value.item()

    def _worse_than_best(self, callback: Callback) -> bool:
        """Evaluate, keep the model if it is the best so far, and tell if the bound fell clearly."""
        pointwise, value = self._elbo_now()
        error = _standard_error(pointwise, self.num_data)
        orbit = self.model.orbit
        ranges = {name: list(ends) for name, ends in orbit.learned_ranges().items()}
        self.curve.append(Evaluation(self.step, value, error, orbit.describe(), ranges))
        callback.evaluated(self.curve[-1])
        if not math.isfinite(value):
            return True
        gain, noise = math.inf, 0.0
        if self.best is not None:
            gain = value - self.best[2]
            noise = _standard_error(pointwise - self.best[1], self.num_data)
        significant = gain > max(noise, NEGLIGIBLE, 1e-4 * abs(value))
        self.without_progress = 0 if significant else self.without_progress + 1
        if gain > 0:
            state = {name: t.detach().clone() for name, t in self.model.state_dict().items()}
            self.best = (state, pointwise, value)
        return gain < -max(4 * noise, 1e-3 * abs(value))

    def _cool(self) -> None:
        """No more progress at this step size: on from the best model with a third of it."""
        assert self.best is not None
        self.model.load_state_dict(self.best[0])
        self.coolings += 1
        self._forget_moments()

    def _forget_moments(self) -> None:
        self.without_progress = 0
        self.optimizer.state.clear()

    def _set_step(self, size: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = size

    def _recover(self, reason: str, callback: Callback) -> str | None:
        """Back to the best model, with half the step; after some times, stop there."""
        assert self.best is not None
        grown = _total_width(self.model)
        self.model.load_state_dict(self.best[0])
        grown = grown > _total_width(self.model)
        self.recoveries += 1
        self._forget_moments()
        why = " while the ranges grew, which is a runaway" if grown else ""
        callback.warned(
            f"step {self.step}: {reason}{why}; went back to the best model so far (evidence ≥ "
            f"{self.best[2]:.0f} nats) and halved the learning rate"
        )
        self.step += 1
        if self.recoveries >= MAX_RECOVERIES:
            return f"{reason} {MAX_RECOVERIES} times; the best model was kept"
        return None


def train(training: Training, callback: Callback, keep: Callable[[], None] = lambda: None) -> str:
    """Run to the end, or to Ctrl-C, and leave the best model in place; returns why it stopped.

    `keep` is called between steps, as often as the bound is evaluated, to keep a checkpoint.
    """
    callback.started(training.settings.max_steps)
    reason = None
    try:
        while reason is None:
            reason = training.advance(callback)
            due = training.step % training.settings.evaluate_every == 0
            # a state that is about to be recovered from, or left, is none to go on from
            if reason is None and due and training.is_finite():
                keep()
    except KeyboardInterrupt:
        if training.group.size > 1:  # the others may stand elsewhere: on from the checkpoint
            raise
        reason = INTERRUPTED
    training.finish()
    callback.finished(reason)
    return reason


def _learned(model: InvariantGP) -> list[Tensor]:
    """Parameters that gradients move: not q(u), which is solved, nor Z, nor what is taught."""
    network = getattr(model.likelihood, "recognition", None) or nn.Module()
    own = {id(p) for part in (model.posterior, network) for p in part.parameters()}
    return [p for p in model.parameters() if p.requires_grad and id(p) not in own]


def _standard_error(pointwise: Tensor, num_data: int) -> float:
    """Of N times the mean of n values drawn from N without replacement."""
    size = len(pointwise)
    if size < 2:
        return 0.0
    spread = pointwise.std().item() * num_data / math.sqrt(size)
    return spread * math.sqrt(1 - size / num_data) if size < num_data else spread


def _total_width(model: InvariantGP) -> float:
    """How far the ranges reach, all together."""
    ranges = [part for part in model.orbit.modules() if isinstance(part, UniformRange)]
    return sum(part.widths.sum().item() for part in ranges)
