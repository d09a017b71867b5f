"""Stage one: learn kernel, noise and ranges at modest M, with the closed-form q(u) inside."""

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from orbitgp.errors import NumericalError
from orbitgp.model import InvariantGP, unbiased_pairs
from orbitgp.orbits.ranges import UniformRange
from orbitgp.posterior.inducing import kl
from orbitgp.sealed import check_like, within
from orbitgp.training.callbacks import Callback, Evaluation, evaluations_from
from orbitgp.training.carrying import carried
from orbitgp.training.first_scales import take_first_scales
from orbitgp.training.group import ALONE, Group
from orbitgp.training.passes import Resident, chunk_generator, pass_bounds
from orbitgp.training.refreshing import Refresh
from orbitgp.training.settings import TrainingSettings
from orbitgp.training.updates import GradientUpdate, falling, rising

INTERRUPTED = "interrupted; the best model so far was kept"
FELL = "the bound fell"
MAX_RECOVERIES = 3
MAX_COOLINGS = 2
NEGLIGIBLE = 0.5
"""Nats that are no progress."""

LOCAL = 2**40
"""A number that no chunk has, for the draws that local parameters come from."""

GROWN = 1.5
"""Times the width of all ranges from which on a fall of the bound is a runaway."""

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
        self.refreshing = Refresh.of(
            x,
            y,
            size=settings.fit_size,
            num_samples=settings.fit_samples,
            num_data=self.num_data,
            generator=self.generators["fit"],
            group=group,
        )
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
        """The full step size: a third of it after each cooling, a half after each recovery."""
        return self.settings.learning_rate * 3.0**-self.coolings * 2.0**-self.recoveries

    def advance(self, callback: Callback) -> str | None:
        """One step, with an evaluation where one is due; why to stop, if it is time to."""
        settings = self.settings
        try:
            if self.step == 0 and not self.model.posterior.mean.any():
                drawn = {"generator": self.generators["fit"], "group": self.group}
                take_first_scales(self.model, self.x, self.y, num_data=self.num_data, **drawn)
            due = self.step % settings.evaluate_every == 0
            if due or self.step % settings.refresh_every == 0:
                self.refresh()
            if due and self._worse_than_best(callback):
                return self._recover(FELL, callback)
            if self.step >= settings.max_steps:
                return "the largest number of steps was reached"
            if self.without_progress >= settings.patience:
                if self.coolings >= MAX_COOLINGS:
                    return "the evidence has settled"
                self._cool()
            self._set_step(self.rate * rising(self.step) * falling(self.step / settings.max_steps))
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
        """The best q(u) for what is learned so far, and the scales that go with it."""
        self.refreshing.take(self.model, generator=self.generators["fit"])

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
            raise NumericalError(f"the bound is {value}")
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
        """Back to the best model, with half the step; after some times, stop there.

        A bound that falls while the ranges stay only tells that steps were too long: no warning,
        unless that ends the run.
        """
        assert self.best is not None
        width = _total_width(self.model)
        self.model.load_state_dict(self.best[0])
        grown = width > GROWN * _total_width(self.model)
        self.recoveries += 1
        self._forget_moments()
        last = self.recoveries >= MAX_RECOVERIES
        if grown or last or reason != FELL:
            why = " while the ranges grew, which is a runaway" if grown else ""
            callback.warned(
                f"step {self.step}: {reason}{why}; went back to the best model so far (evidence ≥ "
                f"{self.best[2]:.0f} nats) and halved the learning rate"
            )
        self.step += 1
        if last:
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
