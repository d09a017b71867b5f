"""The exact posterior of f, given all data and S transformations that all inputs share.

With the same S draws for every input, f is an ordinary Gaussian process whose covariance

    K_nm = mean_st k_g(φ(T_s x_n), φ(T_t x_m))

is positive definite. With A = K + σ²I = L Lᵀ, α = A⁻¹Y (Rasmussen and Williams 2006, 2.2, 5.4.2):

    log p(Y) = −½ tr Yᵀα − C Σ log L_nn − ½ N C log 2π
    f(x) | Y  ~  N(k·α, k_f(x, x) − |L⁻¹k|²)
    f(x_n) | all but y_n  ~  N(y_n − α_n / (A⁻¹)_nn, 1 / (A⁻¹)_nn − σ²)
    f(x)   | all but y_n  ~  N(k·α − c α_n / (A⁻¹)_nn, k_f(x, x) − |L⁻¹k|² + c² / (A⁻¹)_nn)

with c = k·A⁻¹e_n.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from orbitgp.errors import InputError
from orbitgp.gaussians import slices
from orbitgp.kernels import (
    Kernel,
    average_covariances,
    average_covariances_among,
    average_covariances_with,
    average_variances,
)
from orbitgp.posterior.algebra import cholesky
from orbitgp.values import OrbitSample, Prediction

LEFT_OUT_ROWS = 1024
"""Columns of A⁻¹ that are computed at a time."""


@dataclass(frozen=True)
class ExactSolution:
    """log p(Y) in nats, and the two matrices that predictions are made of."""

    evidence: float
    weights: Float[Tensor, "N C"]
    factor: Float[Tensor, "N N"]


@torch.no_grad()
def solve_exactly(
    covariance: Float[Tensor, "N N"], targets: Float[Tensor, "N C"], noise: float
) -> ExactSolution:
    """Condition f ~ N(0, K) on targets with noise of this variance; K is used up."""
    covariance.diagonal().add_(noise)
    factor = cholesky(covariance, "the covariance of the data")
    weights = torch.cholesky_solve(targets, factor)
    size, num_outputs = targets.shape
    fit = -0.5 * (weights * targets).sum().item()
    volume = factor.diagonal().log().sum().item()
    constant = 0.5 * size * math.log(2 * math.pi)
    return ExactSolution(fit - num_outputs * (volume + constant), weights, factor)


@torch.no_grad()
def leave_one_out(
    solution: ExactSolution,
    targets: Float[Tensor, "N C"],
    noise: float,
    rows: Int[Tensor, "R"],
) -> Prediction:
    """f at each of these data, given all others."""
    inverse = []
    for chosen in slices(len(rows), LEFT_OUT_ROWS):
        own = _whitened_units(solution.factor, rows[chosen])
        inverse.append(own.square().sum(0))  # (A⁻¹)_nn = |L⁻¹e_n|²
    diagonal = torch.cat(inverse).unsqueeze(1)
    mean = targets[rows] - solution.weights[rows] / diagonal
    return Prediction.exact(mean, (1 / diagonal - noise).clamp(min=0).expand_as(mean))


class ExactPosterior(nn.Module):
    """f given all data: orbit points behind the feature map, α, L, and the draws they share.

    Predictions take the same draws as the data had, and are those of the model whose evidence was
    computed. `noise` [1, S, K] is what the orbit's draws come from; None where a finite orbit is
    enumerated. L is kept in the dtype of the points, its lower triangle row by row.
    """

    points: Float[Tensor, "N S D"]
    weights: Float[Tensor, "N C"]
    packed: Float[Tensor, "T"]
    noise: Float[Tensor, "1 S K"] | None

    def __init__(
        self,
        points: Float[Tensor, "N S D"],
        weights: Float[Tensor, "N C"],
        packed: Float[Tensor, "T"],
        noise: Float[Tensor, "1 S K"] | None,
    ) -> None:
        super().__init__()
        size = len(points)
        if len(weights) != size or len(packed) != size * (size + 1) // 2:
            raise InputError(
                f"{size} data need {size} weights and {size * (size + 1) // 2} entries of a "
                f"triangle; got {len(weights)} and {len(packed)}"
            )
        self.register_buffer("points", points)
        self.register_buffer("weights", weights)
        self.register_buffer("packed", packed)
        self.register_buffer("noise", noise)
        self._factor: Tensor | None = None

    @staticmethod
    def of(
        points: Float[Tensor, "N S D"],
        solution: ExactSolution,
        noise: Float[Tensor, "1 S K"] | None,
    ) -> "ExactPosterior":
        """What a solution says, in the dtype of the points."""
        rows = [row[: place + 1].to(points.dtype) for place, row in enumerate(solution.factor)]
        return ExactPosterior(points, solution.weights, torch.cat(rows), noise)

    @property
    def num_outputs(self) -> int:
        """C."""
        return self.weights.shape[1]

    @property
    def factor(self) -> Float[Tensor, "N N"]:
        """L, unpacked when it is first needed."""
        if self._factor is None or self._factor.device != self.packed.device:
            size = len(self.points)
            factor = self.packed.new_zeros(size, size)
            for place, row in enumerate(self.packed.split(list(range(1, size + 1)))):
                factor[place, : place + 1] = row
            self._factor = factor
        return self._factor

    def predictor(self, kernel: Kernel) -> Callable[[OrbitSample], Prediction]:
        """The posterior of f at inputs whose orbit points were drawn with the shared noise.

        What depends on the data alone is computed once, here.
        """
        covariances_with, factor = average_covariances_with(kernel, self.points), self.factor

        @torch.no_grad()
        def predict(sample: OrbitSample) -> Prediction:
            covariances = covariances_with(sample.points)
            mean = covariances @ self.weights
            explained = _whitened(factor, covariances).square().sum(0, dtype=torch.float64)
            variance = (average_variances(kernel, sample.points) - explained).clamp(min=0)
            return Prediction.exact(mean, variance.unsqueeze(1).expand_as(mean))

        return predict

    def predictor_without(
        self, kernel: Kernel, rows: Int[Tensor, "R"]
    ) -> Callable[[OrbitSample], Prediction]:
        """The same for R inputs, each given all data but one: row `rows[r]` of them for input r."""
        covariances_with, factor = average_covariances_with(kernel, self.points), self.factor
        own = _whitened_units(factor, rows).double()
        inverse = own.square().sum(0)

        @torch.no_grad()
        def predict(sample: OrbitSample) -> Prediction:
            covariances = covariances_with(sample.points)
            whitened = _whitened(factor, covariances).double()
            across = (own * whitened).sum(0)
            mean = covariances @ self.weights - (across / inverse).unsqueeze(1) * self.weights[rows]
            explained = whitened.square().sum(0) - across.square() / inverse
            variance = (average_variances(kernel, sample.points) - explained).clamp(min=0)
            return Prediction.exact(mean, variance.unsqueeze(1).expand_as(mean))

        return predict

    @torch.no_grad()
    def joint(
        self, kernel: Kernel, sample: OrbitSample
    ) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N N"]]:
        """Mean of f, and its covariance between all inputs, the same for every output."""
        mean, covariance, _ = self.joint_with_prior(kernel, sample)
        return mean, covariance

    @torch.no_grad()
    def joint_with_prior(
        self, kernel: Kernel, sample: OrbitSample
    ) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N N"], Float[Tensor, "N N"]]:
        """The same, and the covariance before any data were seen."""
        covariances = average_covariances(kernel, sample.points, self.points)
        whitened = _whitened(self.factor, covariances).double()
        prior = average_covariances_among(kernel, sample.points)
        return covariances @ self.weights, prior - whitened.mT @ whitened, prior

    def __getstate__(self) -> dict[str, Any]:
        """Without the unpacked L, which would double the size."""
        return {**self.__dict__, "_factor": None}


def _whitened(factor: Float[Tensor, "N N"], covariances: Float[Tensor, "K N"]) -> Tensor:
    """L⁻¹k for each row [N, K], in the dtype of L."""
    return torch.linalg.solve_triangular(factor, covariances.to(factor.dtype).mT, upper=False)


def _whitened_units(factor: Float[Tensor, "N N"], rows: Int[Tensor, "R"]) -> Float[Tensor, "N R"]:
    """L⁻¹e_n for each of these rows."""
    columns = factor.new_zeros(len(factor), len(rows))
    columns[rows, torch.arange(len(rows), device=factor.device)] = 1
    return torch.linalg.solve_triangular(factor, columns, upper=False)
