"""Smooth random curves, made of a few cosines."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.orbits.base import UNIT


def normals(noise: Float[Tensor, "*B K"]) -> Float[Tensor, "*B K"]:
    """ε ~ N(0, 1) from uniform noise, by the quantile function."""
    # in float64, where the middle of the last step of noise is not yet 1
    return torch.special.ndtri(noise.double() + 0.5 / UNIT)


def cosine_curves(
    noise: Float[Tensor, "*B K"], length: int, roughness: float = 1.0
) -> Float[Tensor, "*B T"]:
    """f(t) = Σ_k c_k ε_k √2 cos(π k (t + ½)/T), k = 1 … K, c_k ∝ k^−roughness, Σ c_k² = 1.

    Of mean 0 over time, and with a variance of 1 on average over time.
    """
    count = noise.shape[-1]
    order = torch.arange(1, count + 1, dtype=torch.float64, device=noise.device)
    times = torch.arange(length, dtype=torch.float64, device=noise.device) + 0.5
    weights = order**-roughness
    weights = weights / weights.square().sum().sqrt()
    basis = math.sqrt(2) * torch.cos(order[:, None] * times * (math.pi / length))
    return (normals(noise) * weights) @ basis
