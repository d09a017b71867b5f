"""The model as a whole."""

import copy
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from orbitgp.blueprints.checks import GIVEN, Config, Tensors, refuse
from orbitgp.blueprints.orbits import orbit_config, orbit_from
from orbitgp.blueprints.parts import (
    feature_map_config,
    feature_map_from,
    kernel_config,
    kernel_from,
    likelihood_config,
    likelihood_from,
)
from orbitgp.errors import FileError
from orbitgp.exact_model import ExactInvariantGP
from orbitgp.features import OrientedEnergy, Projection
from orbitgp.model import InvariantGP
from orbitgp.orbits.base import Orbit
from orbitgp.patches import PatchFeatures
from orbitgp.posterior.exact import ExactPosterior
from orbitgp.posterior.inducing import InducingPosterior
from orbitgp.posterior.mean_basis import MeanBasis
from orbitgp.sealed import MALFORMED, check_like, within

Model = InvariantGP | ExactInvariantGP


def model_config(model: Model) -> Config:
    """The structure of a model; its numbers are `model.state_dict()`."""
    shared = {
        "orbit": orbit_config(model.orbit),
        "feature_map": feature_map_config(model.feature_map),
        "projected": model.projection is not None,
        "kernel": kernel_config(model.kernel),
        "likelihood": likelihood_config(model.likelihood),
    }
    if isinstance(model, ExactInvariantGP):
        return {**shared, "posterior": {"kind": "exact"}}
    posterior = {"kind": "inducing", "jitter": model.posterior.jitter}
    return {**shared, "posterior": posterior, "mean_basis": model.mean_basis is not None}


def model_from(config: Config, tensors: Tensors, given: Mapping[str, nn.Module]) -> Model:
    """The model with this structure and these numbers; `given` holds what a file cannot."""
    try:
        parts = {
            "orbit": _part(orbit_from, "orbit", config, tensors, given),
            "feature_map": _part(feature_map_from, "feature_map", config, tensors, given),
            "kernel": _part(kernel_from, "kernel", config, tensors, given),
            "likelihood": _part(likelihood_from, "likelihood", config, tensors, given),
            "projection": _projection_from(config["projected"], within(tensors, "projection")),
        }
        model = _model_of(parts, config, tensors)
    except FileError:
        raise
    except MALFORMED as error:
        refuse(f"the structure of the model ({type(error).__name__}: {error})")
    energy, size = model.feature_map, model.posterior.points.shape[-1]
    if isinstance(model, InvariantGP):
        _check_mean_basis(model)
    if model.projection is not None:
        if size != model.projection.basis.shape[1]:
            refuse(f"inducing points of {size} features behind another number of axes")
        size = len(model.projection.centre)
    if isinstance(energy, PatchFeatures) and size != energy.num_features:
        refuse(f"inducing points of {size} features behind {energy.num_features}")
    if isinstance(energy, OrientedEnergy) and size % energy.num_features:
        refuse(f"inducing points of {size} features behind {energy.num_features}")
    _take_dtypes(model, tensors)
    fill(model, tensors)
    return model


def _model_of(parts: dict[str, Any], config: Config, tensors: Tensors) -> Model:
    """The two kinds of models, by their posterior."""
    own = within(tensors, "posterior")
    if config["posterior"]["kind"] == "exact":
        return ExactInvariantGP(**parts, posterior=_exact_posterior_from(own, parts["orbit"]))
    basis = _mean_basis_from(config["mean_basis"], within(tensors, "mean_basis"))
    posterior = _posterior_from(config["posterior"], own)
    return InvariantGP(**parts, posterior=posterior, mean_basis=basis)


def _exact_posterior_from(tensors: Tensors, orbit: Orbit) -> ExactPosterior:
    points, weights, packed = tensors["points"], tensors["weights"], tensors["packed"]
    noise, size = tensors.get("noise"), len(points)
    plain = points.ndim == 3 and points.dtype in (torch.float32, torch.float64)
    fits = weights.ndim == 2 and len(weights) == size and weights.dtype == torch.float64
    whole = packed.shape == (size * (size + 1) // 2,) and packed.dtype == points.dtype
    num_draws = int(orbit.size) if noise is None and math.isfinite(orbit.size) else None
    if noise is not None:
        drawn = noise.ndim == 3 and noise.shape[::2] == (1, orbit.noise_size)
        num_draws = noise.shape[1] if drawn and noise.dtype == torch.float32 else None
    if not (plain and fits and whole) or num_draws != points.shape[1]:
        refuse(f"an exact posterior on points {list(points.shape)}")
    return ExactPosterior(points, weights, packed, noise)


def _part(build: Any, name: str, config: Config, tensors: Tensors, given: Any) -> Any:
    """One part of the model, rebuilt from the file, or a copy of the one given."""
    if config[name] != GIVEN:
        return build(config[name], within(tensors, name))
    if name not in given:
        raise FileError(
            f"the file holds the numbers of the {name} but not its code; build it as you did "
            f"before training, and pass it as load(path, {name}=...)"
        )
    _check_given(given[name], name, within(tensors, name))
    return copy.deepcopy(given[name])


def _check_given(part: object, name: str, tensors: Tensors) -> None:
    """Refuse what cannot be the part that was saved; the file has nothing to do with it."""
    kind = Orbit if name == "orbit" else nn.Module
    if not isinstance(part, kind):
        raise FileError(f"{name}= must be of type {kind.__name__}; got {part!r:.80}")
    saved = {key: list(value.shape) for key, value in tensors.items()}
    own = {key: list(value.shape) for key, value in part.state_dict().items()}
    if own != saved:
        raise FileError(
            f"the {name} that was given has tensors of shapes {own!s:.200}, the one that was saved "
            f"{saved!s:.200}: build it as you did before training"
        )


def _posterior_from(config: Config, tensors: Tensors) -> InducingPosterior:
    points, mean, scale = tensors["points"], tensors["mean"], tensors["scale"]
    square, counts = (len(points), len(points)), (1, mean.shape[1])
    if len(mean) != len(points) or scale.shape[1:] != square or len(scale) not in counts:
        refuse(
            f"{list(points.shape)} inducing points with q(u) of shapes {list(mean.shape)} and "
            f"{list(scale.shape)}"
        )
    return InducingPosterior(
        points, mean.shape[1], shared_covariance=len(scale) == 1, jitter=float(config["jitter"])
    )


def _projection_from(projected: bool, tensors: Tensors) -> Projection | None:
    if not projected:
        return None
    centre, basis = tensors["centre"], tensors["basis"]
    fits = centre.ndim == 1 and basis.ndim == 2 and len(basis) == len(centre)
    if not fits or {centre.dtype, basis.dtype} not in ({torch.float32}, {torch.float64}):
        refuse(f"a projection of {basis.dtype} {list(basis.shape)} around {list(centre.shape)}")
    return Projection(centre, basis)


def _mean_basis_from(given: bool, tensors: Tensors) -> MeanBasis | None:
    return MeanBasis(tensors["points"], tensors["weights"]) if given else None


def _check_mean_basis(model: InvariantGP) -> None:
    """One weight for each point and output, in the space where the inducing points live."""
    basis, posterior = model.mean_basis, model.posterior
    if basis is None:
        return
    points, weights = basis.points, basis.weights
    shape = (len(points), posterior.mean.shape[1])
    fits = points.ndim == 3 and points.shape[-1] == posterior.points.shape[-1]
    alike = points.dtype == posterior.points.dtype and weights.dtype == torch.float64
    if not (fits and alike and points.numel() and weights.shape == shape):
        refuse(f"a mean of {list(weights.shape)} weights on points {list(points.shape)}")


def _take_dtypes(model: nn.Module, tensors: Tensors) -> None:
    """A model that was cast to float32 or float64 comes back as it was."""
    own = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for name in own.keys() & tensors.keys():
        if own[name].is_floating_point() and tensors[name].dtype in (torch.float32, torch.float64):
            own[name].data = own[name].data.to(tensors[name].dtype)


def fill(module: nn.Module, tensors: Tensors) -> None:
    """Put the numbers of a file into a module, if they are just those that it needs."""
    check_like(tensors, module.state_dict())
    module.load_state_dict(tensors)
