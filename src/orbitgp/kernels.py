"""The border with GPyTorch: evaluating its kernels, our fast RBF, and the exact invariant kernel.

Everything else in the library sees dense tensors only.
"""

import copy
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel as Kernel
from gpytorch.kernels import MaternKernel as MaternKernel
from gpytorch.kernels import RBFKernel as RBFKernel
from gpytorch.kernels import RQKernel
from gpytorch.kernels import ScaleKernel as ScaleKernel
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from orbitgp.errors import InputError
from orbitgp.gaussians import (
    average_gaussian_gradients,
    average_gaussians_among,
    average_gaussians_with,
    gaussian_among,
    scaled_gaussian,
    slices,
)
from orbitgp.values import OrbitSample

BLOCK = 1024
"""Points whose covariances with others are computed at a time."""


def covariance(
    kernel: Kernel, left: Float[Tensor, "*B N D"], right: Float[Tensor, "*B M D"]
) -> Float[Tensor, "*B N M"]:
    """k(left, right) as a dense tensor, in the dtype of the points, for any GPyTorch kernel."""
    if type(kernel) is RBF and kernel.active_dims is None:
        return kernel.forward(left, right)  # never lazy: nothing to undo
    parameters = {name: p.to(left.dtype) for name, p in kernel.named_parameters()}
    return functional_call(
        _Dense(kernel), {f"kernel.{n}": p for n, p in parameters.items()}, (left, right)
    )


def covariance_among(
    kernel: Kernel, points: Float[Tensor, "*B N D"], dtype: torch.dtype
) -> Float[Tensor, "*B N N"]:
    """k(points, points) in this dtype; gradients are no finer than the points that they move."""
    if type(kernel) is RBF and kernel.active_dims is None:
        return kernel.among(points, dtype)
    points = points.to(dtype)
    return covariance(kernel, points, points)


def average_covariances(
    kernel: Kernel, left: Float[Tensor, "N S D"], right: Float[Tensor, "M J D"]
) -> Float[Tensor, "N M"]:
    """mean_st k_g(x_ns, z_mt), in float64: covariances of averages of g, for any kernel."""
    return average_covariances_with(kernel, right)(left)


@torch.no_grad()
def average_covariances_with(
    kernel: Kernel, right: Float[Tensor, "M J D"]
) -> Callable[[Float[Tensor, "N S D"]], Float[Tensor, "N M"]]:
    """`average_covariances` as a function of the left; what depends on the right is done once."""
    if not _is_plain(kernel):
        return functools.partial(_average_by_blocks, kernel, right)
    inverse, variance = kernel.constants(right)
    gaussians = average_gaussians_with(right, inverse)
    return torch.no_grad()(lambda left: gaussians(left).mul_(variance))


@torch.no_grad()
def _average_by_blocks(
    kernel: Kernel, right: Float[Tensor, "M J D"], left: Float[Tensor, "N S D"]
) -> Float[Tensor, "N M"]:
    """The same by GPyTorch's own evaluation, some rows at a time."""
    sums = left.new_zeros(len(left), len(right), dtype=torch.float64)
    for rows in slices(len(left), max(1, BLOCK // left.shape[1])):
        for points in right.unbind(1):
            found = covariance(kernel, left[rows].flatten(0, 1), points)
            sums[rows] += found.double().unflatten(0, (-1, left.shape[1])).sum(1)
    return sums.div_(left.shape[1] * right.shape[1])


@torch.no_grad()
def average_covariances_among(
    kernel: Kernel, points: Float[Tensor, "N S D"]
) -> Float[Tensor, "N N"]:
    """The same of averages among themselves; symmetric to the last bit."""
    if _is_plain(kernel):
        inverse, variance = kernel.constants(points)
        return average_gaussians_among(points, inverse).mul_(variance)
    half = average_covariances(kernel, points, points).tril_()
    return half.add_(half.tril(-1).mT)


def average_gradients(
    kernel: Kernel,
    raw: Sequence[Tensor],
    points: Float[Tensor, "N S D"],
    upstream: Float[Tensor, "N N"],
) -> tuple[Float[Tensor, "N S D"], list[Tensor]]:
    """Of Σ_nm G_nm mean_st k_g(x_ns, x_mt) with respect to the points and to these parameters.

    For a symmetric G; block by block, so that no more than a block is ever held. Of a plain RBF,
    the lengthscale is the only parameter that is derived.
    """
    if _is_plain(kernel):
        with torch.no_grad():
            inverse, variance = kernel.constants(points)
            slopes, by_inverse = average_gaussian_gradients(points, inverse, variance * upstream)
        with torch.enable_grad():
            log_inverse = -kernel.lengthscale.log().reshape(-1)
            by_inverse = by_inverse.reshape(-1).to(log_inverse)
            totals = torch.autograd.grad(log_inverse, raw, by_inverse, materialize_grads=True)
        return slopes, list(totals)
    num_samples = points.shape[1]
    weights = (upstream / num_samples**2).to(points)
    slopes, totals = torch.zeros_like(points), [torch.zeros_like(part) for part in raw]
    blocks = slices(len(points), max(1, BLOCK // num_samples))
    for a, b in itertools.combinations_with_replacement(blocks, 2):
        with torch.enable_grad():
            left = points[a].flatten(0, 1).requires_grad_()
            right = points[b].flatten(0, 1).requires_grad_()
            values = covariance(kernel, left, right)
        block = weights[a, b] * (1 if a == b else 2)  # and what lies below the diagonal
        grown = block.repeat_interleave(num_samples, 0).repeat_interleave(num_samples, 1)
        inputs = [left, right, *raw]
        found = torch.autograd.grad(values, inputs, grown, materialize_grads=True)
        slopes[a] += found[0].view_as(slopes[a])
        slopes[b] += found[1].view_as(slopes[b])
        for total, gradient in zip(totals, found[2:], strict=True):
            total.add_(gradient)
    return slopes, totals


def scaled_kernel(kernel: Kernel, factor: float) -> Kernel:
    """A copy of the kernel times a positive factor."""
    other = with_variance(copy.deepcopy(kernel))
    if isinstance(other, ScaleKernel):
        other.outputscale = other.outputscale.detach() * factor
    else:
        other.variance = other.variance.detach() * factor
    return other


def with_variance(kernel: Kernel) -> "ScaleKernel | RBF":
    """The kernel itself, or 1 × the kernel where it has no variance of its own."""
    if type(kernel) is RBF or isinstance(kernel, ScaleKernel):
        return kernel
    outer = ScaleKernel(kernel).to(next(kernel.parameters(), torch.zeros(())))
    outer.outputscale = 1.0
    return outer


def with_lengthscale(kernel: Kernel) -> list[Kernel]:
    """The kernel and its parts, those with a lengthscale that is learned."""
    parts = [part for part in kernel.modules() if isinstance(part, Kernel) and part.has_lengthscale]
    return [part for part in parts if torch.as_tensor(part.raw_lengthscale).requires_grad]


def positive_parameters(kernel: Kernel) -> list[tuple[str, Tensor, Callable[[], Tensor]]]:
    """Learned numbers of a kernel with a constraint: name, raw tensor, and positive value."""
    found = []
    for name, raw, constraint in kernel.named_parameters_and_constraints():
        if constraint is not None and raw.requires_grad:
            found.append((name, raw, functools.partial(constraint.transform, raw)))
    return found


def is_isotropic(kernel: Kernel) -> bool:
    """Whether it is known to depend on |x − z|₂ alone, so that features may be rotated."""
    if type(kernel) is ScaleKernel and kernel.active_dims is None:
        return is_isotropic(kernel.base_kernel)
    known = isinstance(kernel, RBFKernel | RQKernel | MaternKernel) or type(kernel) is RBF
    return known and kernel.ard_num_dims is None and kernel.active_dims is None


@torch.no_grad()
def average_variances(kernel: Kernel, points: Float[Tensor, "N S D"]) -> Float[Tensor, "N"]:
    """mean_st k_g(x_ns, x_nt), in float64: the variance of each average of g."""
    rows = slices(len(points), max(1, BLOCK // points.shape[1]))
    among = [covariance_among(kernel, points[chosen], points.dtype) for chosen in rows]
    return torch.cat([part.double().mean((1, 2)) for part in among])


def _is_plain(kernel: Kernel) -> TypeGuard["RBF"]:
    """Whether all covariances are v exp(−½ |x − z|²/ℓ²) of the points as they are."""
    return type(kernel) is RBF and kernel.active_dims is None and not kernel.batch_shape


class _Dense(nn.Module):
    """A kernel evaluated at once: GPyTorch's own evaluation waits until its parameters are back."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """k(left, right)."""
        return torch.as_tensor(self.kernel(left, right).to_dense())


def variance(kernel: Kernel, points: Float[Tensor, "N D"]) -> Float[Tensor, "N"]:
    """k(x, x) for each point."""
    return torch.as_tensor(kernel(points, points, diag=True))


class RBF(Kernel):
    """The squared-exponential kernel, k(x, x') = v exp(−½ |x − x'|² / ℓ²), for GPyTorch.

    The same function as `ScaleKernel(RBFKernel())`, in fewer passes over memory.

    Parameters
    ----------
    variance : float, default=1.0
        v.
    lengthscale : float, default=1.0
        ℓ: one number or, with `ard_num_dims`, one for each feature.
    **kwargs : object
        Passed to `gpytorch.kernels.Kernel`, such as `ard_num_dims`.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import RBF
    >>> x = torch.tensor([[0.0], [1.0]])
    >>> RBF(variance=2.0)(x).to_dense().detach()
    tensor([[2.0000, 1.2131],
            [1.2131, 2.0000]])
    """

    has_lengthscale = True
    raw_variance: nn.Parameter
    raw_variance_constraint: Positive

    def __init__(self, variance: float = 1.0, lengthscale: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not (0 < variance < math.inf and 0 < lengthscale < math.inf):
            raise InputError(
                "the variance and lengthscale of a kernel must be positive and finite; "
                f"got {variance:g} and {lengthscale:g}"
            )
        self.register_parameter("raw_variance", nn.Parameter(torch.zeros(*self.batch_shape, 1, 1)))
        self.register_constraint("raw_variance", Positive())
        self.variance = variance
        self.initialize(lengthscale=lengthscale)

    @property
    def variance(self) -> Tensor:
        """v, of shape [*batch, 1, 1]."""
        return self.raw_variance_constraint.transform(self.raw_variance)

    @variance.setter
    def variance(self, value: float | Tensor) -> None:
        value = torch.as_tensor(value, dtype=self.raw_variance.dtype).expand_as(self.raw_variance)
        self.initialize(raw_variance=self.raw_variance_constraint.inverse_transform(value))

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride] - as in GPyTorch's own kernels
        self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any
    ) -> Tensor:
        """Covariances [..., N, M], or [..., N] of matching rows if `diag`."""
        del params
        if diag:
            squared = ((x1 - x2) / self.lengthscale).square().sum(-1)
            return self.variance[..., 0] * torch.exp(-0.5 * squared)
        inverse, log_v = self._constants(x1.dtype)
        # torch's own function of this name imports sympy, which takes half a second
        batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2], inverse.shape[:-2])
        left, right = x1.expand(*batch, -1, -1), x2.expand(*batch, -1, -1)
        return scaled_gaussian(left, right, inverse, log_v)

    def among(self, x: Float[Tensor, "*B N D"], dtype: torch.dtype) -> Float[Tensor, "*A N N"]:
        """Covariances of points among themselves: half the products of `forward(x, x)`."""
        inverse, log_v = self._constants(dtype)
        batch = np.broadcast_shapes(x.shape[:-2], inverse.shape[:-2])
        return gaussian_among(x.expand(*batch, -1, -1), inverse, log_v)

    def constants(self, points: Tensor) -> tuple[Tensor, float]:
        """1/ℓ, one or one for each feature, in the dtype of the points; and v."""
        return (1 / self.lengthscale).to(points.dtype).reshape(-1), self.variance.item()

    def _constants(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """1/ℓ and log v."""
        return (1 / self.lengthscale).to(dtype), self.variance.log().to(dtype)


@runtime_checkable
class Enumerable(Protocol):
    """A finite orbit, as far as the exact kernel is concerned."""

    def enumerate(self, x: Tensor) -> OrbitSample:
        """Every point of the orbit of every input."""
        ...


class InvariantKernel(Kernel):
    """The exact invariant kernel: the mean of a base kernel over both finite orbits.

    k_f(x, x') = 1/P² Σ_ab k_g(x_a, x'_b), for GPyTorch and BoTorch, on flat inputs [..., N, D].
    With P points to an orbit it costs P² base covariances for each entry.

    Parameters
    ----------
    base_kernel : gpytorch.kernels.Kernel
        k_g.
    orbit : FiniteOrbit
        Such as `PermutationGroup` or `QuarterTurns`.
    event_shape : tuple of int, optional
        The shape that the orbit acts on, if it is not (D,).

    Raises
    ------
    InputError
        If the orbit is not finite.

    References
    ----------
    van der Wilk et al. (2018), equation 7, with means for sums.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import RBF, InvariantKernel, coordinate_swap
    >>> kernel = InvariantKernel(RBF(), coordinate_swap(0, 1, 2))
    >>> x = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> kernel(x).to_dense().detach()
    tensor([[0.6839, 0.6839],
            [0.6839, 0.6839]])
    """

    def __init__(
        self,
        base_kernel: Kernel,
        orbit: nn.Module,
        *,
        event_shape: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(orbit, Enumerable):
            raise InputError(
                f"InvariantKernel needs a finite orbit, and {type(orbit).__name__} cannot be "
                "enumerated: use InvariantGP, which works from samples"
            )
        self.base_kernel = base_kernel
        self.orbit = orbit
        self.event_shape = event_shape

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride] - as in GPyTorch's own kernels
        self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any
    ) -> Tensor:
        """Covariances [..., N, M], or [..., N] of matching rows if `diag`."""
        left, right = self._enumerate(x1), self._enumerate(x2)
        num_left, num_right = left.shape[-2], right.shape[-2]
        if not diag:
            pairs = self.base_kernel(left.flatten(-3, -2), right.flatten(-3, -2), **params)
            blocks = pairs.to_dense().unflatten(-1, (-1, num_right)).unflatten(-3, (-1, num_left))
            return blocks.mean((-3, -1))
        # row by row: k_g(x_a, x'_{a+s}) for each shift s, N·P covariances at a time, never N²
        total = torch.zeros((), dtype=left.dtype, device=left.device)
        for shift in range(num_right):
            partner = right.roll(shift, -2)
            pairs = self.base_kernel(
                left.flatten(-3, -2), partner.flatten(-3, -2), diag=True, **params
            )
            total = total + torch.as_tensor(pairs).unflatten(-1, (-1, num_left)).mean(-1)
        return total / num_right

    def _enumerate(self, x: Tensor) -> Tensor:
        """[..., N, D] → [..., N, P, D]."""
        event = self.event_shape or (x.shape[-1],)
        points = self.orbit.enumerate(x.reshape(-1, *event)).points
        return points.flatten(2).reshape(*x.shape[:-1], points.shape[1], x.shape[-1])
