"""The training loop: a gradient step of the hyperparameters and a natural step of q(u), together.

Each step draws a minibatch and S orbit samples of each input, and estimates the bound without bias.
Adam follows its gradient in ranges, kernel, likelihood and inducing points; the same samples give
the natural gradient of q(u). Several processes share the rows of a batch and add up their sums.
"""

import math
import statistics
from dataclasses import asdict
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.callbacks.base import Callback, Evaluation, evaluations_from
from orbitgp.distributed.group import Group
from orbitgp.errors import FileError, NumericalError
from orbitgp.fit.checkpoint import Checkpoint
from orbitgp.inference.passes import Examples, chunk_generator
from orbitgp.model import InvariantGP, unbiased_pairs
from orbitgp.posterior.inducing import kl
from orbitgp.sealed import MALFORMED, check_like, within
from orbitgp.stochastic.batches import batches_of
from orbitgp.stochastic.natural import NaturalParameters
from orbitgp.stochastic.optimizer import adam, keep_within_limits, set_rates
from orbitgp.stochastic.settings import StochasticSettings
from orbitgp.stochastic.terms import BatchTerms, batch_terms

INTERRUPTED = "interrupted; the model of the last step was kept"
DONE = "all steps were taken"


class Training:
    """A model in training, its optimiser, and q(u) by its natural parameters."""

    def __init__(
        self,
        model: InvariantGP,
        natural: NaturalParameters,
        examples: Examples,
        settings: StochasticSettings,
        *,
        seed: int,
        group: Group,
    ) -> None:
        self.model, self.natural, self.settings = model, natural, settings
        self.num_data, self.seed, self.group = examples.num_data, seed, group
        self.batches = batches_of(examples, settings.batch_size, seed, group)
        self.pairs = unbiased_pairs(settings.group_size)
        self.optimizer = adam(model, settings)
        self.num_steps = 0
        self.curve: list[Evaluation] = []
        self._recent: list[float] = []
        self.stopped = ""

    def finish(self, callback: Callback, checkpoint: Checkpoint) -> None:
        """Take all steps that are left, and give the model the last q(u)."""
        settings = self.settings
        callback.started(settings.num_steps)
        try:
            while self.num_steps < settings.num_steps:
                self._recent.append(self.step())
                callback.stepped(self.num_steps)
                if self.num_steps % settings.report_every == 0:
                    self._report(callback)
                if self.num_steps % settings.checkpoint_every == 0:
                    checkpoint.keep(self)
            self.stopped = DONE
        except KeyboardInterrupt:
            if self.group.size > 1:  # the others may stand elsewhere: resume instead
                raise
            self.stopped = INTERRUPTED
        callback.finished(self.stopped)
        self.model.posterior.assign(self.natural.gaussian())

    def step(self) -> float:
        """One step of everything; returns the estimate of the bound before it, in nats."""
        x, y = self.batches.take(self.num_steps)
        q = self.natural.gaussian()
        self.optimizer.zero_grad(set_to_none=False)
        terms = batch_terms(self.model, q, x, y, self._noise(), self.pairs)
        share = self.num_data / self.batches.size
        objective = share * terms.expected + self.model.orbit.log_prior() / self.group.size
        if objective.requires_grad:
            (-objective / self.num_data).backward()
        expected = self._summed(terms)
        bound = share * expected - kl(q).item()
        _check_bound(bound)
        optimum = NaturalParameters.optimum(share * terms.gram, share * terms.linear)
        size = self.settings.natural_rate_at(self.num_steps, self.num_data)
        self.natural = self.natural.toward(optimum, size)
        set_rates(self.optimizer, self.model, self.settings.rate_at(self.num_steps))
        self.optimizer.step()
        keep_within_limits(self.model)
        self.num_steps += 1
        return bound

    def _noise(self) -> Float[Tensor, "R S K"] | None:
        """Noise of the orbit samples of the whole batch, of which each process takes its rows."""
        generator = chunk_generator(self.seed + 1, self.num_steps)
        sizes = {"group_size": self.settings.group_size, "generator": generator}
        noise = self.model.orbit_noise(self.batches.size, self.settings.num_draws, **sizes)
        return None if noise is None else noise[self.group.rank :: self.group.size]

    def _summed(self, terms: BatchTerms) -> float:
        """Gradients, and sums over the batch, of all processes, in one message."""
        expected = terms.expected.detach().clone()
        parts = self._learned()
        slopes = [torch.zeros_like(p) if p.grad is None else p.grad for p in parts]
        self.group.add_(expected, terms.gram, terms.linear, *slopes)
        for part, slope in zip(parts, slopes, strict=True):
            part.grad = slope
        return expected.item()

    def _learned(self) -> list[Tensor]:
        """All that Adam moves."""
        return [part for group in self.optimizer.param_groups for part in group["params"]]

    def _report(self, callback: Callback) -> None:
        """The mean of the bounds since the last report, which is an estimate, and the ranges."""
        bound, orbit = statistics.fmean(self._recent), self.model.orbit
        self.curve.append(
            Evaluation(
                step=self.num_steps,
                evidence=bound,
                num_data=self.num_data,
                learned=orbit.describe(),
                ranges=orbit.learned_ranges(),
                kind="bound",
            )
        )
        self._recent = []
        callback.evaluated(self.curve[-1])
        self.model.posterior.assign(self.natural.gaussian())
        callback.observed(self.model)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """All that the rest depends on besides data, settings and seed."""
        config = {
            "num_steps": self.num_steps,
            "curve": [asdict(evaluation) for evaluation in self.curve],
            "recent": self._recent,
        }
        return config, self._tensors()

    def _tensors(self) -> dict[str, Tensor]:
        own = {"natural.precision": self.natural.precision, "natural.target": self.natural.target}
        own |= {f"model.{name}": value for name, value in self.model.state_dict().items()}
        moments = self.optimizer.state_dict()["state"]
        for number, values in moments.items():
            own |= {f"adam.{number}.{name}": values[name] for name in ("exp_avg", "exp_avg_sq")}
        return own

    def restore(self, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Go on where `state` was taken."""
        try:
            num_steps = int(config["num_steps"])
            if not 0 <= num_steps <= self.settings.num_steps:
                raise ValueError(f"step {num_steps} of {self.settings.num_steps}")
            curve = evaluations_from(config["curve"])
            recent = [float(value) for value in config["recent"]]
            self._fill(tensors, num_steps)
        except FileError:
            raise
        except MALFORMED as error:
            raise FileError(
                f"the checkpoint does not belong to this run ({type(error).__name__}: {error}); "
                "delete it to start again"
            ) from None
        self.num_steps, self.curve, self._recent = num_steps, curve, recent

    def _fill(self, tensors: dict[str, Tensor], num_steps: int) -> None:
        """Model, q(u) and the optimiser's moments, checked before any of them is taken."""
        own, natural = self._tensors(), within(tensors, "natural")
        plain = {name: value for name, value in own.items() if not name.startswith("adam.")}
        kept = {name: value for name, value in tensors.items() if not name.startswith("adam.")}
        check_like(kept, plain)
        state = {}
        for number, part in enumerate(self._learned()):
            found = within(tensors, f"adam.{number}")
            check_like(found, {"exp_avg": part, "exp_avg_sq": part})
            state[number] = {**found, "step": torch.tensor(float(num_steps))}
        device = self.natural.target.device
        self.model.load_state_dict(within(tensors, "model"))
        self.natural = NaturalParameters(**{k: value.to(device) for k, value in natural.items()})
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})


def _check_bound(bound: float) -> None:
    if not math.isfinite(bound):
        raise NumericalError(
            f"the bound is {bound}, so no step was taken; use a smaller `rate`, and look for a "
            "lengthscale, variance or noise that has run away"
        )
