"""Augmentation distributions p_θ(x_a | x)."""

from orbitgp.orbits.affine import Affine as Affine
from orbitgp.orbits.affine import Rotation as Rotation
from orbitgp.orbits.base import FiniteOrbit as FiniteOrbit
from orbitgp.orbits.base import Identity as Identity
from orbitgp.orbits.base import Orbit as Orbit
from orbitgp.orbits.compose import compose as compose
from orbitgp.orbits.function import FunctionOrbit as FunctionOrbit
from orbitgp.orbits.groups import CyclicShifts as CyclicShifts
from orbitgp.orbits.groups import Mirror as Mirror
from orbitgp.orbits.groups import PermutationGroup as PermutationGroup
from orbitgp.orbits.groups import QuarterTurns as QuarterTurns
from orbitgp.orbits.groups import SignFlips as SignFlips
from orbitgp.orbits.groups import coordinate_swap as coordinate_swap
from orbitgp.orbits.noise import GaussianNoise as GaussianNoise
from orbitgp.orbits.ranges import UniformRange as UniformRange
