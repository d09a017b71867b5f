"""A logistic likelihood of two classes by Pólya-Gamma augmentation.

With y = ±1, log σ(y f) = ½ y f − log 2cosh(½f), and for any c (Polson et al. 2013, and long before
them Jaakkola and Jordan)

    −log 2cosh(½f) ≥ −log 2cosh(½c) − ½ λ (f² − c²),   λ = tanh(½c) / 2c,

which touches at f = ±c: E_q of it is highest at c² = E_q f².
"""

import math

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.values import Moments, Prediction, QuadraticBound

NUM_NODES = 64
"""Of the quadrature for class probabilities."""

LARGEST = 0.25
"""λ, at c = 0."""

SMALL = 1e-3
"""Below it, tanh(½c)/2c is its series."""


class PolyaGamma(LocalLikelihood):
    """Two classes by a logistic function, p(y = 1 | f) = σ(f), with the Pólya–Gamma bound.

    Parameters
    ----------
    recognition : torch.nn.Module, optional
        Network that gives the local parameter of the bound from input and label.

    References
    ----------
    van der Wilk et al. (2018), section 4.5.

    Examples
    --------
    >>> from orbitgp import PolyaGamma
    >>> PolyaGamma().num_outputs
    1
    """

    def __init__(self, *, recognition: nn.Module | None = None) -> None:
        super().__init__(2, num_outputs=1, num_local=1, recognition=recognition)

    @property
    def num_precisions(self) -> int:
        """There is but one output."""
        return 1

    def bound_at(self, labels: Int[Tensor, "N"], local: Float[Tensor, "N K"]) -> QuadraticBound:
        """½ y f − log 2cosh(½c) − ½ λ (f² − c²)."""
        precision = logistic_precision(local)
        constant = 0.5 * precision * local.square() - log_2cosh_half(local)
        return QuadraticBound(constant[:, 0], labels.double().unsqueeze(1) - 0.5, precision)

    def best_local(self, moments: Moments) -> Float[Tensor, "N K"]:
        """c = √(E f²)."""
        return (moments.mean_square + moments.variance).clamp(min=0).sqrt()

    def log_probabilities(self, f: Float[Tensor, "*B C1"]) -> Float[Tensor, "*B C"]:
        """log σ(∓f)."""
        return logsigmoid(torch.cat([-f, f], -1))

    @torch.no_grad()
    def mean_probabilities(self, prediction: Prediction) -> Float[Tensor, "N C"]:
        """∫ σ(∓f) N(f; μ, v) df by quadrature."""
        one = mean_sigmoid(prediction.mean, prediction.variance)
        return torch.cat([1 - one, one], 1)


def logistic_precision(c: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """λ = tanh(½c) / 2c, and ¼ at 0."""
    small = c.abs() < SMALL
    apart = torch.where(small, SMALL, c)
    return torch.where(small, LARGEST - c.square() / 48, torch.tanh(0.5 * apart) / (2 * apart))


def log_2cosh_half(c: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """log 2cosh(½c) = ½|c| + log(1 + e^−|c|)."""
    size = c.abs()
    return 0.5 * size + torch.log1p(torch.exp(-size))


def mean_sigmoid(mean: Float[Tensor, "*N"], variance: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """∫ σ(f) N(f; mean, variance) df by Gauss–Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NUM_NODES)
    total, spread = torch.zeros_like(mean), variance.sqrt()
    for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True):
        total += (weight / math.sqrt(2 * math.pi)) * torch.sigmoid(mean + node * spread)
    return total
