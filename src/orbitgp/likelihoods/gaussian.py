"""Gaussian noise on real outputs, and on one-hot coded classes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.nn.functional import one_hot, softplus
from torch.special import log_ndtr

from orbitgp.errors import InputError
from orbitgp.filters import inverse_softplus, rows_of
from orbitgp.likelihoods.base import (
    MAX_ENTRIES,
    Likelihood,
    check_labels,
    check_num_classes,
)
from orbitgp.values import Prediction, QuadraticBound

NOISE_FLOOR = 1e-6
"""Smallest noise variance, so that a perfect fit does not divide by 0."""


NUM_NODES = 32
"""Of the quadrature for class probabilities."""


class Gaussian(Likelihood):
    """Gaussian noise, y = f + ε with ε ~ N(0, σ²) and a learned σ².

    The quadratic bound is exact: c = −½ log 2πσ² − y²/2σ², l = y/σ², λ = 1/σ².

    Parameters
    ----------
    noise : float or sequence of float, default=0.1
        σ²: one for all outputs, or one for each.

    Raises
    ------
    InputError
        If a variance is not positive.

    Examples
    --------
    >>> from orbitgp import Gaussian
    >>> round(Gaussian(noise=0.1).noise.item(), 6)
    0.1
    """

    def __init__(self, noise: float | Sequence[float] = 0.1) -> None:
        super().__init__()
        variances = torch.as_tensor(noise, dtype=torch.float64).reshape(-1)
        if not torch.isfinite(variances).all() or (variances <= NOISE_FLOOR).any():
            raise InputError(
                f"noise variances must be finite and above {NOISE_FLOOR}; got {variances.tolist()}"
            )
        self.raw_noise = nn.Parameter(inverse_softplus(variances - NOISE_FLOOR))

    @property
    def num_precisions(self) -> int:
        """As many as there are noise variances."""
        return len(self.raw_noise)

    @property
    def noise(self) -> Float[Tensor, "R"]:
        """σ², in float64."""
        return NOISE_FLOOR + softplus(self.raw_noise.double())

    def assign_noise(self, noise: Float[Tensor, "R"]) -> None:
        """Take these variances for σ²."""
        with torch.no_grad():
            self.raw_noise.copy_(inverse_softplus(noise.double() - NOISE_FLOOR))

    def quadratic_bound(
        self, x: Float[Tensor, "N *event"], y: Shaped[Tensor, "N *targets"]
    ) -> QuadraticBound:
        """Exact, for targets [N] or [N, C]."""
        del x
        if y.ndim not in (1, 2) or not y.is_floating_point():
            raise InputError(
                f"targets must be floating point [N] or [N, C]; got {y.dtype} {list(y.shape)}"
            )
        return self._bound(y.unsqueeze(1) if y.ndim == 1 else y)

    def _bound(self, targets: Float[Tensor, "N C"]) -> QuadraticBound:
        targets, noise = targets.double(), self.noise
        if len(noise) not in (1, targets.shape[1]):
            raise InputError(
                f"{len(noise)} noise variances for targets of {targets.shape[1]} outputs; "
                "give one for all outputs, or one for each"
            )
        log_density = -0.5 * (torch.log(2 * math.pi * noise) + targets.square() / noise)
        return QuadraticBound(
            constant=log_density.sum(1),
            linear=targets / noise,
            precision=(1 / noise).expand(len(targets), -1),
        )


class OneHotGaussian(Gaussian):
    """Classes 0 … C − 1 as one-hot targets with Gaussian noise.

    Residuals of one-hot targets are not Gaussian: most are small, a few are large. For class
    probabilities the variance is multiplied by `spread`, and `excess` is added to it; they are 1
    and 0 unless calibrated.

    Parameters
    ----------
    num_classes : int
        C, at least 2.
    noise : float, default=0.05
        σ².

    Raises
    ------
    InputError
        If there are fewer than 2 classes.

    References
    ----------
    van der Wilk et al. (2018), section 5.2.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import OneHotGaussian
    >>> OneHotGaussian(3).encode(torch.tensor([2, 0]))
    tensor([[0., 0., 1.],
            [1., 0., 0.]], dtype=torch.float64)
    """

    spread: Float[Tensor, ""]
    excess: Float[Tensor, ""]

    def __init__(self, num_classes: int, noise: float = 0.05) -> None:
        super().__init__(noise)
        check_num_classes(num_classes)
        self.num_classes = self.num_outputs = num_classes
        self.register_buffer("spread", torch.ones((), dtype=torch.float64))
        self.register_buffer("excess", torch.zeros((), dtype=torch.float64))

    def quadratic_bound(
        self, x: Float[Tensor, "N *event"], y: Shaped[Tensor, "N *targets"]
    ) -> QuadraticBound:
        """Exact, for integer labels [N]."""
        del x
        return self._bound(self.encode(y))

    def encode(self, labels: Shaped[Tensor, "N *targets"]) -> Float[Tensor, "N C"]:
        """e_y for each label."""
        return one_hot(check_labels(labels, self.num_classes), self.num_classes).double()

    @torch.no_grad()
    def class_probabilities(self, prediction: Prediction) -> Float[Tensor, "N C"]:
        """p(class k | data): how probable it is that a new code y has its largest entry at k.

        With y_c ~ N(μ_c, s_c²) independent, in one dimension by Gauss–Hermite quadrature,

            p(k) = ∫ N(t; 0, 1) Π_{c ≠ k} Φ((μ_k + s_k t − μ_c) / s_c) dt

        where s² = spread (v + σ²) + excess.
        """
        spread = (self.spread * (prediction.variance + self.noise) + self.excess).sqrt()
        rows = max(1, MAX_ENTRIES // (self.num_classes**2 * _nodes_at_once(self.num_classes)))
        pieces = zip(rows_of(prediction.mean, rows), rows_of(spread, rows), strict=True)
        return torch.cat([_largest_entry(mean, part) for mean, part in pieces])


def _nodes_at_once(num_classes: int) -> int:
    """Nodes of the quadrature, for a bounded number of entries [nodes, C, C]."""
    return min(NUM_NODES, max(1, MAX_ENTRIES // num_classes**2))


def _largest_entry(
    mean: Float[Tensor, "N C"], spread: Float[Tensor, "N C"]
) -> Float[Tensor, "N C"]:
    """p(argmax_c y_c = k) for independent y_c ~ N(mean_c, spread_c²)."""
    nodes, weights = (
        torch.from_numpy(part).to(mean).unsqueeze(1)
        for part in np.polynomial.hermite_e.hermegauss(NUM_NODES)
    )
    log_terms, size = [], _nodes_at_once(mean.shape[1])
    for node, weight in zip(nodes.split(size), weights.split(size), strict=True):
        value = mean.unsqueeze(1) + spread.unsqueeze(1) * node
        gaps = (value.unsqueeze(3) - mean[:, None, None]) / spread[:, None, None]
        below = log_ndtr(gaps)
        others = below.sum(3) - below.diagonal(dim1=2, dim2=3)
        log_terms.append(others + weight.log())
    # the quadrature of all classes sums to 1 up to its own error
    return torch.softmax(torch.cat(log_terms, 1).logsumexp(1), -1)


@dataclass(frozen=True)
class Scales:
    """The ratio r = v/σ² for a kernel as it is, the noise σ², and the evidence with them."""

    ratio: float
    noise: float
    evidence: float


def scales_at(quadratic: float, log_volume: float, shape: tuple[int, int], ratio: float) -> Scales:
    """Return the best σ² for one r, from tr YᵀA⁻¹Y and log |A| of A = r K + I and targets Y [N, C].

    log p(Y) = −½ N C log 2πσ² − tr YᵀA⁻¹Y / 2σ² − ½ C log |A|,   σ² = tr YᵀA⁻¹Y / NC.
    """
    size, num_outputs = shape
    count = size * num_outputs
    noise = max(quadratic / count, 2 * NOISE_FLOOR)
    fit = count * math.log(2 * math.pi * noise) + quadratic / noise
    return Scales(ratio, noise, -0.5 * (fit + num_outputs * log_volume))
