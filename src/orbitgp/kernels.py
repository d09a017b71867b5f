"""The border with GPyTorch: evaluating its kernels, our fast RBF, and the exact invariant kernel.

Everything else in the library sees dense tensors only.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeGuard, runtime_checkable

import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel as Kernel
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from orbitgp.errors import InputError, refuse_second_derivatives
from orbitgp.processor import multiplies_bfloat16
from orbitgp.values import OrbitSample

TILE = (512, 1024)
"""Rows and columns of covariances that `coarse_sums` computes at a time."""


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


class _ScaledGaussian(torch.autograd.Function):
    """exp(log v − ½ |w ∘ (x − z)|²) for all pairs of rows: one product forward, two backward.

    Written out because temporaries as large as the result, each a fresh allocation, cost as much
    as the products themselves.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, z: Tensor, w: Tensor, log_v: Tensor) -> Tensor:
        # distances do not change under a shift, rounding does: keep the numbers near 0
        centre = z.mean(-2, keepdim=True)
        left, right = (x - centre).mul_(w), (z - centre).mul_(w)
        values = torch.matmul(left, right.mT)
        _gaussian_(values, _half_norms(left, 1.0), _half_norms(right, 1.0), log_v)
        ctx.save_for_backward(left, right, w, log_v, values)
        return values

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:  # pyright: ignore
        # T = ∂F/∂K ∘ K:   ∂F/∂(wx) = T wz − (T 1) ∘ wx,   ∂F/∂(wz) = Tᵀ wx − (Tᵀ 1) ∘ wz,
        # ∂F/∂w = (Σ wx ∘ ∂F/∂(wx) + Σ wz ∘ ∂F/∂(wz)) / w,   ∂F/∂log v = Σ T
        refuse_second_derivatives()
        left, right, w, log_v, values = ctx.saved_tensors
        t = grad * values
        grad_x = torch.matmul(t, right).addcmul_(t.sum(-1, keepdim=True), left, value=-1)
        grad_z = torch.matmul(t.mT, left).addcmul_(t.sum(-2, keepdim=True).mT, right, value=-1)
        grad_w = (_inner(grad_x, left, w) + _inner(grad_z, right, w)) / w
        return grad_x.mul_(w), grad_z.mul_(w), grad_w, t.sum_to_size(log_v.shape)


class _GaussianAmong(torch.autograd.Function):
    """`_ScaledGaussian` of rows among themselves: one product forward, one backward.

    The product of the gradient is one in the dtype of x, whatever that of the values is.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, log_v: Tensor) -> Tensor:
        wide = x.to(w.dtype)
        left = (wide - wide.mean(-2, keepdim=True)).mul_(w)
        values = torch.matmul(left, left.mT)
        norms = _half_norms(left, 1.0)
        _gaussian_(values, norms, norms, log_v)
        ctx.save_for_backward(left.to(x.dtype), w, log_v, values)
        return values

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:  # pyright: ignore
        # T = ∂F/∂K ∘ K, R = T + Tᵀ:   ∂F/∂(wx) = R wx − (R 1) ∘ wx
        refuse_second_derivatives()
        left, w, log_v, values = ctx.saved_tensors
        t = grad * values
        both = (t + t.mT).to(left.dtype)
        grad_x = torch.matmul(both, left).addcmul_(both.sum(-1, keepdim=True), left, value=-1)
        narrow = w.to(left.dtype)
        grad_w = (_inner(grad_x, left, w) / narrow).to(w.dtype)
        return grad_x.mul_(narrow), grad_w, t.sum_to_size(log_v.shape)


def _gaussian_(products: Tensor, left: Tensor, right: Tensor, log_v: Tensor) -> None:
    """exp(log v + x·z − ½|x|² − ½|z|²) of products and half norms, in their place."""
    products.sub_(left.unsqueeze(-1)).sub_(right.unsqueeze(-2))
    products.clamp_(max=0).add_(log_v).exp_()  # rounding must not give a covariance above v


def _inner(a: Tensor, b: Tensor, like: Tensor) -> Tensor:
    """Σ a ∘ b over all that `like` does not keep apart; no temporary if that is everything."""
    if like.numel() == 1:
        return torch.dot(a.flatten(), b.flatten()).reshape(like.shape)
    return (a * b).sum_to_size(like.shape)


class _Rounded(torch.autograd.Function):
    """The nearest bfloat16, of the same dtype; its gradient passes through unchanged."""

    @staticmethod
    def forward(_: Any, x: Tensor) -> Tensor:
        return x.bfloat16().to(x.dtype)

    @staticmethod
    def backward(_: Any, grad: Tensor) -> Tensor:  # pyright: ignore
        return grad


def rounded(x: Tensor) -> Tensor:
    """Points with 8 significant bits to each coordinate."""
    return _Rounded.apply(x)  # pyright: ignore[reportReturnType]


@contextmanager
def _coarse_products(device: torch.device) -> Iterator[None]:
    """Products of float32 matrices in bfloat16 with float32 sums: exact on rounded points."""
    if device.type == "cpu" and not multiplies_bfloat16():
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def coarse_sums(
    kernel: "RBF",
    x: Float[Tensor, "N S D"],
    z: Float[Tensor, "M J D"],
    group_size: int,
) -> Float[Tensor, "N B M"]:
    """Σ_{s in group} mean_j k(x_ns, z_mj) for rounded points, without gradients.

    x·z of rounded points is exact but for the rounding of its float32 sum. On processors with
    units for such products they are two to three times faster; what follows them is done tile by
    tile, in buffers that stay near the processor.
    """
    (num_inputs, num_samples, _), (num_points, num_averaged, _) = x.shape, z.shape
    scale = 1 / kernel.lengthscale.square().item()
    shift = kernel.variance.log().item() - math.log(num_averaged)
    x, z = rounded(x), rounded(z).transpose(0, 1).contiguous()
    x_norms, z_norms = _half_norms(x, scale), _half_norms(z, scale).sub_(shift)
    block, width = max(1, TILE[0] // num_samples), min(TILE[1], num_points)
    together = max(1, TILE[1] // num_points)  # points of all few variables at a time
    buffer = x.new_empty(block * num_samples, together * width)
    sums = x.new_empty(num_inputs, num_samples // group_size, num_points)
    for columns in slices(num_points, width):
        rights = [
            (z[places, columns].flatten(0, 1), z_norms[places, columns].flatten().neg())
            for places in slices(num_averaged, together)
        ]
        for rows in slices(num_inputs, block):
            left, left_norms = x[rows].flatten(0, 1), x_norms[rows].flatten().unsqueeze(1)
            total = x.new_zeros(len(left), columns.stop - columns.start)
            for right, right_norms in rights:
                values = buffer[: len(left), : len(right)]
                with _coarse_products(left.device):
                    torch.addmm(right_norms, left, right.mT, alpha=scale, out=values)
                values.sub_(left_norms).clamp_(max=shift).exp_()
                if len(right) == total.shape[1]:
                    total.add_(values)
                else:
                    total.add_(values.unflatten(1, (-1, total.shape[1])).sum(1))
            grouped = total.unflatten(0, (-1, num_samples // group_size, group_size))
            sums[rows, :, columns] = grouped.sum(2)
    return sums


def slices(length: int, size: int) -> list[slice]:
    """All of a length, a size at a time."""
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


def has_coarse_sums(kernel: Kernel, x: Tensor) -> TypeGuard["RBF"]:
    """Whether `coarse_sums` are what the kernel gives here."""
    if type(kernel) is not RBF or not kernel.coarse or kernel.active_dims is not None:
        return False
    plain = kernel.lengthscale.numel() == 1 and x.dtype == torch.float32
    return plain and not torch.is_grad_enabled()


def _half_norms(points: Float[Tensor, "*N D"], scale: float) -> Float[Tensor, "*N"]:
    """½ |x|² / ℓ²."""
    return torch.linalg.vector_norm(points, dim=-1).square_().mul_(0.5 * scale)


class RBF(Kernel):
    """k(x, x') = v exp(−½ |x − x'|² / ℓ²), a GPyTorch kernel with its variance inside.

    The same function as `ScaleKernel(RBFKernel())` in fewer passes over memory. ℓ is one number
    or, with `ard_num_dims`, one for each feature. A `coarse` one is evaluated at points that are
    rounded to 8 significant bits, which is a kernel like any other and faster to compute.
    """

    has_lengthscale = True
    raw_variance: nn.Parameter
    raw_variance_constraint: Positive

    def __init__(
        self,
        variance: float = 1.0,
        lengthscale: float = 1.0,
        *,
        coarse: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.coarse = coarse
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
        if self.coarse:
            x1, x2 = rounded(x1), rounded(x2)
        if diag:
            squared = ((x1 - x2) / self.lengthscale).square().sum(-1)
            return self.variance[..., 0] * torch.exp(-0.5 * squared)
        inverse, log_v = self._constants(x1.dtype)
        batch = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2], inverse.shape[:-2])
        left, right = x1.expand(*batch, -1, -1), x2.expand(*batch, -1, -1)
        return _ScaledGaussian.apply(left, right, inverse, log_v)  # pyright: ignore[reportReturnType]

    def among(self, x: Float[Tensor, "*B N D"], dtype: torch.dtype) -> Float[Tensor, "*A N N"]:
        """Covariances of points among themselves: half the products of `forward(x, x)`."""
        inverse, log_v = self._constants(dtype)
        batch = torch.broadcast_shapes(x.shape[:-2], inverse.shape[:-2])
        points = (rounded(x) if self.coarse else x).expand(*batch, -1, -1)
        return _GaussianAmong.apply(points, inverse, log_v)  # pyright: ignore[reportReturnType]

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
    """k_f(x, x') = mean over both finite orbits of k_g(x_a, x'_a), exactly (vdW 2018, eq. 5).

    A GPyTorch kernel on flat inputs [..., N, D]; `event_shape` is the shape that the orbit acts on,
    if it is not [D]. With P points to an orbit it costs P² base covariances for each entry.
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
