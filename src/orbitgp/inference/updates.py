"""Two ways to move a model with a batch: along the gradient of the bound, or to the best q(u)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from orbitgp.errors import NumericalError
from orbitgp.model import InvariantGP, mean_pairs
from orbitgp.objective import elbo, statistics
from orbitgp.posterior.closed_form import natural_step
from orbitgp.values import Elbo


@dataclass(frozen=True)
class GradientUpdate:
    """Steps of an optimiser along the gradient of the unbiased bound.

    The log prior of the ranges is added to the bound.

    Parameters
    ----------
    model : InvariantGP
        The model whose parameters the optimiser has.
    optimizer : torch.optim.Optimizer
        Such as Adam.
    num_data : int
        Number of all data.
    num_samples : int or None
        Orbit samples of each input; None for all points of a finite orbit.
    generator : torch.Generator or None
        Source of the samples.
    group_size : int, default=1
        Samples that are evenly spread together.

    Examples
    --------
    >>> import torch
    >>> import orbitgp
    >>> x = torch.linspace(-1, 1, 8)[:, None]
    >>> model = orbitgp.InvariantGP(
    ...     orbit=orbitgp.SignFlips(0),
    ...     kernel=orbitgp.RBF(),
    ...     posterior=orbitgp.InducingPosterior(x, num_outputs=1),
    ...     likelihood=orbitgp.Gaussian(noise=0.01),
    ... )
    >>> adam = torch.optim.Adam(model.kernel.parameters(), lr=0.01)
    >>> update = orbitgp.GradientUpdate(model, adam, 8, num_samples=None, generator=None)
    >>> bool(update.step(x, x[:, 0] ** 2).value < 0)
    True
    """

    model: InvariantGP
    optimizer: torch.optim.Optimizer
    num_data: int
    num_samples: int | None
    generator: torch.Generator | None
    group_size: int = 1

    def step(self, x: Float[Tensor, "N *event"], y: Shaped[Tensor, "N *targets"]) -> Elbo:
        """One step; returns the estimate that it climbed."""
        self.optimizer.zero_grad()
        found = elbo(
            self.model,
            x,
            y,
            num_data=self.num_data,
            num_samples=self.num_samples,
            generator=self.generator,
            group_size=self.group_size,
        )
        objective = found.value + self.model.orbit.log_prior()
        _check_objective(objective)
        if objective.requires_grad:
            (-objective / self.num_data).backward()
        self.optimizer.step()
        return found


def _check_objective(objective: Float[Tensor, ""]) -> None:
    if not torch.isfinite(objective):
        raise NumericalError(
            f"the bound is {objective.item()}, so no step was taken; use a smaller learning rate, "
            "and look for a lengthscale, variance or noise that has run away"
        )


@dataclass(frozen=True)
class NaturalUpdate:
    """Natural-gradient steps of q(u); one of size 1 on all data is the closed-form optimum.

    Parameters
    ----------
    model : InvariantGP
        The model.
    num_data : int
        Number of all data.
    num_samples : int or None
        Orbit samples of each input; None for all points of a finite orbit.
    generator : torch.Generator or None
        Source of the samples.
    step_size : float, default=1.0
        Between 0 and 1.

    Examples
    --------
    >>> import torch
    >>> import orbitgp
    >>> x = torch.linspace(-1, 1, 8)[:, None]
    >>> model = orbitgp.InvariantGP(
    ...     orbit=orbitgp.SignFlips(0),
    ...     kernel=orbitgp.RBF(),
    ...     posterior=orbitgp.InducingPosterior(x, num_outputs=1),
    ...     likelihood=orbitgp.Gaussian(noise=0.01),
    ... )
    >>> update = orbitgp.NaturalUpdate(model, 8, num_samples=None, generator=None)
    >>> update.step(x, x[:, 0] ** 2)
    """

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
            pairs=mean_pairs,
        )
        posterior = self.model.posterior
        factor = posterior.prior_factor(self.model.kernel)
        whole = batch.scaled_to(self.num_data)
        posterior.assign(natural_step(posterior.q, whole, factor, self.step_size))
