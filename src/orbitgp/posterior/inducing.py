"""q(u) on inducing points of g, and what it says of f at sampled orbits (vdW 2018, 4.3)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orbitgp.errors import InputError
from orbitgp.kernels import Kernel, covariance
from orbitgp.posterior.algebra import cholesky, solve_rows
from orbitgp.ustatistics import group_sums, pair_mean, pair_mean_of_products
from orbitgp.values import Moments, OrbitCovariances, OrbitSample, PairWeights, WhitenedGaussian


class InducingPosterior(nn.Module):
    """Inducing points Z in the domain of g, and q(u), u = g(Z), in whitened coordinates.

    Z lives where the base kernel does: behind the feature map. q(u) starts at the prior. A
    covariance shared by all outputs is what a precision shared by all outputs leads to.
    """

    def __init__(
        self,
        points: Float[Tensor, "M D"],
        num_outputs: int,
        *,
        shared_covariance: bool = True,
        jitter: float = 1e-6,
    ) -> None:
        super().__init__()
        if not torch.isfinite(points).all():
            raise InputError("inducing points must be finite; got NaN or infinity among them")
        num_points, num_scales = len(points), 1 if shared_covariance else num_outputs
        identity = torch.eye(num_points, dtype=torch.float64, device=points.device)
        self.points = nn.Parameter(points.detach().clone())
        self.mean = nn.Parameter(identity.new_zeros(num_points, num_outputs))
        self.scale = nn.Parameter(identity.repeat(num_scales, 1, 1))
        self.jitter = jitter

    @property
    def q(self) -> WhitenedGaussian:
        """q(v), u = L v, as a value."""
        return WhitenedGaussian(self.mean, self.scale.triu())

    def assign(self, q: WhitenedGaussian) -> None:
        """Take these parameters for q."""
        with torch.no_grad():
            self.mean.copy_(q.mean)
            self.scale.copy_(q.scale)

    def prior_factor(self, kernel: Kernel) -> Float[Tensor, "M M"]:
        """L Lᵀ = Kuu = k_g(Z, Z) + jitter · (mean variance) · I, in float64.

        The jitter is that of a u observed with a little noise, so the bound stays a bound.
        """
        points = self.points.double()
        kuu = covariance(kernel, points, points)
        jitter = self.jitter * kuu.diagonal().mean()
        return cholesky(kuu + jitter * torch.eye(len(kuu)).to(kuu), "Kuu")


def covariances(
    kernel: Kernel, sample: OrbitSample, points: Float[Tensor, "M D"], weights: PairWeights
) -> OrbitCovariances:
    """Covariances of g between Z and the orbit samples [N, S, D], and among the samples."""
    features = sample.points
    kuf = covariance(kernel, features.flatten(0, 1), points.to(features.dtype))
    groups = group_sums(kuf.unflatten(0, features.shape[:2]), weights)
    variance = pair_mean(covariance(kernel, features, features), weights)
    return OrbitCovariances(groups, variance, weights)


def moments(
    covariances: OrbitCovariances, q: WhitenedGaussian, prior_factor: Float[Tensor, "M M"]
) -> Moments:
    """μ, μ² and σ² of q(f(x_n)), each linear in pair means (vdW 2018, eqs. 14–18)."""
    weights, (num_inputs, num_groups, _) = covariances.weights, covariances.groups.shape
    # v_g = L⁻¹ k_g:   μ = v̄·m̃,   σ² = k_f − Î(v·v) + Î(Uᵀv · Uᵀv)
    whitened = solve_rows(prior_factor, covariances.groups.flatten(0, 1))
    means = (whitened @ q.mean).unflatten(0, (num_inputs, num_groups))
    explained = _pair_norm(whitened, num_groups, weights)
    retained = [_pair_norm(whitened @ scale, num_groups, weights) for scale in q.scale]
    return Moments(
        mean=means.sum(1) / (num_groups * weights.group_size),
        mean_square=pair_mean_of_products(means, weights),
        variance=(covariances.variance - explained)[:, None] + torch.stack(retained, 1),
    )


def _pair_norm(
    rows: Float[Tensor, "NB K"], num_groups: int, weights: PairWeights
) -> Float[Tensor, "N"]:
    """Î(h·h) for rows that hold the group sums of h."""
    return pair_mean_of_products(rows.unflatten(0, (-1, num_groups)), weights).sum(-1)


def kl(q: WhitenedGaussian) -> Float[Tensor, ""]:
    """KL[q(u) ‖ p(u)] over all outputs = ½ Σ_c (tr S̃ + m̃ᵀm̃ − M − log det S̃)."""
    num_points, num_outputs = q.mean.shape
    log_det = q.scale.diagonal(dim1=-2, dim2=-1).square().log().sum()
    covariance_part = q.scale.square().sum() - num_points * len(q.scale) - log_det
    return 0.5 * (num_outputs / len(q.scale) * covariance_part + q.mean.square().sum())
