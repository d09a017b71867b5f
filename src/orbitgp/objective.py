"""The evidence lower bound, estimated without bias from orbit samples, in nats of all data."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.model import InvariantGP, Weigh, mean_pairs, unbiased_pairs
from orbitgp.posterior.closed_form import expected_log_likelihood
from orbitgp.posterior.closed_form import statistics as batch_statistics
from orbitgp.posterior.inducing import kl, moments
from orbitgp.values import Elbo, SufficientStatistics


def elbo(
    model: InvariantGP,
    x: Float[Tensor, "N *event"],
    y: Shaped[Tensor, "Y *targets"],
    *,
    num_data: int,
    num_samples: int | None,
    generator: torch.Generator | None,
    group_size: int = 1,
) -> Elbo:
    """The bound from a batch: E[estimate] = ELBO over fresh orbit draws and random batches.

    Exact for a whole batch of whole finite orbits (`num_samples=None`). Differentiable in every
    parameter of the model.
    """
    _check_batch(x, y)
    sample = model.sample_orbit(x, num_samples, generator)
    covariances = model.covariances(sample, unbiased_pairs(group_size))
    q, kuu = model.posterior.q, model.posterior.prior_covariance(model.kernel)
    bound = model.likelihood.quadratic_bound(x, y)
    pointwise = bound.expectation(moments(covariances, q, kuu))
    return Elbo(num_data * pointwise.mean(), kl(q))


def elbo_from_statistics(
    model: InvariantGP, statistics: SufficientStatistics, *, num_data: float
) -> Elbo:
    """The bound from statistics, which may come from many batches or machines."""
    q, factor = model.posterior.q, model.posterior.prior_factor(model.kernel)
    whole = statistics.scaled_to(num_data)
    return Elbo(expected_log_likelihood(whole, q, factor), kl(q))


def statistics(
    model: InvariantGP,
    x: Float[Tensor, "N *event"],
    y: Shaped[Tensor, "Y *targets"],
    *,
    num_samples: int | None,
    generator: torch.Generator | None,
    weigh: Weigh = mean_pairs,
) -> SufficientStatistics:
    """(c, P, Q, κ, n) of a batch; `mean_pairs` serve q(u), `unbiased_pairs` the bound."""
    _check_batch(x, y)
    sample = model.sample_orbit(x, num_samples, generator)
    bound = model.likelihood.quadratic_bound(x, y)
    return batch_statistics(model.covariances(sample, weigh), bound)


def _check_batch(x: Tensor, y: Tensor) -> None:
    if len(x) != len(y) or len(x) == 0:
        raise InputError(f"inputs and targets must pair up; got {len(x)} inputs, {len(y)} targets")
