"""q(u) on inducing points of g, and what it says of f at sampled orbits (vdW 2018, 4.3 and 4.4)."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from orbitgp.errors import InputError
from orbitgp.kernels import (
    Kernel,
    average_covariances_among,
    covariance,
    covariance_among,
)
from orbitgp.posterior.algebra import add_jitter, cholesky, excess_of_scale
from orbitgp.ustatistics import group_sums, pair_mean, pair_mean_of_inner, pair_mean_of_products
from orbitgp.values import Moments, OrbitCovariances, OrbitSample, PairWeights, WhitenedGaussian

BLOCK = 2**23
"""Base covariances held at once while averages are computed."""


class InducingPosterior(nn.Module):
    """Inducing variables u of g at points Z, and q(u) in whitened coordinates.

    With Z [M, D], u_m = g(z_m). With Z [M, J, D], u_m = mean_j g(z_mj), an average over a piece of
    an orbit, which says more of an invariant f than one value of g does, for J times the kernel
    evaluations and the same algebra. q(u) starts at the prior.

    Parameters
    ----------
    points : Tensor of shape (M, D) or (M, J, D)
        Z, where the base kernel lives: behind the feature map.
    num_outputs : int
        C.
    shared_covariance : bool, default=True
        Whether all outputs share one covariance, as they do if they share their precisions.
    jitter : float, default=1e-6
        Added to Kuu, relative to its mean diagonal.

    Raises
    ------
    InputError
        If the points cannot be used.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import InducingPosterior
    >>> InducingPosterior(torch.rand(10, 3), num_outputs=2).q.mean.shape
    torch.Size([10, 2])
    """

    def __init__(
        self,
        points: Shaped[Tensor, "M *features"],
        num_outputs: int,
        *,
        shared_covariance: bool = True,
        jitter: float = 1e-6,
    ) -> None:
        super().__init__()
        finite = points.is_floating_point() and torch.isfinite(points).all()
        if points.ndim not in (2, 3) or points.numel() == 0 or not finite:
            raise InputError(
                "inducing points must be finite, floating point features [M, D] or [M, J, D]; got "
                f"{points.dtype} {list(points.shape)}: for images, pass x.float().flatten(1)"
            )
        if num_outputs < 1 or not jitter >= 0:
            raise InputError(
                f"a posterior needs num_outputs ≥ 1 and jitter ≥ 0; got {num_outputs}, {jitter}"
            )
        num_points, num_scales = len(points), 1 if shared_covariance else num_outputs
        identity = torch.eye(num_points, dtype=torch.float64, device=points.device)
        self.points = nn.Parameter(points.detach().clone())
        self.mean = nn.Parameter(identity.new_zeros(num_points, num_outputs))
        self.scale = nn.Parameter(identity.repeat(num_scales, 1, 1))
        self.log_narrowing = nn.Parameter(identity.new_zeros(()))
        self.jitter = jitter

    @property
    def num_outputs(self) -> int:
        """C."""
        return self.mean.shape[1]

    @property
    def q(self) -> WhitenedGaussian:
        """q(v), u = L v, as a value."""
        scale, narrowing = self.scale.double().triu(), self.log_narrowing.double().exp()
        return WhitenedGaussian(self.mean.double(), scale, narrowing)

    def assign(self, q: WhitenedGaussian) -> None:
        """Take these parameters for q."""
        if q.mean.shape != self.mean.shape:
            raise InputError(
                f"q(u) has a mean of shape {list(q.mean.shape)}, this posterior one of "
                f"{list(self.mean.shape)}"
            )
        if len(q.scale) > len(self.scale):
            raise InputError(
                f"q(u) has {len(q.scale)} covariances, one for each output, and this posterior "
                "keeps one for all; make it with InducingPosterior(..., shared_covariance=False)"
            )
        with torch.no_grad():
            self.mean.copy_(q.mean)
            self.scale.copy_(q.scale)
            self.log_narrowing.copy_(q.narrowing.log())

    def prior_covariance(self, kernel: Kernel) -> Float[Tensor, "M M"]:
        """Kuu = Cov(u, u) + jitter · (mean variance) · I, in float64.

        The jitter is that of a u observed with a little noise, so the bound stays a bound.
        """
        if self.points.ndim == 2:
            among = covariance_among(kernel, self.points, torch.float64)
            return add_jitter(among, self.jitter)
        if not torch.is_grad_enabled():
            return add_jitter(average_covariances_among(kernel, self.points), self.jitter)
        return add_jitter(average_covariance(kernel, self.points), self.jitter)

    def prior_factor(self, kernel: Kernel) -> Float[Tensor, "M M"]:
        """L with L Lᵀ = Kuu."""
        return cholesky(self.prior_covariance(kernel), "Kuu")


def average_covariance(kernel: Kernel, points: Float[Tensor, "N S D"]) -> Float[Tensor, "N N"]:
    """mean_st k_g(x_ns, x_mt), in float64: the covariance of averages of g over S points each."""
    num_inputs, num_samples, _ = points.shape
    blocks = points.split(max(1, BLOCK // (num_inputs * num_samples)))
    rows = [covariance_with_u(kernel, block.flatten(0, 1), points) for block in blocks]
    return torch.cat(rows).double().unflatten(0, (num_inputs, num_samples)).mean(1)


def covariance_with_u(
    kernel: Kernel, features: Float[Tensor, "K D"], points: Float[Tensor, "M *J D"]
) -> Float[Tensor, "K M"]:
    """Cov(g(x), u_m) = mean_j k_g(x, z_mj), in the dtype of the features."""
    points = points.to(features.dtype)
    if points.ndim == 2:
        return covariance(kernel, features, points)
    total = torch.zeros(len(features), len(points)).to(features)
    for place in range(points.shape[1]):
        total += covariance(kernel, features, points[:, place])
    return total.div_(points.shape[1])


def cross_covariance(
    kernel: Kernel, sample: OrbitSample, points: Float[Tensor, "M *J D"]
) -> Float[Tensor, "N S M"]:
    """Cov(g(x_s), u) for each orbit sample, in the dtype of the samples."""
    _check_features(sample, points)
    features = sample.points
    rows = covariance_with_u(kernel, features.flatten(0, 1), points)
    return rows.unflatten(0, features.shape[:2])


def averaged(points: Float[Tensor, "M *J D"]) -> Float[Tensor, "M J D"]:
    """Z with J = 1 where each variable is a value of g."""
    return points if points.ndim == 3 else points.unsqueeze(1)


def _check_features(sample: OrbitSample, points: Tensor) -> None:
    features = sample.points
    if features.ndim != 3 or features.shape[2] != points.shape[-1]:
        raise InputError(
            f"features have shape {list(features.shape[2:])}, inducing points {points.shape[-1]} "
            "coordinates; these live behind the feature map: choose them among its outputs"
        )


def covariances(
    kernel: Kernel, sample: OrbitSample, points: Float[Tensor, "M *J D"], weights: PairWeights
) -> OrbitCovariances:
    """Covariances of g between Z and the orbit samples, and among the samples of each input."""
    groups = sums_with_u(kernel, sample, points, weights.group_size)
    among = covariance_among(kernel, sample.points, sample.points.dtype)
    variance = pair_mean(among, weights)
    return OrbitCovariances(groups, variance, weights)


def sums_with_u(
    kernel: Kernel, sample: OrbitSample, points: Float[Tensor, "M *J D"], group_size: int
) -> Float[Tensor, "N B M"]:
    """Σ_{s in group} Cov(g(x_s), u), in float64."""
    return group_sums(cross_covariance(kernel, sample, points), group_size)


def moments(
    covariances: OrbitCovariances, q: WhitenedGaussian, whitened: Float[Tensor, "NB M"]
) -> Moments:
    """μ, μ² and σ² of q(f(x_n)), each linear in pair means (vdW 2018, eqs. 16–21).

    `whitened` holds the rows of `covariances.groups`, times L⁻ᵀ.
    """
    weights, (num_inputs, num_groups, _) = covariances.weights, covariances.groups.shape
    # v_g = L⁻¹ k_g:   μ = v̄·m̃,   σ² = ν (k_f − Î(v·v)) + Î(Uᵀv · Uᵀv)
    by_group = (num_inputs, num_groups)
    means = (whitened @ q.mean).unflatten(0, by_group)
    explained = pair_mean_of_inner(whitened.unflatten(0, by_group), weights)
    spreads = [(whitened @ scale).unflatten(0, by_group) for scale in q.scale]
    retained = [pair_mean_of_inner(spread, weights) for spread in spreads]
    return Moments(
        mean=means.sum(1) / (num_groups * weights.group_size),
        mean_square=pair_mean_of_products(means, weights),
        variance=(q.narrowing * (covariances.variance - explained))[:, None]
        + torch.stack(retained, 1),
        divergence=conditional_kl(q.narrowing),
    )


def conditional_kl(narrowing: Float[Tensor, "*R"]) -> Float[Tensor, "*R"]:
    """KL[q(f|u) ‖ p(f|u)] for each datum and output, ½ (ν − 1 − log ν)."""
    return 0.5 * (narrowing - 1 - narrowing.log())


def kl(q: WhitenedGaussian) -> Float[Tensor, ""]:
    """KL[q(u) ‖ p(u)] over all outputs = ½ Σ_c (tr S̃ + m̃ᵀm̃ − M − log det S̃)."""
    share = q.mean.shape[1] / len(q.scale)  # outputs for each covariance
    return 0.5 * (share * excess_of_scale(q.scale) + q.mean.square().sum())
