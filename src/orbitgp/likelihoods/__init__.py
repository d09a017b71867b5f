"""Likelihoods with quadratic lower bounds."""

from orbitgp.likelihoods.base import Likelihood as Likelihood
from orbitgp.likelihoods.gaussian import Gaussian as Gaussian
from orbitgp.likelihoods.gaussian import OneHotGaussian as OneHotGaussian
