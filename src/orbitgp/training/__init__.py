"""Moving a model's parameters."""

from orbitgp.training.updates import GradientUpdate as GradientUpdate
from orbitgp.training.updates import NaturalUpdate as NaturalUpdate
