"""orbitgp: Gaussian processes that learn invariances from data, by the marginal likelihood."""

from orbitgp.errors import InputError as InputError
from orbitgp.errors import NumericalError as NumericalError
from orbitgp.errors import OrbitGPError as OrbitGPError
from orbitgp.kernels import RBF as RBF
from orbitgp.kernels import InvariantKernel as InvariantKernel
from orbitgp.likelihoods.base import Likelihood as Likelihood
from orbitgp.likelihoods.gaussian import Gaussian as Gaussian
from orbitgp.likelihoods.gaussian import OneHotGaussian as OneHotGaussian
from orbitgp.model import InvariantGP as InvariantGP
from orbitgp.objective import elbo as elbo
from orbitgp.objective import elbo_from_statistics as elbo_from_statistics
from orbitgp.objective import statistics as statistics
from orbitgp.objective import stream_statistics as stream_statistics
from orbitgp.orbits import Affine as Affine
from orbitgp.orbits import CyclicShifts as CyclicShifts
from orbitgp.orbits import FiniteOrbit as FiniteOrbit
from orbitgp.orbits import FunctionOrbit as FunctionOrbit
from orbitgp.orbits import GaussianNoise as GaussianNoise
from orbitgp.orbits import Identity as Identity
from orbitgp.orbits import Mirror as Mirror
from orbitgp.orbits import Orbit as Orbit
from orbitgp.orbits import PermutationGroup as PermutationGroup
from orbitgp.orbits import QuarterTurns as QuarterTurns
from orbitgp.orbits import Rotation as Rotation
from orbitgp.orbits import SignFlips as SignFlips
from orbitgp.orbits import UniformRange as UniformRange
from orbitgp.orbits import compose as compose
from orbitgp.orbits import coordinate_swap as coordinate_swap
from orbitgp.posterior.inducing import InducingPosterior as InducingPosterior
from orbitgp.posterior.placement import greedy_points as greedy_points
from orbitgp.posterior.placement import kmeans_points as kmeans_points
from orbitgp.posterior.placement import random_points as random_points
from orbitgp.training.updates import GradientUpdate as GradientUpdate
from orbitgp.training.updates import NaturalUpdate as NaturalUpdate

__version__ = "0.1.0.dev0"
