"""A fitted estimator as one sealed file, and back."""

import copy
import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor, nn

from orbitgp.blueprints.checks import GIVEN
from orbitgp.blueprints.model import fill, model_config, model_from
from orbitgp.blueprints.orbits import orbit_from
from orbitgp.callbacks.base import evaluations_from
from orbitgp.errors import FileError
from orbitgp.estimators.parameters import NAMELESS, parameters_of, sizes_from
from orbitgp.exact_model import ExactInvariantGP
from orbitgp.fit.settings import TrainingSettings
from orbitgp.kernels import Kernel, with_variance
from orbitgp.likelihoods.gaussian import OneHotGaussian
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP
from orbitgp.orbits.base import FiniteOrbit, Orbit
from orbitgp.sealed import MALFORMED, unseal, within, write_sealed
from orbitgp.stochastic.settings import StochasticSettings

NUMBERS = ("scale_", "evidence_", "evidence_error_", "n_iter_", "n_features_in_", "num_draws_")
ARRAYS = ("classes_", "target_mean_", "target_scale_", "feature_names_in_", "input_shape_")
OTHERS = (
    *("stopped_", "flat_target_", "num_data_", "evidence_kind_", "device_"),
    *("feature_evidence_", "sizes_"),
)


OWN = ("feature_map", "kernel")
"""Parameters that are parts of the fitted model, if they were given."""


def write_fitted(estimator: Any, path: Path) -> None:
    """Everything that predictions and reports need; equal estimators give equal bytes."""
    present = vars(estimator)
    config = {
        "parameters": parameters_of(estimator),
        "fitted": {name: present[name] for name in (*NUMBERS, *OTHERS) if name in present},
        "arrays": {name: _array_config(present[name]) for name in ARRAYS if name in present},
        "curve": [asdict(evaluation) for evaluation in estimator.evidence_curve_],
        "model": model_config(estimator.model_),
    }
    tensors = {f"model.{name}": t for name, t in estimator.model_.state_dict().items()}
    if isinstance(estimator.orbit, Orbit):
        tensors |= {f"start.{name}": t for name, t in estimator.orbit.state_dict().items()}
    if estimator.prediction_noise_ is not None:
        tensors["prediction_noise"] = estimator.prediction_noise_
    write_sealed(path, type(estimator).__name__, tensors, config)


def read_fitted(estimator: Any, data: bytes, path: Path) -> None:
    """Give an estimator all that another one of its kind had learned, from the bytes of a file."""
    _, tensors, config = unseal(data, path, type(estimator).__name__)
    parts = {name: getattr(estimator, name) for name in ("orbit", *OWN)}
    given = {name: part for name, part in parts.items() if isinstance(part, nn.Module)}
    fill_estimator(estimator, tensors, config, given)


def estimator_from(
    kind: Any,
    tensors: dict[str, Tensor],
    config: Any,
    given: Any,
    device: torch.device | None = None,
) -> Any:
    """An estimator of this kind with the parameters and all that is in the file.

    It is moved to the device, if one is given, or else to that of the fit.
    """
    try:
        parameters = dict(config["parameters"])
        if parameters.keys() != parameters_of(kind()).keys():
            raise KeyError(f"parameters {sorted(parameters)}")
        orbit = parameters["orbit"]
        if orbit == GIVEN:
            parameters["orbit"] = given.get("orbit", "none")
        elif not isinstance(orbit, str):
            parameters["orbit"] = orbit_from(orbit, within(tensors, "start"))
            fill(parameters["orbit"], within(tensors, "start"))
        own = [name for name in OWN if parameters[name] == NAMELESS]
        parameters |= dict.fromkeys(own)
        if parameters["image_shape"] is not None:
            parameters["image_shape"] = tuple(parameters["image_shape"])
        if parameters["settings"] is not None:
            stochastic = parameters["inference"] == "stochastic"
            settings = StochasticSettings if stochastic else TrainingSettings
            parameters["settings"] = settings(**parameters["settings"])
        estimator = kind(**parameters)
    except MALFORMED as error:
        _refuse(error)
    fill_estimator(estimator, tensors, config, given, device)
    for name in own:
        setattr(estimator, name, copy.deepcopy(getattr(estimator.model_, name)))
    return estimator


def fill_estimator(
    estimator: Any,
    tensors: dict[str, Tensor],
    config: Any,
    given: Any,
    device: torch.device | None = None,
) -> None:
    """All that was learned, checked before any of it is taken."""
    if isinstance(given.get("kernel"), Kernel):  # a fit gives a variance to one that has none
        given = {**given, "kernel": with_variance(copy.deepcopy(given["kernel"]))}
    try:
        model = model_from(config["model"], within(tensors, "model"), given)
        fitted = {name: config["fitted"][name] for name in NUMBERS}
        fitted |= {name: config["fitted"][name] for name in OTHERS if name in config["fitted"]}
        fitted["device_"] = str(device or _device_from(fitted.get("device_", "cpu")))
        if not all(isinstance(fitted[name], int | float) for name in NUMBERS):
            raise TypeError(f"numbers expected, got {fitted}")
        _check_feature_evidence(fitted.get("feature_evidence_", {}))
        fitted["sizes_"] = sizes_from(fitted["sizes_"], "the file")
        fitted |= {name: _array_from(*config["arrays"][name]) for name in config["arrays"]}
        if not set(fitted) <= {*NUMBERS, *OTHERS, *ARRAYS}:
            raise TypeError("unknown attributes")
        fitted["evidence_curve_"] = evaluations_from(config["curve"])
        noise = tensors.get("prediction_noise")
        fitted["prediction_noise_"] = _checked_noise(noise, model.orbit)
        if not 0 < fitted["scale_"] < math.inf:
            raise ValueError(f"a scale of {fitted['scale_']}")
        _check_shape(fitted["input_shape_"])
        _check_outputs(type(estimator).__name__, fitted, model)
    except FileError:
        raise
    except MALFORMED as error:
        _refuse(error)
    for name, value in {**fitted, "model_": model, "orbit_": model.orbit}.items():
        setattr(estimator, name, value)
    estimator._return()


def _device_from(name: Any) -> torch.device:
    """What a name stands for, which need not be here."""
    if not isinstance(name, str):
        raise TypeError(f"a device called {name!r:.40}")
    return torch.device(name)


def _check_feature_evidence(evidence: Any) -> None:
    """Nats by name."""
    named = isinstance(evidence, dict) and all(isinstance(name, str) for name in evidence)
    if not named or not all(isinstance(nats, float) for nats in evidence.values()):
        raise TypeError(f"evidence of features {evidence!r:.40}")


def _check_shape(shape: np.ndarray) -> None:
    """Of one input: some whole numbers from 1 on."""
    if shape.ndim != 1 or not len(shape) or shape.dtype.kind != "i" or (shape < 1).any():
        raise ValueError(f"inputs of shape {shape.tolist()!r:.40}")


def _check_outputs(
    kind: str, fitted: dict[str, Any], model: InvariantGP | ExactInvariantGP
) -> None:
    """As many classes or targets as outputs of the model, with a likelihood for them."""
    classifies, likelihood = kind == "InvariantGPClassifier", model.likelihood
    right = isinstance(likelihood, OneHotGaussian | LocalLikelihood) == classifies
    num_outputs = model.posterior.num_outputs
    if isinstance(likelihood, OneHotGaussian | LocalLikelihood):
        fits = fitted["classes_"].shape == (likelihood.num_classes,)
        fits = fits and num_outputs == likelihood.num_outputs
    else:
        names = ("target_mean_", "target_scale_")
        fits = all(fitted[name].shape == (num_outputs,) for name in names)
    if not fits or not right or (not classifies and not isinstance(fitted["flat_target_"], bool)):
        raise ValueError(f"outputs that do not fit {kind}")


def _checked_noise(noise: Tensor | None, orbit: Orbit) -> Tensor | None:
    if noise is None:
        if not isinstance(orbit, FiniteOrbit):
            raise ValueError("an orbit without end needs prediction noise")
        return None
    plain = noise.dtype == torch.float32 and bool(torch.isfinite(noise).all())
    if not plain or noise.ndim != 3 or noise.shape[::2] != (1, orbit.noise_size):
        raise ValueError(f"prediction noise of shape {list(noise.shape)}")
    return noise


def _array_config(array: np.ndarray) -> list[Any]:
    values = array.tolist()
    if array.dtype == object and not all(isinstance(value, str) for value in values):
        raise FileError(
            f"labels of type {type(values[0]).__name__} cannot be written to a file; use numbers "
            "or strings"
        )
    return [array.dtype.str, values]


def _array_from(dtype: str, values: list[Any]) -> np.ndarray:
    if not isinstance(values, list) or not re.fullmatch(r"\|O|[<>|][biufU]\d{1,4}", dtype):
        raise ValueError(f"array of dtype {dtype!r:.40}")
    if dtype == "|O" and not all(isinstance(value, str) for value in values):
        raise ValueError("an array of objects that are not strings")
    array = np.array(values, dtype=object if dtype == "|O" else None)
    if dtype[1] == "U" and array.dtype.str != dtype:  # a width may claim any size
        raise ValueError(f"text of dtype {array.dtype.str} where {dtype} was said")
    return array.astype(dtype)


def _refuse(error: Exception) -> NoReturn:
    raise FileError(
        f"the file does not describe a fitted estimator ({type(error).__name__}: {error}); it was "
        "damaged, or not written by orbitgp"
    ) from None
