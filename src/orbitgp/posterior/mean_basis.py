"""A mean of q(f) on more variables than its covariance (Cheng and Boots 2017)."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orbitgp.kernels import Kernel, average_covariances_with
from orbitgp.posterior.inducing import sums_with_u
from orbitgp.values import OrbitSample

MEMORY = 2**27
"""Bytes of covariances that are held at once."""


class MeanBasis(nn.Module):
    """μ(x) = Σ_i Cov(f(x), b_i) a_i, b_i = mean_j g(b_ij), for as many b_i as there are data.

    A covariance on M variables costs M³; a mean is found without any matrix of that kind.
    """

    points: Float[Tensor, "K J D"]
    weights: Float[Tensor, "K C"]

    def __init__(self, points: Float[Tensor, "K J D"], weights: Float[Tensor, "K C"]) -> None:
        super().__init__()
        self.register_buffer("points", points)
        self.register_buffer("weights", weights)

    def mean_with(self, kernel: Kernel) -> Callable[[Float[Tensor, "N S D"]], Float[Tensor, "N C"]]:
        """μ from all points of the orbits, as a function of them."""
        covariances_with = average_covariances_with(kernel, self.points)
        return lambda points: covariances_with(points) @ self.weights

    def means(self, kernel: Kernel, sample: OrbitSample, group_size: int) -> Float[Tensor, "N B C"]:
        """The mean of g, averaged over each group of samples of each input."""
        num_groups = sample.num_samples // group_size
        size = max(1, MEMORY // (8 * num_groups * len(self.points)))
        found = []
        for points in sample.points.split(size):
            sums = sums_with_u(kernel, OrbitSample(points), self.points, group_size)
            found.append(sums @ self.weights / group_size)
        return torch.cat(found)
