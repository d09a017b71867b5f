"""Data whose invariance is known, drawn from the model itself."""

import torch

from orbitgp import RBF, FunctionOrbit
from orbitgp.kernels import average_covariances_among


def turned(x, angle):
    """Points [B, 2] turned by angles [B, 1], in radians."""
    cos, sin = torch.cos(angle), torch.sin(angle)
    first, second = x.split(1, 1)
    return torch.cat([cos * first - sin * second, sin * first + cos * second], 1)


def rotation(half=0.2):
    return FunctionOrbit(turned, -half, half, names=["angle"])


def rotated_points(num_data, half, *, seed, noise=0.1, num_angles=64):
    """Points of the plane and a function that averages over turns within ± half."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    x = normal(num_data, 2)
    angles = half * ((torch.arange(num_angles, dtype=x.dtype) + 0.5) / num_angles * 2 - 1)
    points = torch.stack([turned(x, angle.expand(num_data, 1)) for angle in angles], 1)
    covariance = average_covariances_among(RBF(1.0, 0.5).double(), points)
    covariance /= covariance.diagonal().mean()
    covariance.diagonal().add_(1e-9)
    y = torch.linalg.cholesky(covariance) @ normal(num_data, 1) + noise * normal(num_data, 1)
    return x.numpy(), y[:, 0].numpy()
