"""A model as plain values, JSON for its structure and tensors for its numbers, and back.

Only parts of our own are rebuilt from a file, by the closed lists below. A part with a user's code
in it (an orbit from a function, a feature map, another kernel) is marked as "given": its numbers
are in the file, and whoever loads the file brings the part.
"""

import copy
import math
from collections.abc import Mapping
from typing import Any, NoReturn

import torch
from torch import Tensor, distributions, nn

from orbitgp.errors import FileError
from orbitgp.features import MAX_CELLS, OrientedEnergy, Projection, Standardize
from orbitgp.kernels import RBF, Kernel
from orbitgp.likelihoods.gaussian import Gaussian, OneHotGaussian
from orbitgp.likelihoods.polya_gamma import PolyaGamma, StickBreaking
from orbitgp.likelihoods.softmax import Softmax
from orbitgp.model import InvariantGP
from orbitgp.orbits.affine import Affine, Rotation
from orbitgp.orbits.base import Identity, Orbit
from orbitgp.orbits.compose import Composition, FiniteComposition, compose
from orbitgp.orbits.deformation import MAX_FREQUENCIES, LocalDeformation
from orbitgp.orbits.groups import CyclicShifts, Mirror, PermutationGroup, QuarterTurns, SignFlips
from orbitgp.orbits.intensity import Intensity
from orbitgp.orbits.noise import GaussianNoise
from orbitgp.orbits.ranges import UniformRange
from orbitgp.posterior.inducing import InducingPosterior
from orbitgp.posterior.mean_basis import MeanBasis
from orbitgp.sealed import MALFORMED, check_like, within

GIVEN = {"kind": "given"}
ORBITS = (
    *(Identity, QuarterTurns, Mirror, CyclicShifts, PermutationGroup, SignFlips, GaussianNoise),
    *(Affine, Rotation, Intensity, LocalDeformation, Composition, FiniteComposition),
)
MAX_PARTS = 8
MAX_CLASSES = 10_000
PRIORS = ("Exponential", "Gamma", "HalfCauchy", "HalfNormal", "LogNormal", "Normal", "Uniform")

Config = dict[str, Any]
Tensors = Mapping[str, Tensor]


def model_config(model: InvariantGP) -> Config:
    """The structure of a model; its numbers are `model.state_dict()`."""
    return {
        "orbit": orbit_config(model.orbit),
        "feature_map": _feature_map_config(model.feature_map),
        "projected": model.projection is not None,
        "mean_basis": model.mean_basis is not None,
        "kernel": _kernel_config(model.kernel),
        "posterior": {"jitter": model.posterior.jitter},
        "likelihood": _likelihood_config(model.likelihood),
    }


def model_from(config: Config, tensors: Tensors, given: Mapping[str, nn.Module]) -> InvariantGP:
    """The model with this structure and these numbers; `given` holds what a file cannot."""
    try:
        model = InvariantGP(
            orbit=_part(orbit_from, "orbit", config, tensors, given),
            feature_map=_part(_feature_map_from, "feature_map", config, tensors, given),
            kernel=_part(_kernel_from, "kernel", config, tensors, given),
            likelihood=_part(_likelihood_from, "likelihood", config, tensors, given),
            posterior=_posterior_from(config["posterior"], within(tensors, "posterior")),
            projection=_projection_from(config["projected"], within(tensors, "projection")),
            mean_basis=_mean_basis_from(config["mean_basis"], within(tensors, "mean_basis")),
        )
    except FileError:
        raise
    except MALFORMED as error:
        _refuse(f"the structure of the model ({type(error).__name__}: {error})")
    energy, size = model.feature_map, model.posterior.points.shape[-1]
    _check_mean_basis(model)
    if model.projection is not None:
        if size != model.projection.basis.shape[1]:
            _refuse(f"inducing points of {size} features behind another number of axes")
        size = len(model.projection.centre)
    if isinstance(energy, OrientedEnergy) and size % energy.num_features:
        _refuse(f"inducing points of {size} features behind {energy.num_features}")
    _take_dtypes(model, tensors)
    fill(model, tensors)
    return model


def orbit_config(orbit: Orbit) -> Config:
    """The structure of an orbit."""
    kind = type(orbit)
    if kind not in ORBITS:  # a user's own class, even one derived from ours
        return GIVEN
    if isinstance(orbit, Composition | FiniteComposition):
        parts = [orbit_config(part) for part in orbit.orbits if isinstance(part, Orbit)]
        plain = len(parts) <= MAX_PARTS and all(
            p["kind"] not in ("given", "compose") for p in parts
        )
        return {"kind": "compose", "parts": parts} if plain else GIVEN
    if isinstance(orbit, Mirror):
        return {"kind": "Mirror", "dim": orbit.dim}
    if isinstance(orbit, CyclicShifts):
        fields = {"length": orbit.length, "step": orbit.step, "dim": orbit.dim}
        return {"kind": "CyclicShifts", **fields}
    if isinstance(orbit, PermutationGroup):
        return {
            "kind": "PermutationGroup",
            "generators": [list(g) for g in orbit.generators],
            "dim": orbit.dim,
        }
    if isinstance(orbit, SignFlips):
        return {"kind": "SignFlips", "coordinates": list(orbit.coordinates)}
    if isinstance(orbit, GaussianNoise):
        shape = list(orbit.event_shape)
        return {"kind": "GaussianNoise", "event_shape": shape, "learnable": orbit.learnable}
    if isinstance(orbit, Affine | Rotation | Intensity | LocalDeformation):
        prior = _prior_config(orbit.ranges.prior)
        fields = {"kind": kind.__name__, "prior": prior}
        if isinstance(orbit, LocalDeformation):
            fields |= {"num_frequencies": orbit.num_frequencies, "tangent": orbit.tangent}
            fields["learn_width"] = orbit.raw_width.requires_grad
        return GIVEN if prior == GIVEN else fields
    return {"kind": kind.__name__}


def orbit_from(config: Config, tensors: Tensors) -> Orbit:
    """The orbit with this structure; its numbers are filled in later."""
    match config["kind"]:
        case "compose":
            parts = config["parts"]
            if len(parts) > MAX_PARTS or any(part["kind"] == "compose" for part in parts):
                _refuse(f"a composition of {len(parts)} orbits, or one inside another")
            inner = [within(tensors, f"orbits.{place}") for place in range(len(parts))]
            return compose(*(orbit_from(*part) for part in zip(parts, inner, strict=True)))
        case "Identity":
            return Identity()
        case "QuarterTurns":
            return QuarterTurns()
        case "Mirror":
            return Mirror(_integer(config["dim"]))
        case "CyclicShifts":
            length, step, dim = (_integer(config[name]) for name in ("length", "step", "dim"))
            return CyclicShifts(length, step=step, dim=dim)
        case "PermutationGroup":
            generators = [[_integer(i) for i in row] for row in config["generators"]]
            return PermutationGroup(*generators, dim=_integer(config["dim"]))
        case "SignFlips":
            return SignFlips(*(_integer(coordinate) for coordinate in config["coordinates"]))
        case "GaussianNoise":
            shape = tuple(_integer(length) for length in config["event_shape"])
            raw = tensors["raw_scale"]
            scale = torch.ones(raw.shape)
            learnable = config["learnable"] is True
            return GaussianNoise(scale, event_shape=shape, learnable=learnable).to(raw.dtype)
        case "Affine" | "Rotation" | "Intensity" | "LocalDeformation":
            orbit = _ranged_from(config, tensors)
            size = orbit.ranges.raw.shape[1]
            orbit.ranges = _ranges_from(config["prior"], within(tensors, "ranges"))
            if orbit.ranges.raw.shape[1] != size:
                _refuse(f"a range of {orbit.ranges.raw.shape[1]} for {config['kind']}")
            return orbit
    _refuse(f"an orbit of kind {config['kind']!r}")


def _ranges_from(prior: Config | None, tensors: Tensors) -> UniformRange:
    symmetric = tensors["raw"].shape[0] == 1
    ends = [1.0] * tensors["raw"].shape[1]
    ranges = UniformRange(
        [-end for end in ends], ends, symmetric=symmetric, prior=_prior_from(prior)
    ).to(tensors["raw"].dtype)
    return ranges.requires_grad_(bool(tensors["learned"].any()))


def _prior_config(prior: distributions.Distribution | None) -> Config | None:
    if prior is None:
        return None
    name = type(prior).__name__
    if name not in PRIORS or type(prior) is not getattr(distributions, name):
        return GIVEN
    values = {key: getattr(prior, key).tolist() for key in prior.arg_constraints}
    return {"kind": name, "parameters": values}


def _prior_from(config: Config | None) -> distributions.Distribution | None:
    if config is None:
        return None
    if config["kind"] not in PRIORS:
        _refuse(f"a prior of kind {config['kind']!r}")
    values = {key: torch.as_tensor(value) for key, value in config["parameters"].items()}
    return getattr(distributions, config["kind"])(**values)


def _feature_map_config(feature_map: nn.Module) -> Config:
    if type(feature_map) is nn.Flatten:
        return {"kind": "Flatten"}
    if type(feature_map) is OrientedEnergy:
        return {
            "kind": "OrientedEnergy",
            "num_directions": feature_map.num_directions,
            "cells": list(feature_map.cells),
            "sharpness": feature_map.sharpness,
            "overlap": feature_map.overlap,
            "contrast": feature_map.contrast,
        }
    return {"kind": "Standardize"} if type(feature_map) is Standardize else GIVEN


def _feature_map_from(config: Config, tensors: Tensors) -> nn.Module:
    match config["kind"]:
        case "Flatten":
            return nn.Flatten()
        case "Standardize":
            return Standardize(tensors["mean"], tensors["scale"])
        case "OrientedEnergy":
            cells = tuple(_integer(size) for size in config["cells"])
            count, sharpness = _integer(config["num_directions"]), float(config["sharpness"])
            if max(count, len(cells), *cells) > MAX_CELLS or not 1 <= sharpness <= MAX_CELLS:
                _refuse(f"oriented energy of {count} directions in {cells} cells, {sharpness}")
            constants = float(config["overlap"]), float(config["contrast"])
            if not all(0 < constant < math.inf for constant in constants):
                _refuse(f"oriented energy with overlap and contrast {constants}")
            return OrientedEnergy(count, cells, sharpness, *constants)
    _refuse(f"a feature map of kind {config['kind']!r}")


def _projection_from(projected: bool, tensors: Tensors) -> Projection | None:
    if not projected:
        return None
    centre, basis = tensors["centre"], tensors["basis"]
    fits = centre.ndim == 1 and basis.ndim == 2 and len(basis) == len(centre)
    if not fits or {centre.dtype, basis.dtype} not in ({torch.float32}, {torch.float64}):
        _refuse(f"a projection of {basis.dtype} {list(basis.shape)} around {list(centre.shape)}")
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
        _refuse(f"a mean of {list(weights.shape)} weights on points {list(points.shape)}")


def _kernel_config(kernel: Kernel) -> Config:
    if type(kernel) is not RBF or kernel.active_dims is not None or len(kernel.batch_shape):
        return GIVEN
    usual = str(kernel.raw_lengthscale_constraint) == str(RBF().raw_lengthscale_constraint)
    config = {"kind": "RBF", "coarse": kernel.coarse}
    return config if usual and not list(kernel.named_priors()) else GIVEN


def _kernel_from(config: Config, tensors: Tensors) -> Kernel:
    if config["kind"] != "RBF":
        _refuse(f"a kernel of kind {config['kind']!r}")
    lengthscale = tensors["raw_lengthscale"]
    size = lengthscale.shape[-1]
    options = {"ard_num_dims": size if size > 1 else None, "coarse": config["coarse"] is True}
    return RBF(**options).to(lengthscale.dtype)


def _likelihood_config(likelihood: nn.Module) -> Config:
    if type(likelihood) is OneHotGaussian:
        return {"kind": "OneHotGaussian", "num_classes": likelihood.num_classes}
    if type(likelihood) in (PolyaGamma, StickBreaking, Softmax):
        plain = likelihood.recognition is None
        config = {"kind": type(likelihood).__name__, "num_classes": likelihood.num_classes}
        return config if plain else GIVEN
    return {"kind": "Gaussian"} if type(likelihood) is Gaussian else GIVEN


def _likelihood_from(config: Config, tensors: Tensors) -> nn.Module:
    match config["kind"]:
        case "Gaussian":
            return Gaussian([1.0] * len(tensors["raw_noise"]))
        case "OneHotGaussian":
            return OneHotGaussian(_integer(config["num_classes"]))
        case "PolyaGamma":
            return PolyaGamma()
        case "StickBreaking":
            return StickBreaking(_num_classes(config))
        case "Softmax":
            return Softmax(_num_classes(config))
    _refuse(f"a likelihood of kind {config['kind']!r}")


def _num_classes(config: Config) -> int:
    count = _integer(config["num_classes"])
    if not 2 <= count <= MAX_CLASSES:
        _refuse(f"{count} classes")
    return count


def _posterior_from(config: Config, tensors: Tensors) -> InducingPosterior:
    points, mean, scale = tensors["points"], tensors["mean"], tensors["scale"]
    square, counts = (len(points), len(points)), (1, mean.shape[1])
    if len(mean) != len(points) or scale.shape[1:] != square or len(scale) not in counts:
        _refuse(
            f"{list(points.shape)} inducing points with q(u) of shapes {list(mean.shape)} and "
            f"{list(scale.shape)}"
        )
    return InducingPosterior(
        points, mean.shape[1], shared_covariance=len(scale) == 1, jitter=float(config["jitter"])
    )


def _take_dtypes(model: InvariantGP, tensors: Tensors) -> None:
    """A model that was cast to float32 or float64 comes back as it was."""
    own = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for name in own.keys() & tensors.keys():
        if own[name].is_floating_point() and tensors[name].dtype in (torch.float32, torch.float64):
            own[name].data = own[name].data.to(tensors[name].dtype)


def fill(module: nn.Module, tensors: Tensors) -> None:
    """Put the numbers of a file into a module, if they are just those that it needs."""
    check_like(tensors, module.state_dict())
    module.load_state_dict(tensors)


def _part(build: Any, name: str, config: Config, tensors: Tensors, given: Any) -> Any:
    """One part of the model, rebuilt from the file, or a copy of the one given."""
    if config[name] != GIVEN:
        return build(config[name], within(tensors, name))
    if name not in given:
        raise FileError(
            f"the file holds the numbers of a {name} but not its code; build it as you did before "
            f"training, and pass it as load(path, {name}=...)"
        )
    return copy.deepcopy(given[name])


def _ranged_from(
    config: Config, tensors: Tensors
) -> Affine | Rotation | Intensity | LocalDeformation:
    """An orbit whose ranges are filled in later."""
    match config["kind"]:
        case "Affine":
            return Affine()
        case "Rotation":
            return Rotation()
        case "Intensity":
            return Intensity()
    count = _integer(config["num_frequencies"])
    if not 1 <= count <= MAX_FREQUENCIES:
        _refuse(f"a deformation of {count} frequencies")
    orbit = LocalDeformation(
        num_frequencies=count,
        tangent=config["tangent"] is True,
        learn_width=config["learn_width"] is True,
    )
    return orbit.to(tensors["raw_width"].dtype)


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 2**31:
        _refuse(f"{value!r:.40}, where a whole number was expected")
    return value


def _refuse(what: str) -> NoReturn:
    raise FileError(f"the file describes {what}; it was damaged, or not written by orbitgp")
