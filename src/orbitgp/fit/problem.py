"""What is to be learned from what, and all draws of a fit, which are made at its start."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.distributed.group import Group
from orbitgp.hyperparameters.learn import Landscape
from orbitgp.hyperparameters.parameters import Parameters
from orbitgp.hyperparameters.subset_evidence import Subset
from orbitgp.inference.passes import Examples
from orbitgp.orbit_model import OrbitModel

NUM_LEFT_OUT = 2000
"""Data that a bound leaves out in turn."""

NUM_DRAW_SETS = 8
"""Sets of orbit draws: the first serves the fit, the others estimate its standard error."""


@dataclass(frozen=True)
class Problem:
    """A model at its start, data, and the largest mean of v k_f(x, x)/σ²."""

    model: OrbitModel
    examples: Examples
    max_ratio: float
    group: Group

    @property
    def targets(self) -> Float[Tensor, "N C"]:
        """What a Gaussian likelihood makes of the labels in memory."""
        examples = self.examples
        return self.model.likelihood.quadratic_bound(examples.x, examples.y).targets


class Sampling:
    """The order in which data serve as subsets, and the orbit draws that all inputs share."""

    def __init__(self, problem: Problem, enumerated: bool, generator: torch.Generator) -> None:
        self.problem, self.enumerated = problem, enumerated
        size, device = len(problem.examples.x), problem.examples.x.device
        self.order = torch.randperm(size, generator=generator).to(device)
        shape = (NUM_DRAW_SETS,)
        self.seeds = torch.randint(2**62, shape, generator=generator).tolist()
        self.targets = problem.targets

    @property
    def left_out(self) -> Int[Tensor, "T"]:
        """Data to calibrate on: those without an inducing variable are like those to come."""
        return self.order.flip(0)[:NUM_LEFT_OUT]

    def noise(self, num_draws: int, place: int = 0) -> Float[Tensor, "1 S K"] | None:
        """Noise of so many draws of one of the sets; None where a finite orbit is enumerated."""
        if self.enumerated:
            return None
        orbit = self.problem.model.orbit
        generator = torch.Generator().manual_seed(self.seeds[place])
        return orbit.shared_noise(orbit.num_shared(num_draws), generator=generator)

    def landscape(
        self, parameters: Parameters, num_data: int, num_draws: int, place: int = 0
    ) -> Landscape:
        """The exact evidence of the first data of the order, with one set of draws."""
        rows, x = self.order[:num_data], self.problem.examples.x
        subset = Subset(x[rows], self.targets[rows], self.noise(num_draws, place))
        return Landscape(self.problem.model, parameters, subset, self.problem.max_ratio)
