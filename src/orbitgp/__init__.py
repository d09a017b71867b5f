"""orbitgp: Gaussian processes that learn invariances from data, by the marginal likelihood."""

from orbitgp.errors import InputError, NumericalError, OrbitGPError
from orbitgp.estimators import InvariantGPClassifier, InvariantGPRegressor
from orbitgp.kernels import RBF, InvariantKernel
from orbitgp.likelihoods.base import Likelihood
from orbitgp.likelihoods.gaussian import Gaussian, OneHotGaussian
from orbitgp.model import InvariantGP, mean_pairs, unbiased_pairs
from orbitgp.objective import elbo, elbo_from_statistics, statistics, stream_statistics
from orbitgp.orbits import (
    Affine,
    CyclicShifts,
    FiniteOrbit,
    FunctionOrbit,
    GaussianNoise,
    Identity,
    Mirror,
    Orbit,
    PermutationGroup,
    QuarterTurns,
    Rotation,
    SignFlips,
    UniformRange,
    compose,
    coordinate_swap,
)
from orbitgp.posterior.closed_form import solve
from orbitgp.posterior.inducing import InducingPosterior
from orbitgp.posterior.placement import greedy_points, kmeans_points, random_points
from orbitgp.training.settings import TrainingSettings
from orbitgp.training.updates import GradientUpdate, NaturalUpdate
from orbitgp.values import Elbo, OrbitSample, Prediction, SufficientStatistics

__version__ = "0.1.0.dev0"

__all__ = [
    "RBF",
    "Affine",
    "CyclicShifts",
    "Elbo",
    "FiniteOrbit",
    "FunctionOrbit",
    "Gaussian",
    "GaussianNoise",
    "GradientUpdate",
    "Identity",
    "InducingPosterior",
    "InputError",
    "InvariantGP",
    "InvariantGPClassifier",
    "InvariantGPRegressor",
    "InvariantKernel",
    "Likelihood",
    "Mirror",
    "NaturalUpdate",
    "NumericalError",
    "OneHotGaussian",
    "Orbit",
    "OrbitGPError",
    "OrbitSample",
    "PermutationGroup",
    "Prediction",
    "QuarterTurns",
    "Rotation",
    "SignFlips",
    "SufficientStatistics",
    "TrainingSettings",
    "UniformRange",
    "compose",
    "coordinate_swap",
    "elbo",
    "elbo_from_statistics",
    "greedy_points",
    "kmeans_points",
    "mean_pairs",
    "random_points",
    "solve",
    "statistics",
    "stream_statistics",
    "unbiased_pairs",
]
