"""orbitgp: Gaussian processes that learn invariances from data, by the marginal likelihood."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orbitgp.callbacks.base import Callback, JsonlLog, ProgressBar
    from orbitgp.displays.calibration import CalibrationDisplay
    from orbitgp.displays.evidence import EvidenceDisplay
    from orbitgp.displays.orbit import OrbitDisplay
    from orbitgp.displays.ranges import RangeDisplay
    from orbitgp.errors import FileError, InputError, NumericalError, OrbitGPError
    from orbitgp.estimators.classifier import InvariantGPClassifier
    from orbitgp.estimators.regressor import InvariantGPRegressor
    from orbitgp.evidence.ablate import ablate
    from orbitgp.evidence.ablation import Ablation
    from orbitgp.evidence.certificate import Certificate, certificate
    from orbitgp.evidence.check_orbit import OrbitCheck, check_orbit
    from orbitgp.evidence.compare import compare
    from orbitgp.evidence.comparison import Comparison
    from orbitgp.evidence.discover import discover
    from orbitgp.evidence.discovery import Discovery
    from orbitgp.evidence.tolerance import Tolerance
    from orbitgp.evidence.tolerated import tolerated
    from orbitgp.evidence.transformations import Transformation
    from orbitgp.exact_model import ExactInvariantGP
    from orbitgp.export.export_policy import export_policy
    from orbitgp.export.export_predictor import export_predictor
    from orbitgp.export.policy import Policy
    from orbitgp.features import OrientedEnergy
    from orbitgp.files import load, save
    from orbitgp.fit.settings import TrainingSettings
    from orbitgp.kernels import RBF, InvariantKernel
    from orbitgp.likelihoods.base import Likelihood
    from orbitgp.likelihoods.gaussian import Gaussian, OneHotGaussian
    from orbitgp.likelihoods.polya_gamma import PolyaGamma
    from orbitgp.likelihoods.recognition import Recognition
    from orbitgp.likelihoods.softmax import Softmax
    from orbitgp.model import InvariantGP, mean_pairs, unbiased_pairs
    from orbitgp.orbits.affine import Affine, Rotation
    from orbitgp.orbits.base import FiniteOrbit, Identity, Orbit
    from orbitgp.orbits.blur import Blur
    from orbitgp.orbits.colour import Colour
    from orbitgp.orbits.compose import compose
    from orbitgp.orbits.crop import Crop
    from orbitgp.orbits.deformation import LocalDeformation
    from orbitgp.orbits.drift import Drift
    from orbitgp.orbits.function import FunctionOrbit
    from orbitgp.orbits.groups import (
        CyclicShifts,
        Mirror,
        PermutationGroup,
        QuarterTurns,
        SignFlips,
        block_permutations,
        coordinate_swap,
    )
    from orbitgp.orbits.intensity import Intensity
    from orbitgp.orbits.magnitude import Magnitude
    from orbitgp.orbits.noise import GaussianNoise
    from orbitgp.orbits.points import Jitter, PointMirror, PointRotation, Translation
    from orbitgp.orbits.random_order import RandomOrder
    from orbitgp.orbits.ranges import UniformRange
    from orbitgp.orbits.time_affine import TimeAffine
    from orbitgp.orbits.time_warp import TimeWarp
    from orbitgp.orbits.window import Window
    from orbitgp.patches import PatchFeatures
    from orbitgp.posterior.inducing import InducingPosterior
    from orbitgp.stochastic.bound import (
        elbo,
        elbo_from_statistics,
        statistics,
        stream_statistics,
    )
    from orbitgp.stochastic.closed_form import solve
    from orbitgp.stochastic.placement import greedy_points, kmeans_points, random_points
    from orbitgp.stochastic.settings import StochasticSettings
    from orbitgp.values import Elbo, OrbitSample, Prediction, SufficientStatistics

__version__ = "0.1.0"

__all__ = [
    "RBF",
    "Ablation",
    "Affine",
    "Blur",
    "CalibrationDisplay",
    "Callback",
    "Certificate",
    "Colour",
    "Comparison",
    "Crop",
    "CyclicShifts",
    "Discovery",
    "Drift",
    "Elbo",
    "EvidenceDisplay",
    "ExactInvariantGP",
    "FileError",
    "FiniteOrbit",
    "FunctionOrbit",
    "Gaussian",
    "GaussianNoise",
    "Identity",
    "InducingPosterior",
    "InputError",
    "Intensity",
    "InvariantGP",
    "InvariantGPClassifier",
    "InvariantGPRegressor",
    "InvariantKernel",
    "Jitter",
    "JsonlLog",
    "Likelihood",
    "LocalDeformation",
    "Magnitude",
    "Mirror",
    "NumericalError",
    "OneHotGaussian",
    "Orbit",
    "OrbitCheck",
    "OrbitDisplay",
    "OrbitGPError",
    "OrbitSample",
    "OrientedEnergy",
    "PatchFeatures",
    "PermutationGroup",
    "PointMirror",
    "PointRotation",
    "Policy",
    "PolyaGamma",
    "Prediction",
    "ProgressBar",
    "QuarterTurns",
    "RandomOrder",
    "RangeDisplay",
    "Recognition",
    "Rotation",
    "SignFlips",
    "Softmax",
    "StochasticSettings",
    "SufficientStatistics",
    "TimeAffine",
    "TimeWarp",
    "Tolerance",
    "TrainingSettings",
    "Transformation",
    "Translation",
    "UniformRange",
    "Window",
    "ablate",
    "block_permutations",
    "certificate",
    "check_orbit",
    "compare",
    "compose",
    "coordinate_swap",
    "discover",
    "elbo",
    "elbo_from_statistics",
    "export_policy",
    "export_predictor",
    "greedy_points",
    "kmeans_points",
    "load",
    "mean_pairs",
    "random_points",
    "save",
    "solve",
    "statistics",
    "stream_statistics",
    "tolerated",
    "unbiased_pairs",
]

# GPyTorch and scikit-learn take a second to import, so a name is looked up when it is first used
_HOMES = {
    "displays.calibration": ("CalibrationDisplay",),
    "displays.evidence": ("EvidenceDisplay",),
    "displays.orbit": ("OrbitDisplay",),
    "displays.ranges": ("RangeDisplay",),
    "errors": ("FileError", "InputError", "NumericalError", "OrbitGPError"),
    "estimators.classifier": ("InvariantGPClassifier",),
    "estimators.regressor": ("InvariantGPRegressor",),
    "evidence.ablate": ("ablate",),
    "evidence.ablation": ("Ablation",),
    "evidence.certificate": ("Certificate", "certificate"),
    "evidence.check_orbit": ("OrbitCheck", "check_orbit"),
    "evidence.compare": ("compare",),
    "evidence.comparison": ("Comparison",),
    "evidence.discover": ("discover",),
    "evidence.discovery": ("Discovery",),
    "evidence.tolerance": ("Tolerance",),
    "evidence.tolerated": ("tolerated",),
    "evidence.transformations": ("Transformation",),
    "exact_model": ("ExactInvariantGP",),
    "export.export_policy": ("export_policy",),
    "export.export_predictor": ("export_predictor",),
    "export.policy": ("Policy",),
    "features": ("OrientedEnergy",),
    "patches": ("PatchFeatures",),
    "files": ("load", "save"),
    "kernels": ("RBF", "InvariantKernel"),
    "likelihoods.base": ("Likelihood",),
    "likelihoods.gaussian": ("Gaussian", "OneHotGaussian"),
    "likelihoods.polya_gamma": ("PolyaGamma",),
    "likelihoods.recognition": ("Recognition",),
    "likelihoods.softmax": ("Softmax",),
    "model": ("InvariantGP", "mean_pairs", "unbiased_pairs"),
    "stochastic.bound": ("elbo", "elbo_from_statistics", "statistics", "stream_statistics"),
    "orbits.affine": ("Affine", "Rotation"),
    "orbits.base": ("FiniteOrbit", "Identity", "Orbit"),
    "orbits.compose": ("compose",),
    "orbits.deformation": ("LocalDeformation",),
    "orbits.function": ("FunctionOrbit",),
    "orbits.groups": (
        *("CyclicShifts", "Mirror", "PermutationGroup", "QuarterTurns", "SignFlips"),
        *("block_permutations", "coordinate_swap"),
    ),
    "orbits.intensity": ("Intensity",),
    "orbits.noise": ("GaussianNoise",),
    "orbits.ranges": ("UniformRange",),
    "orbits.blur": ("Blur",),
    "orbits.colour": ("Colour",),
    "orbits.crop": ("Crop",),
    "orbits.drift": ("Drift",),
    "orbits.magnitude": ("Magnitude",),
    "orbits.points": ("Jitter", "PointMirror", "PointRotation", "Translation"),
    "orbits.random_order": ("RandomOrder",),
    "orbits.time_affine": ("TimeAffine",),
    "orbits.time_warp": ("TimeWarp",),
    "orbits.window": ("Window",),
    "stochastic.closed_form": ("solve",),
    "posterior.inducing": ("InducingPosterior",),
    "stochastic.placement": ("greedy_points", "kmeans_points", "random_points"),
    "callbacks.base": ("Callback", "JsonlLog", "ProgressBar"),
    "fit.settings": ("TrainingSettings",),
    "stochastic.settings": ("StochasticSettings",),
    "values": ("Elbo", "OrbitSample", "Prediction", "SufficientStatistics"),
}

_MODULES = ("data", "recipes", "reports", "scores")


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            value = getattr(importlib.import_module(f"orbitgp.{module}"), name)
            globals()[name] = value
            return value
    if name in _MODULES:
        return importlib.import_module(f"orbitgp.{name}")
    raise AttributeError(f"module 'orbitgp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
