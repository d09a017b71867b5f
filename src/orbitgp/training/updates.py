"""Two ways to move a model with a batch: along the gradient of the bound, or to the best q(u)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from orbitgp.errors import NumericalError
from orbitgp.model import InvariantGP, mean_pairs, unbiased_pairs
from orbitgp.objective import check_batch, check_num_data, pointwise_bound_at, statistics
from orbitgp.orbits.base import check_inputs
from orbitgp.posterior.closed_form import natural_step
from orbitgp.posterior.inducing import kl
from orbitgp.training.group import ALONE, Group
from orbitgp.values import Elbo

RISING = 10
"""Steps in which the step size rises."""


@dataclass(frozen=True)
class GradientUpdate:
    """Ascent of the unbiased bound, plus the log prior of the ranges, by an optimiser.

    Several processes that hold the same batch share its rows; they draw the same noise, and one
    message adds up their gradients.
    """

    model: InvariantGP
    optimizer: torch.optim.Optimizer
    num_data: int
    num_samples: int | None
    generator: torch.Generator | None
    group_size: int = 1
    group: Group = ALONE

    def step(self, x: Float[Tensor, "N *event"], y: Shaped[Tensor, "N *targets"]) -> Elbo:
        """One step; returns the estimate that it climbed."""
        check_inputs(x)
        check_batch(x, y)
        check_num_data(self.num_data, x)
        self.optimizer.zero_grad()
        draws = {"generator": self.generator, "group_size": self.group_size}
        noise = self.model.orbit_noise(len(x), self.num_samples, **draws)
        rows, divergence = self.group.share(len(x)), kl(self.model.posterior.q)
        own = None if noise is None else noise[rows]
        fit = self._fit(x[rows], y[rows], own) * (self.num_data / len(x))
        # of what is not a sum over rows, each process takes as much as its share of the rows
        share = len(x[rows]) / len(x)
        part = fit + share * (self.model.orbit.log_prior() - divergence)
        if self.group.size == 1:
            _check_objective(part)
        if part.requires_grad:
            (-part / self.num_data).backward()
        if self.group.size > 1:
            fit, part = fit.detach(), part.detach()
            self.group.add_(fit, part, *_gradients(self.optimizer))
            _check_objective(part)
        self.optimizer.step()
        return Elbo(fit, divergence)

    def _fit(self, x: Tensor, y: Tensor, noise: Tensor | None) -> Float[Tensor, ""]:
        """Σ of the bounds at these rows, of which there may be none."""
        if not len(x):
            self.model.posterior.prior_factor(self.model.kernel)  # fails here if it does elsewhere
            return torch.zeros((), dtype=torch.float64, device=x.device)
        sample = self.model.sample_orbit_at(x, noise)
        return pointwise_bound_at(self.model, sample, x, y, unbiased_pairs(self.group_size)).sum()


def _gradients(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Of all parameters; zeros where a process had none."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return [parameter.grad for parameter in parameters]


def _check_objective(objective: Float[Tensor, ""]) -> None:
    if not torch.isfinite(objective):
        raise NumericalError(
            f"the bound is {objective.item()}, so no step was taken; use a smaller learning rate, "
            "and look for a lengthscale, variance or noise that has run away"
        )


@dataclass(frozen=True)
class NaturalUpdate:
    """A natural-gradient step of q(u); of size 1 on all data, the closed-form optimum."""

    model: InvariantGP
    num_data: int
    num_samples: int | None
    generator: torch.Generator | None
    step_size: float = 1.0

    @torch.no_grad()
    def step(self, x: Float[Tensor, "N *event"], y: Shaped[Tensor, "N *targets"]) -> None:
        """One step, from mean cross-covariances so that q(u) stays a Gaussian."""
        batch = statistics(
            self.model,
            x,
            y,
            num_samples=self.num_samples,
            generator=self.generator,
            weigh=mean_pairs,
        )
        posterior = self.model.posterior
        factor = posterior.prior_factor(self.model.kernel)
        whole = batch.scaled_to(self.num_data)
        posterior.assign(natural_step(posterior.q, whole, factor, self.step_size))


def rising(step: int) -> float:
    """Of the step size, when so many steps are done: to 1 in the first `RISING` of them.

    Adam's first steps are as long as its later ones, whatever the gradient.
    """
    return min(1.0, (step + 1) / RISING)


def falling(part: float) -> float:
    """Of the step size, when this part of all steps is done: 1, then to 0 in the second half."""
    return min(1.0, 2 * (1 - part))
