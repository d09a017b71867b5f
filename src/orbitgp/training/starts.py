"""Where a training starts: inducing points on the orbits of the data, and scales from the data."""

import copy
import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orbitgp.features import Projection
from orbitgp.kernels import RBF, Kernel
from orbitgp.likelihoods.base import Likelihood
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP
from orbitgp.orbits.base import Orbit
from orbitgp.posterior.inducing import InducingPosterior

JITTER = 1e-5
"""Relative; float32 covariances with u are exact to about 1e-6."""


@torch.no_grad()
def orbit_points(
    model: InvariantGP,
    x: Float[Tensor, "M *event"],
    *,
    num_averaged: int,
    generator: torch.Generator,
) -> Float[Tensor, "M J D"]:
    """J points behind the feature map on the orbit of each input; all of them if P ≤ J."""
    draws = {"generator": generator, "group_size": num_averaged}
    return model.sample_orbit(x, num_averaged, **draws).points


def initial_model(
    orbit: Orbit,
    likelihood: Likelihood,
    x: Tensor,
    *,
    num_outputs: int,
    num_points: int,
    feature_map: nn.Module,
    variance: float,
    generator: torch.Generator,
) -> InvariantGP:
    """A model whose lengthscale is a typical distance, with inducing points on orbit samples.

    It learns in copies of likelihood and feature map, so that one start leaves the next untouched.
    """
    likelihood, feature_map = copy.deepcopy(likelihood), copy.deepcopy(feature_map)
    order = torch.randperm(len(x), generator=generator)
    chosen = x[order.repeat(math.ceil(num_points / len(x)))[:num_points].to(x.device)]
    with torch.no_grad():
        points = orbit.sample(chosen, 1, generator=generator).map(feature_map).points[:, 0]
    return InvariantGP(
        orbit=orbit,
        kernel=RBF(variance, typical_distance(points)).to(points),
        posterior=InducingPosterior(
            points,
            num_outputs,
            shared_covariance=likelihood.num_precisions == 1,
            jitter=JITTER,
        ),
        likelihood=likelihood,
        feature_map=feature_map,
    )


def with_orbit(model: InvariantGP, orbit: Orbit) -> InvariantGP:
    """Another start: copies of all parts, inducing points among them, with another orbit.

    Points that a start drew from wide orbits of its own would explain less to the end of its
    training (decision 22).
    """
    other = copy.deepcopy(model)
    other.orbit = orbit
    return other


def with_points(
    model: InvariantGP,
    points: Float[Tensor, "M J D"] | None = None,
    *,
    kernel: Kernel | None = None,
    likelihood: Likelihood | None = None,
    projection: Projection | None = None,
) -> InvariantGP:
    """The same model with what is given, inducing points or others, and q(u) at the prior."""
    own = likelihood or model.likelihood
    if points is None:
        points = model.posterior.points.detach()
    elif points.shape[1] == 1:
        points = points[:, 0]
    num_outputs = model.posterior.mean.shape[1]
    if isinstance(own, LocalLikelihood):
        num_outputs = own.num_outputs
    return InvariantGP(
        orbit=model.orbit,
        kernel=kernel or model.kernel,
        posterior=InducingPosterior(
            points,
            num_outputs,
            shared_covariance=own.num_precisions == 1,
            jitter=model.posterior.jitter,
        ),
        likelihood=own,
        feature_map=model.feature_map,
        projection=projection or model.projection,
    )


def typical_distance(points: Float[Tensor, "M D"]) -> float:
    """The median distance between points, or 1 where they all coincide."""
    distances = torch.pdist(points[:500].double())
    positive = distances[distances > 0]
    return positive.median().item() if len(positive) else 1.0
