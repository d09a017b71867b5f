"""InvariantGP: orbit, feature map, base kernel, posterior and likelihood in one model."""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from orbitgp.errors import InputError
from orbitgp.features import Projection
from orbitgp.kernels import (
    Kernel,
    average_covariances_with,
    average_variances,
    covariance_among,
)
from orbitgp.likelihoods.base import Likelihood
from orbitgp.orbit_model import OrbitModel, check_part
from orbitgp.orbits.base import Orbit
from orbitgp.posterior.algebra import solve_rows, square_root
from orbitgp.posterior.inducing import (
    InducingPosterior,
    average_covariance,
    averaged,
    covariances,
    sums_with_u,
)
from orbitgp.posterior.mean_basis import MeanBasis
from orbitgp.ustatistics import mean_weights, pair_weights
from orbitgp.values import OrbitCovariances, OrbitSample, PairWeights, Prediction, WhitenedGaussian

GROUPS = 4
"""Of samples, that estimate the error of a mean with a basis of its own."""


@dataclass(frozen=True)
class Pairs:
    """How orbit samples are drawn in groups, and how their pairs are weighted.

    With a group size, every pair mean is unbiased; without, all samples are one evenly spread
    group and all pairs have the same weight.
    """

    group_size: int | None

    def __call__(self, sample: OrbitSample) -> PairWeights:
        """The weights of these samples."""
        if self.group_size is None or sample.is_whole:
            return mean_weights(sample.num_samples)  # exact on a whole orbit, in one group
        return pair_weights(
            sample.num_samples, orbit_size=sample.orbit_size, group_size=self.group_size
        )

    def draw(
        self,
        model: "InvariantGP",
        x: Shaped[Tensor, "N *event"],
        num_samples: int | None,
        generator: torch.Generator | None,
    ) -> OrbitSample:
        """Samples φ(x_a) in groups that suit the weights."""
        group_size = self.group_size or num_samples or 1
        return model.sample_orbit(x, num_samples, generator=generator, group_size=group_size)


mean_pairs = Pairs(None)
"""Every pair alike: a little biased, positive semi-definite. For q(u) and for predictions."""


def unbiased_pairs(group_size: int) -> Pairs:
    """Weights that make every mean over pairs of orbit samples unbiased, for the bound.

    Parameters
    ----------
    group_size : int
        Samples that are evenly spread together; 1 for independent samples.

    Returns
    -------
    Pairs
        For `statistics` and `stream_statistics`.

    References
    ----------
    van der Wilk et al. (2018), equation 21.

    Examples
    --------
    >>> from orbitgp import unbiased_pairs
    >>> unbiased_pairs(group_size=4).group_size
    4
    """
    return Pairs(group_size)


class InvariantGP(OrbitModel):
    """Sparse variational Gaussian process with f(x) = E[g(φ(x_a))] and inducing variables of g.

    The inducing points live where the base kernel does: behind the feature map and, with a
    `projection`, on some axes of it. With a `mean_basis` the posterior is decoupled: its mean is
    that of the basis, its covariance that of q(u).

    Parameters
    ----------
    orbit : Orbit
        The distribution of x_a.
    kernel : gpytorch.kernels.Kernel
        The kernel of g.
    posterior : InducingPosterior
        Inducing points and q(u).
    likelihood : Likelihood
        p(y | f).
    feature_map : torch.nn.Module, optional
        φ; inputs are flattened if there is none.
    projection : Projection, optional
        Principal axes of the features.
    mean_basis : MeanBasis, optional
        A mean with a variable for every datum.

    Raises
    ------
    InputError
        If a part is of the wrong kind.

    References
    ----------
    van der Wilk et al. (2018), section 4.

    Examples
    --------
    >>> import torch
    >>> import orbitgp
    >>> x = torch.linspace(-1, 1, 8)[:, None]
    >>> model = orbitgp.InvariantGP(
    ...     orbit=orbitgp.SignFlips(0),
    ...     kernel=orbitgp.RBF(),
    ...     posterior=orbitgp.InducingPosterior(x, num_outputs=1),
    ...     likelihood=orbitgp.Gaussian(noise=0.01),
    ... )
    >>> y = torch.cos(x[:, 0])
    >>> whole = {"num_samples": None, "generator": None, "pairs": orbitgp.mean_pairs}
    >>> covariance = model.posterior.prior_covariance(model.kernel).detach()
    >>> found = orbitgp.statistics(model, x, y, **whole)
    >>> model.posterior.assign(orbitgp.solve(found, covariance))
    >>> there, mirrored = model.predict(torch.tensor([[0.5], [-0.5]])).mean
    >>> bool(torch.isclose(there, mirrored))
    True
    """

    def __init__(
        self,
        *,
        orbit: Orbit,
        kernel: Kernel,
        posterior: InducingPosterior,
        likelihood: Likelihood,
        feature_map: nn.Module | None = None,
        projection: Projection | None = None,
        mean_basis: MeanBasis | None = None,
    ) -> None:
        check_part(posterior, InducingPosterior)
        super().__init__(
            orbit=orbit,
            kernel=kernel,
            likelihood=likelihood,
            feature_map=feature_map,
            projection=projection,
        )
        self.posterior = posterior
        self.mean_basis = mean_basis

    def covariances(self, sample: OrbitSample, pairs: Pairs) -> OrbitCovariances:
        """Covariances of g on sampled orbits with u and among themselves."""
        return covariances(self.kernel, sample, self.posterior.points, pairs(sample))

    @torch.no_grad()
    def predict(
        self,
        x: Shaped[Tensor, "N *event"],
        *,
        num_samples: int | None = None,
        generator: torch.Generator | None = None,
        batch_size: int = 256,
    ) -> Prediction:
        """Mean and variance of f at each input, with the Monte-Carlo error of both.

        From S samples of each orbit, or exactly from a whole finite orbit if `num_samples` is None.
        Both errors shrink as 1/√S, the excess of the variance as 1/S: take 32 samples or more.
        """
        return self.predict_from(
            self.sample_orbit(batch, num_samples, generator=generator)
            for batch in x.split(batch_size)
        )

    @torch.no_grad()
    def predict_from(self, samples: Iterable[OrbitSample]) -> Prediction:
        """`predict`, from orbit samples φ(x_a) that were drawn elsewhere, a batch at a time."""
        return Prediction.concatenated(list(map(self.predictor(), samples)))

    @torch.no_grad()
    def predictor(self) -> Callable[[OrbitSample], Prediction]:
        """`predict_from` for one sample; what depends on the model alone is computed once."""
        q, factor = self.posterior.q, self.posterior.prior_factor(self.kernel)
        alpha = torch.linalg.solve_triangular(factor.mT, q.mean, upper=True)
        whole = functools.cache(functools.partial(self._predictor_of_whole, q, factor, alpha))

        @torch.no_grad()
        def predict(sample: OrbitSample) -> Prediction:
            if sample.is_whole:
                return whole(sample.points.dtype)(sample.points)
            return self._predict(sample, q, factor, alpha)

        return predict

    def _predict(
        self,
        sample: OrbitSample,
        q: WhitenedGaussian,
        factor: Float[Tensor, "M M"],
        alpha: Float[Tensor, "M C"],
    ) -> Prediction:
        # g, averaged over the group b of samples, has mean k_b·α and, with the average of all,
        # covariance h_b = mean k_g(x_s, x_t) − k_b·A k̄,  A = L⁻ᵀ (I − S̃) L⁻¹; means over b are f's
        basis = self.mean_basis
        size = 1 if basis is None else _group_size(sample.num_samples)
        kuf = sums_with_u(self.kernel, sample, self.posterior.points, size) / size
        kff = covariance_among(self.kernel, sample.points, sample.points.dtype).double().mean(2)
        whitened = solve_rows(factor, kuf.mean(1))
        remaining = torch.stack([whitened - (whitened @ u) @ u.mT for u in q.scale], 1)
        rows = remaining.flatten(0, 1)
        weights = torch.linalg.solve_triangular(factor, rows, upper=False, left=False)
        weights = weights.unflatten(0, remaining.shape[:2])
        values = kuf @ alpha if basis is None else basis.means(self.kernel, sample, size)
        shares = kff.unflatten(1, (-1, size)).mean(2, keepdim=True) - kuf @ weights.mT
        mean, mean_error = _mean_with_error(values, sample)
        variance, half_error = _mean_with_error(shares, sample)
        # ≥ 0 but for rounding: the variance of an average of g under q
        return Prediction(
            mean=mean,
            variance=variance.clamp(min=0).expand_as(mean),
            mean_error=mean_error,
            variance_error=(2 * half_error).expand_as(mean),
        )

    def _predictor_of_whole(
        self,
        q: WhitenedGaussian,
        factor: Float[Tensor, "M M"],
        alpha: Float[Tensor, "M C"],
        dtype: torch.dtype,
    ) -> Callable[[Float[Tensor, "N S D"]], Prediction]:
        """From all points of the orbits, which leave no Monte-Carlo error."""
        kernel, basis = self.kernel, self.mean_basis
        with_u = average_covariances_with(kernel, averaged(self.posterior.points).to(dtype))
        mean_of = None if basis is None else basis.mean_with(kernel)

        def predict(points: Float[Tensor, "N S D"]) -> Prediction:
            kuf = with_u(points)
            whitened = solve_rows(factor, kuf)
            left = average_variances(kernel, points) - whitened.square().sum(1)
            retained = torch.stack([(whitened @ u).square().sum(1) for u in q.scale], 1)
            mean = kuf @ alpha if mean_of is None else mean_of(points)
            variance = (left.unsqueeze(1) + retained).clamp(min=0)  # ≥ 0 but for rounding
            return Prediction.exact(mean, variance.expand_as(mean))

        return predict

    @torch.no_grad()
    def predict_f_samples(
        self,
        x: Shaped[Tensor, "N *event"],
        num_draws: int,
        *,
        generator: torch.Generator,
        num_samples: int | None = None,
    ) -> Float[Tensor, "K N C"]:
        """Joint draws of f at all inputs from the posterior; (N S)² base covariances."""
        sample, q = self.sample_orbit(x, num_samples, generator=generator), self.posterior.q
        factor = self.posterior.prior_factor(self.kernel)
        averages = self.covariances(sample, mean_pairs).mean
        whitened = solve_rows(factor, averages)
        prior = average_covariance(self.kernel, sample.points) - whitened @ whitened.mT
        roots = [square_root(prior + (whitened @ u) @ (whitened @ u).mT) for u in q.scale]
        shape = (num_draws, len(x), q.mean.shape[1])
        noise = torch.randn(shape, generator=generator, device=generator.device).to(prior)
        root = torch.stack(roots).expand(shape[2], -1, -1)
        mean = whitened @ q.mean
        if self.mean_basis is not None:
            mean = self.mean_basis.means(self.kernel, sample, sample.num_samples)[:, 0]
        return mean + torch.einsum("cnm,kmc->knc", root, noise)


def _mean_with_error(
    values: Float[Tensor, "N B K"], sample: OrbitSample
) -> tuple[Float[Tensor, "N K"], Float[Tensor, "N K"]]:
    """Mean over groups of the samples and its standard error, √((1 − S/P) s²/B)."""
    if sample.is_whole:
        return values.mean(1), torch.zeros_like(values[:, 0])
    if sample.num_samples < 2:
        raise InputError("one orbit sample has no Monte-Carlo error; draw at least 2")
    fraction = 1 - sample.num_samples / sample.orbit_size
    return values.mean(1), values.std(1) * math.sqrt(fraction / values.shape[1])


def _group_size(num_samples: int) -> int:
    """Samples to a group, for few groups, from which an error can still be estimated."""
    return num_samples // GROUPS if num_samples % GROUPS == 0 else 1
