"""The lengthscale before the first step of stage one, with the variance and noise that suit it.

Gradients hardly move a lengthscale while q(u) is held, as that was fitted to it: a stage one that
begins with a long lengthscale ends with one. But at each there is the best q(u) in closed form, so
lengthscales 0.8ᵏ ℓ are tried one after the other, uphill from where they start.
"""

import copy
import functools
import math

import torch
from torch import Tensor

from orbitgp.errors import NumericalError
from orbitgp.kernels import RBF
from orbitgp.model import InvariantGP
from orbitgp.training.climbing import highest
from orbitgp.training.group import Group
from orbitgp.training.refreshing import Refresh, has_free_scales
from orbitgp.training.rescaling import Rescaled, assign_scales
from orbitgp.training.starts import with_points

NUM_FITTED, NUM_SAMPLES = 4000, 8
"""Data that q(u) is fitted on, and orbit points of each."""

LENGTHS = tuple(0.8**k for k in range(-10, 11))
"""What the lengthscale is multiplied by, at most."""


@torch.no_grad()
def take_first_scales(
    model: InvariantGP,
    x: Tensor,
    y: Tensor,
    *,
    num_data: int,
    generator: torch.Generator,
    group: Group,
) -> None:
    """Give the model the scales of most evidence that lie uphill from its own, if it learns them.

    Those of an RBF and of one Gaussian noise; others are left as they are.
    """
    kernel = model.kernel
    learned = isinstance(kernel, RBF) and kernel.raw_lengthscale.requires_grad
    if not (learned and has_free_scales(model)):
        return
    shared = {"num_data": num_data, "generator": generator, "group": group}
    ground = Refresh.of(x, y, size=NUM_FITTED, num_samples=NUM_SAMPLES, **shared)

    @functools.cache
    def scales(place: int) -> Rescaled | None:
        try:
            solved = ground.solved(_with_lengthscale(model, LENGTHS[place]))
            return ground.scales(solved)
        except NumericalError:
            return None

    def score(place: tuple[int, ...]) -> float:
        found = scales(place[0])
        # every process asks for the same place next, as all of them add up its statistics
        return group.from_first(lambda: -math.inf if found is None else found.bound)

    (best,) = highest(score, (LENGTHS.index(1.0),), (len(LENGTHS),))
    found = scales(best)
    if found is not None:
        kernel.lengthscale = kernel.lengthscale.detach() * LENGTHS[best]
        assign_scales(model, found)


def _with_lengthscale(model: InvariantGP, factor: float) -> InvariantGP:
    """The same inducing points under a kernel that is so many times as long."""
    kernel = copy.deepcopy(model.kernel)
    assert isinstance(kernel, RBF)
    kernel.lengthscale = kernel.lengthscale.detach() * factor
    return with_points(model, kernel=kernel)
