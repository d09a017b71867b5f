"""The model that a fit starts from."""

import copy

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orbitgp.features import Projection
from orbitgp.fit.plan import MAX_AXES
from orbitgp.kernels import RBF
from orbitgp.likelihoods.base import Likelihood
from orbitgp.orbit_model import OrbitModel
from orbitgp.orbits.base import Orbit

NUM_PROJECTED = 4000
"""Inputs that tell along which axes features vary."""

LEFT_OUT = 0.01
"""The part of their variance that may be left out."""


@torch.no_grad()
def initial_model(
    orbit: Orbit,
    likelihood: Likelihood,
    x: Tensor,
    feature_map: nn.Module,
    *,
    generator: torch.Generator,
) -> OrbitModel:
    """A model whose lengthscale is a typical distance, on the principal axes of its features.

    It learns in copies of likelihood and feature map.
    """
    order = torch.randperm(len(x), generator=generator)[:NUM_PROJECTED].to(x.device)
    feature_map = copy.deepcopy(feature_map)
    features = torch.cat([feature_map(part) for part in x[order].split(256)])
    projection = None
    if features.dtype == torch.float32 and features.shape[1] > MAX_AXES:
        projection = Projection.principal(features, left_out=LEFT_OUT, most=MAX_AXES)
    points = features if projection is None else projection(features)
    return OrbitModel(
        orbit=orbit,
        kernel=RBF(1.0, typical_distance(points)).to(points),
        likelihood=copy.deepcopy(likelihood),
        feature_map=feature_map,
        projection=projection,
    )


def typical_distance(points: Float[Tensor, "M D"]) -> float:
    """The median distance between points, or 1 where they all coincide."""
    distances = torch.pdist(points[:500].double())
    positive = distances[distances > 0]
    return positive.median().item() if len(positive) else 1.0
