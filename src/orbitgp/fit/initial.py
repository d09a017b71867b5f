"""The model that a fit starts from."""

import copy
import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orbitgp.errors import InputError
from orbitgp.features import Projection
from orbitgp.fit.named_kernels import ARD, named_kernel
from orbitgp.kernels import RBF, Kernel, is_isotropic, with_lengthscale, with_variance
from orbitgp.likelihoods.base import Likelihood
from orbitgp.likelihoods.gaussian import OneHotGaussian
from orbitgp.orbit_model import OrbitModel
from orbitgp.orbits.base import Orbit

NUM_PROJECTED = 2000
"""Inputs from which the principal axes of the features are computed."""

LEFT_OUT = 0.01
"""The part of their variance that may be left out."""

MAX_AXES = 128
"""Features that a projection leaves of many."""


@torch.no_grad()
def initial_model(
    orbit: Orbit,
    likelihood: Likelihood,
    x: Tensor,
    feature_map: nn.Module,
    kernel: str | Kernel | None = None,
    *,
    generator: torch.Generator,
) -> OrbitModel:
    """A model whose lengthscale is a typical distance, maybe on the principal axes of its features.

    It is on the device of the inputs, and learns in copies of likelihood, feature map and kernel,
    which is an RBF if none is given, or one by its name.
    """
    order = torch.randperm(len(x), generator=generator)[:NUM_PROJECTED].to(x.device)
    feature_map = copy.deepcopy(feature_map).to(x.device)
    features = torch.cat([feature_map(part) for part in x[order].split(256)])
    projection = None
    if features.dtype == torch.float32 and features.shape[1] > max_axes(likelihood, kernel):
        projection = Projection.principal(features, left_out=LEFT_OUT, most=MAX_AXES)
    points = features if projection is None else projection(features)
    model = OrbitModel(
        orbit=orbit,
        kernel=_started(kernel, points),
        likelihood=copy.deepcopy(likelihood),
        feature_map=feature_map,
        projection=projection,
    )
    return model.to(x.device)


def max_axes(likelihood: Likelihood, kernel: str | Kernel | None) -> float:
    """Axes that features may be projected on, if there are more of them.

    Without limit for numbers, which may depend on what would be left out, where labels of classes
    have noise enough; and for kernels that know features by their axes, as those with a lengthscale
    for each do, and a sum of absolute differences, and any that is not known here.
    """
    if isinstance(kernel, str):
        isotropic = not kernel.endswith(ARD)
    else:
        isotropic = kernel is None or is_isotropic(kernel)
    return MAX_AXES if isotropic and isinstance(likelihood, OneHotGaussian) else math.inf


def _started(kernel: str | Kernel | None, points: Float[Tensor, "M D"]) -> Kernel:
    """A copy whose learned lengthscales are a typical distance between points."""
    distance = typical_distance(points)
    if kernel is None:
        return RBF(1.0, distance).to(points)
    if isinstance(kernel, str):
        kernel = named_kernel(kernel, points.shape[1])
    started = with_variance(copy.deepcopy(kernel)).to(points)
    for part in with_lengthscale(started):
        count, size = part.ard_num_dims or 1, points.shape[1]
        if count not in (1, size):
            raise InputError(
                f"the kernel has {count} lengthscales, but inputs have {size} features; pass "
                f"ard_num_dims={size}, or leave it away for one lengthscale"
            )
        part.lengthscale = points.new_tensor(distance)
    return started


def typical_distance(points: Float[Tensor, "M D"]) -> float:
    """The median distance between points, or 1 where they all coincide."""
    distances = torch.pdist(points[:500].double())
    positive = distances[distances > 0]
    return positive.median().item() if len(positive) else 1.0
