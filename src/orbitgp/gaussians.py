"""Gaussians of the distance of all pairs of points, with gradients of their own or tile by tile."""

import itertools
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import refuse_second_derivatives

ROWS, COLUMNS = 1024, 256
"""Points of the left side and averages of the right side that are computed at a time."""


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
        _gaussian_(values, _half_norms(left), _half_norms(right), log_v)
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
        norms = _half_norms(left)
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


def scaled_gaussian(
    x: Float[Tensor, "*B N D"], z: Float[Tensor, "*B M D"], w: Tensor, log_v: Tensor
) -> Float[Tensor, "*B N M"]:
    """exp(log v − ½ |w ∘ (x − z)|²) for all pairs of rows."""
    return _ScaledGaussian.apply(x, z, w, log_v)  # pyright: ignore[reportReturnType]


def gaussian_among(x: Float[Tensor, "*B N D"], w: Tensor, log_v: Tensor) -> Float[Tensor, "*B N N"]:
    """The same of rows among themselves, in the dtype of w."""
    return _GaussianAmong.apply(x, w, log_v)  # pyright: ignore[reportReturnType]


def _gaussian_(products: Tensor, left: Tensor, right: Tensor, log_v: Tensor) -> None:
    """exp(log v + x·z − ½|x|² − ½|z|²) of products and half norms, in their place."""
    products.sub_(left.unsqueeze(-1)).sub_(right.unsqueeze(-2))
    products.clamp_(max=0).add_(log_v).exp_()  # rounding must not give a covariance above v


def _inner(a: Tensor, b: Tensor, like: Tensor) -> Tensor:
    """Σ a ∘ b over all that `like` does not keep apart; no temporary if that is everything."""
    if like.numel() == 1:
        return torch.dot(a.flatten(), b.flatten()).reshape(like.shape)
    return (a * b).sum_to_size(like.shape)


def slices(length: int, size: int) -> list[slice]:
    """All of a length, a size at a time."""
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


def _half_norms(points: Float[Tensor, "*N D"]) -> Float[Tensor, "*N"]:
    """Return ½ |x|²."""
    return torch.linalg.vector_norm(points, dim=-1).square_().mul_(0.5)


def average_gaussians_with(
    z: Float[Tensor, "M J D"], w: Tensor
) -> Callable[[Float[Tensor, "N S D"]], Float[Tensor, "N M"]]:
    """mean_sj exp(−½ |w ∘ (x_ns − z_mj)|²) in float64 as a function of x, without gradients.

    What depends on z alone is computed once. With rows (wx, −½|wx|², 1) and (wz, 1, −½|wz|²) one
    product gives all exponents.
    """
    # distances do not change under a shift, rounding does: keep the numbers near 0
    centre = z.mean((0, 1))
    right = _right(*_scaled(z, centre, w))

    def with_z(x: Float[Tensor, "N S D"]) -> Float[Tensor, "N M"]:
        left = _left(*_scaled(x, centre, w))
        result = x.new_empty(len(x), right.shape[1], dtype=torch.float64)
        for rows in slices(len(x), max(1, ROWS // x.shape[1])):
            result[rows] = _average_rows(left[:, rows], right)
        return result

    return with_z


def average_gaussians_among(x: Float[Tensor, "N S D"], w: Tensor) -> Float[Tensor, "N N"]:
    """The same of averages among themselves: half of the products."""
    scaled = _scaled(x, x.mean((0, 1)), w)
    left, right = _left(*scaled), _right(*scaled)
    result = x.new_zeros(len(x), len(x), dtype=torch.float64)
    for rows in slices(len(x), max(1, ROWS // x.shape[1])):
        result[rows, : rows.stop] = _average_rows(left[:, rows], right[:, : rows.stop])
        lower = result[rows, rows].tril()
        result[rows, rows] = lower + lower.tril(-1).mT
        result[: rows.start, rows] = result[rows, : rows.start].mT
    return result


def _scaled(
    points: Float[Tensor, "N S D"], centre: Float[Tensor, "D"], w: Tensor
) -> tuple[Float[Tensor, "S N D"], Float[Tensor, "S N 1"]]:
    """w ∘ (x − centre) and half of its squared length."""
    scaled = ((points - centre) * w).transpose(0, 1)
    return scaled, _half_norms(scaled).unsqueeze(2)


def _left(scaled: Tensor, norms: Tensor) -> Float[Tensor, "S N D2"]:
    """(wx, −½|wx|², 1), whose product with what `_right` makes is the exponent."""
    return torch.cat([scaled, -norms, torch.ones_like(norms)], 2)


def _right(scaled: Tensor, norms: Tensor) -> Float[Tensor, "J M D2"]:
    """(wz, 1, −½|wz|²)."""
    return torch.cat([scaled, torch.ones_like(norms), -norms], 2)


def _average_rows(
    left: Float[Tensor, "S N D"], right: Float[Tensor, "J M D"]
) -> Float[Tensor, "N M"]:
    """mean_sj exp(left_sn · right_jm), some columns at a time, in buffers that are used again."""
    (num_samples, num_rows, _), (num_averaged, num_columns, _) = left.shape, right.shape
    flat, width = left.flatten(0, 1), min(COLUMNS, num_columns)
    values, totals = (left.new_empty(len(flat), width) for _ in range(2))
    result = left.new_empty(num_rows, num_columns, dtype=torch.float64)
    for columns in slices(num_columns, width):
        value, total = (part[:, : columns.stop - columns.start] for part in (values, totals))
        total.zero_()
        for points in right[:, columns]:
            torch.mm(flat, points.mT, out=value)
            total.add_(value.exp_())
        result[:, columns] = total.unflatten(0, (num_samples, num_rows)).sum(0)
    return result.div_(num_samples * num_averaged)


def average_gaussian_gradients(
    x: Float[Tensor, "N S D"], w: Tensor, upstream: Float[Tensor, "N N"]
) -> tuple[Float[Tensor, "N S D"], Tensor]:
    """Of Σ_nm G_nm K_nm with respect to x and to log w, for K of `average_gaussians_among`.

    For a symmetric G. With W = G_nm k(x_ns, x_mt) / S², ∂/∂(wx) = 2 (W wx − (W 1) ∘ wx), where
    a column of ones beside wx makes the sums, and ∂/∂log w = Σ wx ∘ ∂/∂(wx).
    """
    (num_inputs, num_samples, size), options = x.shape, {"dtype": x.dtype, "device": x.device}
    scaled = _scaled(x, x.mean((0, 1)), w)
    left, right = (side(*scaled).transpose(0, 1).contiguous() for side in (_left, _right))
    points = torch.cat([left[..., :size], torch.ones(num_inputs, num_samples, 1, **options)], 2)
    weights, pulls = (upstream / num_samples**2).to(x), torch.zeros_like(points)
    block = max(1, ROWS // num_samples)
    buffer = torch.empty(block * num_samples, block * num_samples, **options)
    blocks = slices(num_inputs, block)
    for a, b in itertools.combinations_with_replacement(blocks, 2):
        rows, columns = (num_samples * (part.stop - part.start) for part in (a, b))
        values = buffer.flatten()[: rows * columns].view(rows, columns)
        torch.mm(left[a].flatten(0, 1), right[b].flatten(0, 1).mT, out=values)
        shape = (rows // num_samples, num_samples, columns // num_samples, num_samples)
        values.exp_().view(shape).mul_(weights[a, None, b, None])
        pulls[a] += (values @ points[b].flatten(0, 1)).view_as(pulls[a])
        if a != b:  # what lies below the diagonal
            pulls[b] += (values.mT @ points[a].flatten(0, 1)).view_as(pulls[b])
    scaled = points[..., :size]
    slopes = torch.addcmul(pulls[..., :size], pulls[..., size:], scaled, value=-1).mul_(2)
    by_w = (scaled * slopes).sum((0, 1))
    return slopes * w, by_w.sum() if w.numel() == 1 else by_w
