"""Series read at moved times, by linear interpolation, and what lies outside them."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.errors import InputError

Outside = Literal["zero", "edge", "cyclic"]
OUTSIDE = ("zero", "edge", "cyclic")


def check_outside(outside: str) -> None:
    """Refuse what is none of the three."""
    if outside not in OUTSIDE:
        raise InputError(f"outside must be one of {', '.join(OUTSIDE)}; got {outside!r:.40}")


def check_series(x: Float[Tensor, "N *event"], length: int) -> None:
    """Refuse inputs that are no series of this length."""
    if x.ndim not in (2, 3) or x.shape[-1] != length:
        raise InputError(
            f"this transformation is for series [N, {length}] or [N, channels, {length}]; got "
            f"{list(x.shape)}: make it with length={x.shape[-1]}"
        )


def resample(
    x: Float[Tensor, "N *event"], times: Float[Tensor, "N S T"], outside: Outside = "edge"
) -> Float[Tensor, "N S *event"]:
    """Series [N, T] or [N, C, T] at S sets of times, counted in samples from 0.

    Outside they are 0, falling to it within one sample, or go on as they end, or start again.
    """
    series = x.unsqueeze(1) if x.ndim == 2 else x
    length, before = x.shape[-1], times.floor()
    share = (times - before).to(x).unsqueeze(2)
    first = _read(series, before.long(), length, outside)
    second = _read(series, before.long() + 1, length, outside)
    return (first + share * (second - first)).reshape(*times.shape[:2], *x.shape[1:])


def _read(
    series: Float[Tensor, "N C T"], index: Int[Tensor, "N S T"], length: int, outside: Outside
) -> Float[Tensor, "N S C T"]:
    within = index.remainder(length) if outside == "cyclic" else index.clamp(0, length - 1)
    shape = (*index.shape[:2], series.shape[1], length)
    places = within.unsqueeze(2).expand(shape)
    found = series.unsqueeze(1).expand(shape).gather(-1, places)
    if outside != "zero":
        return found
    return torch.where((index == within).unsqueeze(2), found, torch.zeros_like(found))
