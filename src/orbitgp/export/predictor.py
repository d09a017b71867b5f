"""Everything between an input and what is predicted of it, as one module that a graph can hold."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orbitgp.exact_model import ExactInvariantGP
from orbitgp.export.covariances import AverageCovariances
from orbitgp.likelihoods.gaussian import Gaussian, OneHotGaussian
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP
from orbitgp.orbit_model import OrbitModel
from orbitgp.orbits.base import FiniteOrbit, Orbit
from orbitgp.posterior.inducing import averaged
from orbitgp.values import Prediction


@dataclass(frozen=True)
class PosteriorSums:
    """The posterior of f as sums over fixed averages of g.

    μ(x) = k(x, b) a and σ²(x) = k_f(x, x) − |k(x, c) A|² + |k(x, c) B_o|², the last for each
    output o, where k(x, b) are covariances of f(x) with averages over the points b.

    Parameters
    ----------
    mean_points : Tensor of shape (K, J, D)
        b.
    weights : Tensor of shape (K, C)
        a.
    variance_points : Tensor of shape (M, J, D)
        c; the same object as `mean_points` where c are b, or the first M of them.
    explained : Tensor of shape (M, R)
        A.
    retained : Tensor of shape (O, M, R), optional
        B.
    """

    mean_points: Float[Tensor, "K J D"]
    weights: Float[Tensor, "K C"]
    variance_points: Float[Tensor, "M J D"]
    explained: Float[Tensor, "M R"]
    retained: Float[Tensor, "O M R"] | None = None


@torch.no_grad()
def sums_of(model: ExactInvariantGP | InvariantGP) -> PosteriorSums:
    """Return the sums of a fitted model without approximation, on the CPU."""
    model = copy.deepcopy(model).cpu()
    if isinstance(model, ExactInvariantGP):
        own = model.posterior
        explained = _inverse(own.factor.double()).mT.to(own.points)
        return PosteriorSums(own.points, own.weights, own.points, explained)
    q, factor = model.posterior.q, model.posterior.prior_factor(model.kernel)
    inverse, points = _inverse(factor), averaged(model.posterior.points.detach())
    basis, retained = model.mean_basis, torch.stack([inverse.mT @ u for u in q.scale])
    if basis is None:
        return PosteriorSums(points, inverse.mT @ q.mean, points, inverse.mT, retained)
    return PosteriorSums(basis.points, basis.weights, points, inverse.mT, retained)


def _inverse(factor: Float[Tensor, "N N"]) -> Float[Tensor, "N N"]:
    """L⁻¹."""
    identity = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)
    return torch.linalg.solve_triangular(factor, identity, upper=False)


class Predictor(nn.Module):
    """Class probabilities of inputs as they were measured, or mean and variance of the target.

    The draws of the orbit are those of the fit, and never change.

    Parameters
    ----------
    estimator : InvariantGPClassifier or InvariantGPRegressor
        A fitted estimator.
    sums : PosteriorSums, optional
        Replaces the sums of the fitted model, for a smaller predictor.
    """

    scale: Float[Tensor, ""]
    weights: Float[Tensor, "K C"]
    explained: Float[Tensor, "M R"]
    retained: Float[Tensor, "O M R"] | None
    shift: Float[Tensor, "C"]
    stretch: Float[Tensor, "C"]
    noise: Float[Tensor, "R"]

    def __init__(self, estimator: Any, sums: PosteriorSums | None = None) -> None:
        super().__init__()
        model = copy.deepcopy(OrbitModel(**estimator.model_.parts())).cpu().requires_grad_(False)
        found = sums_of(estimator.model_) if sums is None else sums
        self.num_values = tuple(estimator.input_shape_.tolist())
        self.event_shape = tuple(estimator.image_shape or self.num_values)
        images = len(self.event_shape) > 1
        self.dtype = torch.float32 if images else torch.float64
        self.register_buffer("scale", torch.tensor(float(estimator.scale_), dtype=torch.float64))
        self.features = nn.Sequential(model.feature_map, model.projection or nn.Identity())
        self.likelihood = model.likelihood
        like = torch.zeros(1, *self.event_shape, dtype=self.dtype)
        self.points = shared_draws(model.orbit, estimator.prediction_noise_, like)
        self.mean_covariances = AverageCovariances(model.kernel, found.mean_points)
        same = found.variance_points is found.mean_points
        self.variance_covariances = (
            None if same else AverageCovariances(model.kernel, found.variance_points)
        )
        self.register_buffer("weights", found.weights.double())
        self.register_buffer("explained", found.explained)
        self.register_buffer("retained", found.retained)
        if isinstance(model.likelihood, Gaussian) and not hasattr(estimator, "classes_"):
            self.register_buffer("noise", model.likelihood.noise)
            shift, scale = estimator.target_mean_, estimator.target_scale_
            self.register_buffer("shift", torch.as_tensor(shift))
            self.register_buffer("stretch", torch.as_tensor(scale))
            self.flat = bool(estimator.flat_target_)

    def forward(self, x: Tensor) -> Any:
        """Probabilities [N, classes], or mean and variance [N] or [N, outputs], in float32."""
        inputs = (x.double() / self.scale).to(self.dtype).reshape(-1, *self.event_shape)
        return self.from_points(self.behind_features(inputs))

    def from_points(self, points: Float[Tensor, "N S D"]) -> Any:
        """The same from orbit points behind the feature map."""
        prediction = self.posterior(points)
        if isinstance(self.likelihood, OneHotGaussian | LocalLikelihood):
            return self.likelihood.class_probabilities(prediction).float()
        mean = prediction.mean * self.stretch + self.shift
        variance = (prediction.variance + self.noise) * self.stretch.square()
        if self.flat:
            mean, variance = mean[:, 0], variance[:, 0]
        return mean.float(), variance.float()

    def behind_features(self, inputs: Float[Tensor, "N *event"]) -> Float[Tensor, "N S D"]:
        """φ(x_a) for the draws of the fit."""
        points = self.points(inputs)
        return self.features(points.flatten(0, 1)).unflatten(0, (-1, points.shape[1]))

    def posterior(self, points: Float[Tensor, "N S D"]) -> Prediction:
        """The posterior of f from orbit points."""
        covariances = self.mean_covariances(points)
        mean = covariances @ self.weights
        if self.variance_covariances is not None:
            covariances = self.variance_covariances(points)
        covariances = covariances[:, : len(self.explained)]
        variances = self.mean_covariances.variances(points)
        explained = covariances.to(self.explained) @ self.explained
        left = variances - explained.double().square().sum(1, keepdim=True)
        if self.retained is not None:
            kept = covariances.to(self.retained) @ self.retained
            left = left + kept.double().square().sum(2).mT
        return Prediction.exact(mean, left.clamp(min=0).expand_as(mean))


def shared_draws(
    orbit: Orbit, noise: Float[Tensor, "1 S K"] | None, like: Float[Tensor, "N *event"]
) -> Callable[[Tensor], Tensor]:
    """The draws of a fit as a function of inputs."""
    if noise is not None:
        return orbit.alike(noise, like)
    assert isinstance(orbit, FiniteOrbit)
    index = torch.arange(int(orbit.size)).unsqueeze(0)
    return lambda x: orbit.act(x, index.expand(x.shape[0], -1))
