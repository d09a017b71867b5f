"""Covariances of averages of g as plain tensor operations, which a graph can hold."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orbitgp.errors import InputError
from orbitgp.kernels import RBF, Kernel, MaternKernel, RBFKernel, ScaleKernel

Profile = Callable[[Tensor], Tensor]

MAX_GROUPS = 8
"""Products that a graph takes for its covariances."""


class AverageCovariances(nn.Module):
    """mean_st k_g(x_ns, b_it) of points x [N, S, D] with averages over points b [K, J, D].

    For k_g(x, z) = v h(−½ |w ∘ (x − z)|²), which RBF and Matérn kernels are. With rows
    (wx, −½|wx|², 1) and (wz, 1, −½|wz|²) one product gives the argument of h.

    Parameters
    ----------
    kernel : gpytorch.kernels.Kernel
        k_g.
    points : Tensor of shape (K, J, D)
        b.
    """

    centre: Float[Tensor, "D"]
    inverse: Float[Tensor, "W"]
    variance: Float[Tensor, ""]
    shares: Float[Tensor, "K"]
    right: Float[Tensor, "G JK D2"]

    def __init__(self, kernel: Kernel, points: Float[Tensor, "K J D"]) -> None:
        super().__init__()
        self.profile, inverse, variance = _stationary(kernel)
        # as tensors, since numbers may be rounded to float32 in a graph
        self.register_buffer("variance", torch.tensor(variance, dtype=torch.float64))
        # distances do not change under a shift, rounding does: keep the numbers near 0
        self.register_buffer("centre", points.mean((0, 1)))
        self.register_buffer("inverse", inverse.to(points))
        scaled, norms = self._scaled(points)
        right = torch.cat([scaled, torch.ones_like(norms), -norms], 2).transpose(0, 1)
        self.num_points = points.shape[1]
        # v/J for each column: runtimes round a single number that meets a product to float32
        shares = torch.full((len(points),), variance / self.num_points, dtype=torch.float64)
        self.register_buffer("shares", shares)
        self.register_buffer("right", right.unflatten(0, _groups(self.num_points)).flatten(1, 2))

    def forward(self, points: Float[Tensor, "N S D"]) -> Float[Tensor, "N K"]:
        """In float64."""
        scaled, norms = self._scaled(points)
        left = torch.cat([scaled, -norms, torch.ones_like(norms)], 2).flatten(0, 1)
        num_draws, num_groups = points.shape[1], len(self.right)
        total = self.profile(left @ self.right[0].mT)
        for place in range(1, num_groups):
            total = total + self.profile(left @ self.right[place].mT)
        each = total.unflatten(1, (self.num_points // num_groups, -1)).sum(1)
        return each.unflatten(0, (-1, num_draws)).double().mean(1) * self.shares

    def variances(self, points: Float[Tensor, "N S D"]) -> Float[Tensor, "N 1"]:
        """mean_st k_g(x_ns, x_nt), in float64."""
        scaled, norms = self._scaled(points)
        arguments = (scaled @ scaled.mT - norms - norms.mT).clamp(max=0)
        return self.profile(arguments).double().mean((1, 2)).unsqueeze(1) * self.variance

    def _scaled(
        self, points: Float[Tensor, "N S D"]
    ) -> tuple[Float[Tensor, "N S D"], Float[Tensor, "N S 1"]]:
        """w ∘ (x − centre), and half of its squared length."""
        scaled = (points - self.centre) * self.inverse
        return scaled, scaled.square().sum(2, keepdim=True) / 2


def _groups(num_points: int) -> tuple[int, int]:
    """J as a product G · J/G with G ≤ 8: one product for each group bounds memory and nodes."""
    num_groups = max(g for g in range(1, MAX_GROUPS + 1) if num_points % g == 0)
    return num_groups, num_points // num_groups


@torch.no_grad()
def _stationary(kernel: Kernel) -> tuple[Profile, Float[Tensor, "W"], float]:
    """h, w and v of a kernel."""
    inner, variance = kernel, 1.0
    if isinstance(kernel, ScaleKernel):
        inner, variance = kernel.base_kernel, kernel.outputscale.item()
    elif isinstance(kernel, RBF):
        variance = kernel.variance.item()
    known = type(inner) in (RBF, RBFKernel, MaternKernel)
    if not known or inner.active_dims is not None or inner.batch_shape:
        raise InputError(
            f"a predictor file can hold RBF and Matérn kernels of all features; got {inner}: fit "
            "with one of them"
        )
    nu = inner.nu if isinstance(inner, MaternKernel) else math.inf
    return _profile(nu), (1 / inner.lengthscale).reshape(-1), variance


def _profile(nu: float) -> Profile:
    """h(a) with a = −½ |w ∘ (x − z)|²; ν = ∞ is the RBF."""
    if nu == math.inf:
        return torch.exp

    def matern(arguments: Tensor) -> Tensor:
        # with r = √(2ν) |w ∘ (x − z)|: 1, 1 + r, 1 + r + r²/3 times exp(−r)
        r = (-4 * nu * arguments).clamp(min=0).sqrt()
        factor = {0.5: torch.ones_like, 1.5: lambda r: 1 + r, 2.5: lambda r: 1 + r + r * r / 3}
        return factor[nu](r) * torch.exp(-r)

    return matern
