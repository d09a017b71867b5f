"""The small frozen values that orbits, likelihoods and posteriors hand to each other.

Symbols and shapes are in docs/notation.md. Nothing here draws, trains or decides.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from orbitgp.errors import InputError


@dataclass(frozen=True)
class OrbitSample:
    """S points drawn from the orbit of each input.

    Parameters
    ----------
    points : Tensor of shape (N, S, *event)
        The points.
    orbit_size : float, default=inf
        P, the number of points of a finite orbit, of which S different ones were drawn in random
        order; ∞ where the points are independent draws from p(x_a | x).

    Examples
    --------
    >>> import torch
    >>> from orbitgp import Mirror
    >>> sample = Mirror().enumerate(torch.rand(5, 4))
    >>> sample.num_samples, sample.is_whole
    (2, True)
    """

    points: Float[Tensor, "N S *event"]
    orbit_size: float = math.inf

    @property
    def num_samples(self) -> int:
        """S, the number of points drawn for each input."""
        return self.points.shape[1]

    @property
    def is_whole(self) -> bool:
        """Whether every point of a finite orbit is here, so that means over it are exact."""
        return self.num_samples == self.orbit_size

    def map(self, function: Callable[[Tensor], Tensor]) -> "OrbitSample":
        """φ applied to each point: [N, S, *event] → [N, S, *features]."""
        mapped = function(self.points.flatten(0, 1))
        return replace(self, points=mapped.unflatten(0, self.points.shape[:2]))


@dataclass(frozen=True)
class PairWeights:
    """Weights w_st of Î = Σ_st w_st r(x_s, x_t), for samples that come in groups of `group_size`.

    w_st = `within` where s and t share a group (s = t among them), `across` elsewhere.
    """

    across: float
    within: float
    group_size: int


@dataclass(frozen=True)
class OrbitCovariances:
    """What u = g(Z) sees of a batch: covariances of g on the orbit samples, summed by group.

    `groups[n, g]` = Σ_{s in group g} k_g(Z, x_s);  `weights` says how pairs of groups combine;
    `variance[n]` = Î(k_g), with E[variance[n]] = k_f(x_n, x_n) if the weights are unbiased.
    """

    groups: Float[Tensor, "N B M"]
    variance: Float[Tensor, "N"]
    weights: PairWeights

    @property
    def mean(self) -> Float[Tensor, "N M"]:
        """k̄ = mean_s k_g(Z, x_s), with E[k̄] = k_uf."""
        num_samples = self.groups.shape[1] * self.weights.group_size
        return self.groups.sum(1) / num_samples

    @staticmethod
    def concatenated(parts: "Sequence[OrbitCovariances]") -> "OrbitCovariances":
        """Those of several batches with the same weights."""
        if len(parts) == 1:
            return parts[0]
        fields = ("groups", "variance")
        tensors = {name: torch.cat([getattr(part, name) for part in parts]) for name in fields}
        return OrbitCovariances(**tensors, weights=parts[0].weights)


def _zero() -> Float[Tensor, ""]:
    return torch.zeros((), dtype=torch.float64)


def _one() -> Float[Tensor, ""]:
    return torch.ones((), dtype=torch.float64)


@dataclass(frozen=True)
class WhitenedGaussian:
    """q(u) in whitened coordinates, u = L v, Kuu = L Lᵀ, q(v_c) = N(mean_c, U Uᵀ); and q(f|u).

    One upper triangular U for all C outputs (R = 1) or one for each (R = C). Given u, f at the
    data keeps the mean of the prior and a part ν of its variance, 0 < ν (Titsias 2025): ν = 1 is
    q(f|u) = p(f|u), the bound of vdW 2018.
    """

    mean: Float[Tensor, "M C"]
    scale: Float[Tensor, "R M M"]
    narrowing: Float[Tensor, ""] = field(default_factory=_one)


@dataclass(frozen=True)
class Moments:
    """Estimates of μ, μ² and σ² of q(f(x_n)): unbiased if the pair weights were, and never clamped.

    E[mean] = μ,  E[mean_square] = μ² (it is not mean²),  E[variance] = σ² (it may be negative).
    `divergence` is what q(f_nc | u) is from p(f_nc | u), in nats: 0 unless it was narrowed.
    """

    mean: Float[Tensor, "N C"]
    mean_square: Float[Tensor, "N C"]
    variance: Float[Tensor, "N R"]
    divergence: Float[Tensor, ""] = field(default_factory=_zero)


@dataclass(frozen=True)
class QuadraticBound:
    """log p(y_n | f) ≥ constant + Σ_c linear_c f_c − ½ Σ_c precision_c f_c².

    One precision for all outputs (R = 1) or one for each (R = C).
    """

    constant: Float[Tensor, "N"]
    linear: Float[Tensor, "N C"]
    precision: Float[Tensor, "N R"]

    @staticmethod
    def concatenated(parts: "Sequence[QuadraticBound]") -> "QuadraticBound":
        """Those of several batches."""
        fields = ("constant", "linear", "precision")
        return QuadraticBound(*(torch.cat([getattr(p, name) for p in parts]) for name in fields))

    @property
    def targets(self) -> Float[Tensor, "N C"]:
        """l/λ, where the bound is highest, in float64: what a Gaussian likelihood was given."""
        return (self.linear / self.precision).double()

    def expectation(self, moments: Moments) -> Float[Tensor, "N"]:
        """E_q of the bound, point by point; linear in the moments, so unbiased if they are."""
        # c + l·μ − ½ λ·(μ² + σ²) − C KL[q(f_nc|u) ‖ p(f_nc|u)]
        second_moment = moments.mean_square + moments.variance
        fit = self.constant + (self.linear * moments.mean).sum(-1)
        divergence = self.linear.shape[1] * moments.divergence
        return fit - 0.5 * (self.precision * second_moment).sum(-1) - divergence


_TENSORS = ("constant", "linear", "gram", "variance")


@dataclass(frozen=True)
class SufficientStatistics:
    """All that q(u) and the bound need to know of a batch: values that add.

    Adding them is minibatching, streaming and map-reduce at once; their size does not depend on
    the number of inputs. One gram for all outputs (R = 1) or one for each (R = C).

    Parameters
    ----------
    constant : Tensor of shape ()
        Σ c_n.
    linear : Tensor of shape (M, C)
        Σ k̄_n l_nᵀ.
    gram : Tensor of shape (R, M, M)
        Σ λ_n Î_n(k kᵀ).
    variance : Tensor of shape (R,)
        Σ λ_n Î_n(k_g).
    num_data : float
        n.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import SufficientStatistics
    >>> one = SufficientStatistics(
    ...     constant=torch.zeros(()),
    ...     linear=torch.ones(2, 1),
    ...     gram=torch.ones(1, 2, 2),
    ...     variance=torch.ones(1),
    ...     num_data=1.0,
    ... )
    >>> (one + one).num_data
    2.0
    """

    constant: Float[Tensor, ""]
    linear: Float[Tensor, "M C"]
    gram: Float[Tensor, "R M M"]
    variance: Float[Tensor, "R"]
    num_data: float

    def __add__(self, other: "SufficientStatistics") -> "SufficientStatistics":
        if self.linear.shape != other.linear.shape or self.gram.shape != other.gram.shape:
            raise InputError(
                f"statistics of different models cannot be added: linear {list(self.linear.shape)} "
                f"and {list(other.linear.shape)}, gram {list(self.gram.shape)} and "
                f"{list(other.gram.shape)}; compute both with the same inducing points and bound"
            )
        sums = {name: getattr(self, name) + getattr(other, name) for name in _TENSORS}
        return SufficientStatistics(**sums, num_data=self.num_data + other.num_data)

    def __radd__(self, zero: int) -> "SufficientStatistics":
        """0 + statistics, so that `sum(...)` works."""
        return self if zero == 0 else NotImplemented

    def __mul__(self, factor: float) -> "SufficientStatistics":
        scaled = {name: getattr(self, name) * factor for name in _TENSORS}
        return SufficientStatistics(**scaled, num_data=self.num_data * factor)

    def scaled_to(self, num_data: float) -> "SufficientStatistics":
        """The estimate of the statistics of `num_data` inputs from these: times N/n."""
        return self * (num_data / self.num_data)

    def to_bytes(self) -> bytes:
        """The statistics as safetensors: plain numbers, which any machine can read."""
        tensors = {name: getattr(self, name).detach().contiguous() for name in _TENSORS}
        return save(tensors | {"num_data": torch.tensor(self.num_data, dtype=torch.float64)})

    @staticmethod
    def from_bytes(data: bytes) -> "SufficientStatistics":
        """Read what `to_bytes` wrote; nothing in the data is ever run."""
        try:
            tensors = load(data)
            num_data = tensors.pop("num_data").item()
            return SufficientStatistics(**tensors, num_data=num_data)
        except (SafetensorError, KeyError, TypeError) as error:
            raise InputError(
                f"these {len(data)} bytes are not the statistics of a batch ({error}); "
                "pass what `SufficientStatistics.to_bytes` returned"
            ) from error


@dataclass(frozen=True)
class Elbo:
    """The evidence lower bound of the whole data set, in nats; an estimate if draws made it.

    Parameters
    ----------
    expected_log_likelihood : Tensor of shape ()
        E_q[log p(y | f)], or a bound on it.
    kl : Tensor of shape ()
        KL[q(u) ‖ p(u)].

    Examples
    --------
    >>> import torch
    >>> from orbitgp import Elbo
    >>> Elbo(torch.tensor(-3.0), torch.tensor(1.0)).value
    tensor(-4.)
    """

    expected_log_likelihood: Float[Tensor, ""]
    kl: Float[Tensor, ""]

    @property
    def value(self) -> Float[Tensor, ""]:
        """E_q[log p(y | f)] − KL[q(u) ‖ p(u)]."""
        return self.expected_log_likelihood - self.kl


@dataclass(frozen=True)
class Prediction:
    """The posterior of f at N inputs, and how far S orbit samples leave each moment uncertain.

    Parameters
    ----------
    mean : Tensor of shape (N, C)
        Of f.
    variance : Tensor of shape (N, C)
        Of the average of g over the points drawn: never negative, and above the variance of f by
        O(1/S).
    mean_error, variance_error : Tensor of shape (N, C)
        Monte-Carlo standard errors; 0 on a whole orbit.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import Prediction
    >>> Prediction.exact(torch.zeros(2, 1), torch.ones(2, 1)).mean_error.sum()
    tensor(0.)
    """

    mean: Float[Tensor, "N C"]
    variance: Float[Tensor, "N C"]
    mean_error: Float[Tensor, "N C"]
    variance_error: Float[Tensor, "N C"]

    @staticmethod
    def exact(mean: Float[Tensor, "N C"], variance: Float[Tensor, "N C"]) -> "Prediction":
        """One that no sampling leaves uncertain."""
        none = torch.zeros_like(mean)
        return Prediction(mean, variance, none, none)

    @staticmethod
    def concatenated(parts: "Sequence[Prediction]") -> "Prediction":
        """Those of several batches."""
        fields = ("mean", "variance", "mean_error", "variance_error")
        return Prediction(*(torch.cat([getattr(p, name) for p in parts]) for name in fields))
