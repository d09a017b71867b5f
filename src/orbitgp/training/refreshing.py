"""The best q(u) for what is learned so far, and with it the best variance and noise.

While q(u) is held, gradients hardly move the scales of kernel and noise that it was fitted with.
But for each ratio of the two everything else is closed form (`rescaling.py`), so they are found
together with q(u). Data and draws are the same every time: two bounds differ by what was learned.
"""

import functools
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from orbitgp.kernels import RBF
from orbitgp.likelihoods.gaussian import Gaussian
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP, mean_pairs
from orbitgp.posterior.algebra import cholesky
from orbitgp.posterior.closed_form import solve
from orbitgp.posterior.inducing import best_narrowing
from orbitgp.training.climbing import highest
from orbitgp.training.fixed_point import Prior, fixed_point, rows_of
from orbitgp.training.group import Group
from orbitgp.training.passes import (
    Resident,
    chunk_generator,
    mean_unexplained,
    pass_seed,
    pass_statistics,
)
from orbitgp.training.rescaling import (
    NUM_SAMPLES,
    Rescaled,
    assign_scales,
    bounds_along,
    fresh_draws,
    rescaled,
)
from orbitgp.training.solving import Solved
from orbitgp.training.teaching import teach

NUM_JUDGES = 1000
RATIOS = tuple(2 ** (k / 2) for k in range(-20, 21))
"""What v/σ² is multiplied by, uphill from 1."""


@dataclass(frozen=True)
class Refresh:
    """Data with draws that q(u) is fitted on, and others that the scales are judged on."""

    examples: Resident
    judges: Resident
    num_data: int
    num_samples: int
    seeds: tuple[int, int]
    group: Group

    @classmethod
    def of(
        cls,
        x: Tensor,
        y: Tensor,
        *,
        size: int,
        num_samples: int,
        num_data: int,
        generator: torch.Generator,
        group: Group,
    ) -> "Refresh":
        """Of so many data, or all; judges are those that are left, and then the same."""
        order = torch.randperm(len(x), generator=generator).to(x.device)
        fitted, others = order.tensor_split([size])
        judges = torch.cat([others, fitted])[:NUM_JUDGES]
        seeds = pass_seed(generator), pass_seed(generator)
        examples = Resident(x[fitted], y[fitted]), Resident(x[judges], y[judges])
        return cls(*examples, num_data, num_samples, seeds, group)

    def take(self, model: InvariantGP, *, generator: torch.Generator) -> None:
        """Give the model its best q(u), and the scales that go with it where they are free."""
        likelihood, posterior = model.likelihood, model.posterior
        if isinstance(likelihood, LocalLikelihood):
            self._take_local(model, likelihood, generator)
            return
        solved = self.solved(model)
        if has_free_scales(model):
            assign_scales(model, self.scales(solved))
            return
        posterior.assign(solve(solved.statistics, solved.prior_covariance, solved.prior_factor))
        draws = {"num_samples": NUM_SAMPLES, "seed": self.seeds[1]}
        few = self.judges.x, self.judges.y
        unexplained = mean_unexplained(model, *few, solved.prior_factor, **draws)
        posterior.assign(replace(posterior.q, narrowing=best_narrowing(unexplained, 1)))

    @torch.no_grad()
    def solved(self, model: InvariantGP) -> Solved:
        """The statistics of these data, as if they were all, with what q(u) is made of."""
        draws = {"num_samples": self.num_samples, "weigh": mean_pairs, "seed": self.seeds[0]}
        statistics = pass_statistics(model, self.examples, **draws, group=self.group)
        prior = model.posterior.prior_covariance(model.kernel)
        factor, whole = cholesky(prior, "Kuu"), statistics.scaled_to(self.num_data)
        return Solved(model, whole, prior, factor, self.seeds[0], self.num_samples)

    @torch.no_grad()
    def scales(self, solved: Solved) -> Rescaled:
        """The highest bound that lies uphill from the scales of the model."""
        generator = chunk_generator(self.seeds[1], 0)
        draws = fresh_draws(solved, self.judges.x, self.judges.y, generator=generator)
        bounds = bounds_along(solved, draws, torch.tensor(RATIOS), self.num_data).tolist()
        climb = functools.partial(
            highest, lambda place: bounds[place[0]], (RATIOS.index(1.0),), (len(RATIOS),)
        )
        # processes whose sums are rounded otherwise must not take other ways
        (best,) = self.group.from_first(climb)
        return rescaled(solved, draws, RATIOS[best], self.num_data)

    def _take_local(
        self, model: InvariantGP, likelihood: LocalLikelihood, generator: torch.Generator
    ) -> None:
        """The same where the bound has local parameters: q(u) and these in turn."""
        posterior, examples = model.posterior, self.examples
        rows = rows_of(model, examples, num_samples=self.num_samples, seed=self.seeds[0])
        prior = Prior.of(posterior, model.kernel)
        found = fixed_point(likelihood, rows, prior, weight=self.num_data / examples.num_data)
        posterior.assign(found.q)
        if likelihood.recognition is not None:
            teach(likelihood, examples.x, rows.labels, found.moments, generator=generator)


def has_free_scales(model: InvariantGP) -> bool:
    """Whether one variance and one noise are learned, which closed forms are known for."""
    kernel, likelihood = model.kernel, model.likelihood
    if not (isinstance(kernel, RBF) and isinstance(likelihood, Gaussian)):
        return False
    free = kernel.raw_variance.requires_grad and likelihood.raw_noise.requires_grad
    return free and likelihood.num_precisions == 1
