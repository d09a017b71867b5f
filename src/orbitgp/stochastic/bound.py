"""The evidence lower bound, estimated without bias from orbit samples, in nats of all data."""

import math
from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.model import InvariantGP, Pairs, unbiased_pairs
from orbitgp.posterior.algebra import whiten_rows
from orbitgp.posterior.inducing import kl, moments
from orbitgp.stochastic.closed_form import accumulate, expected_log_likelihood
from orbitgp.stochastic.closed_form import statistics as batch_statistics
from orbitgp.values import (
    Elbo,
    OrbitCovariances,
    OrbitSample,
    QuadraticBound,
    SufficientStatistics,
)


def elbo(
    model: InvariantGP,
    x: Shaped[Tensor, "N *event"],
    y: Shaped[Tensor, "Y *targets"],
    *,
    num_data: int,
    num_samples: int | None,
    generator: torch.Generator | None,
    group_size: int = 1,
) -> Elbo:
    """Estimate the evidence lower bound of all data from a batch, without bias.

    The expectation over orbit samples and random batches is the bound. It is exact for all data
    and whole finite orbits, and differentiable in every parameter of the model.

    Parameters
    ----------
    model : InvariantGP
        The model.
    x : Tensor of shape (N, *event)
        Inputs.
    y : Tensor of shape (N,) or (N, C)
        Targets or labels.
    num_data : int
        Number of all data, of which the batch is a part.
    num_samples : int or None
        Orbit samples S of each input; None for all points of a finite orbit.
    generator : torch.Generator or None
        Source of the samples; None if there is nothing to draw.
    group_size : int, default=1
        Samples that are evenly spread together, which lowers the variance.

    Returns
    -------
    Elbo
        Its `value` is in nats.

    Raises
    ------
    InputError
        If inputs or targets cannot be used.

    References
    ----------
    van der Wilk et al. (2018), equation 12 and section 4.4.

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
    >>> sizes = {"num_data": 8, "num_samples": None, "generator": None}
    >>> bound = orbitgp.elbo(model, x, x[:, 0] ** 2, **sizes)
    >>> bool(bound.value < 0)
    True
    """
    check_num_data(num_data, x)
    pointwise = pointwise_bound(
        model, x, y, num_samples=num_samples, generator=generator, group_size=group_size
    )
    return Elbo(num_data * pointwise.mean(), kl(model.posterior.q))


def pointwise_bound(
    model: InvariantGP,
    x: Shaped[Tensor, "N *event"],
    y: Shaped[Tensor, "Y *targets"],
    *,
    num_samples: int | None,
    generator: torch.Generator | None,
    group_size: int = 1,
) -> Float[Tensor, "N"]:
    """E_q[log p(y_n | f)] or its quadratic bound, point by point: unbiased estimates."""
    check_batch(x, y)
    pairs = unbiased_pairs(group_size)
    sample = pairs.draw(model, x, num_samples, generator)
    return pointwise_bound_at(model, sample, x, y, pairs)


def pointwise_bound_at(
    model: InvariantGP,
    sample: OrbitSample,
    x: Shaped[Tensor, "N *event"],
    y: Shaped[Tensor, "N *targets"],
    pairs: Pairs,
) -> Float[Tensor, "N"]:
    """`pointwise_bound` from these points of the orbits of x."""
    covariances = model.covariances(sample, pairs)
    kuu = model.posterior.prior_covariance(model.kernel)
    whitened = whiten_rows(kuu, covariances.groups.flatten(0, 1))
    return _bound(model, x, y).expectation(moments(covariances, model.posterior.q, whitened))


def elbo_from_statistics(
    model: InvariantGP, statistics: SufficientStatistics, *, num_data: float
) -> Elbo:
    """Compute the bound from statistics, which may come from many batches or machines.

    Take these with `unbiased_pairs`, on draws that did not fit q(u). With `mean_pairs` it would be
    the bound of another model, whose orbits are the samples.

    Parameters
    ----------
    model : InvariantGP
        The model.
    statistics : SufficientStatistics
        Of all data, or of some.
    num_data : float
        Number of all data.

    Returns
    -------
    Elbo
        Its `value` is in nats.

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
    >>> options = {"num_samples": None, "generator": None, "pairs": orbitgp.unbiased_pairs(1)}
    >>> found = orbitgp.statistics(model, x, x[:, 0] ** 2, **options)
    >>> bool(orbitgp.elbo_from_statistics(model, found, num_data=8).value < 0)
    True
    """
    q, factor = model.posterior.q, model.posterior.prior_factor(model.kernel)
    whole = statistics.scaled_to(num_data)
    return Elbo(expected_log_likelihood(whole, q, factor), kl(q))


def statistics(
    model: InvariantGP,
    x: Shaped[Tensor, "N *event"],
    y: Shaped[Tensor, "Y *targets"],
    *,
    num_samples: int | None,
    generator: torch.Generator | None,
    pairs: Pairs,
) -> SufficientStatistics:
    """Compute what q(u) and the bound need to know of a batch.

    Parameters
    ----------
    model : InvariantGP
        The model.
    x : Tensor of shape (N, *event)
        Inputs.
    y : Tensor of shape (N,) or (N, C)
        Targets or labels.
    num_samples : int or None
        Orbit samples S of each input; None for all points of a finite orbit.
    generator : torch.Generator or None
        Source of the samples; None if there is nothing to draw.
    pairs : Pairs
        `mean_pairs` to solve for q(u), `unbiased_pairs(group_size)` for the bound.

    Returns
    -------
    SufficientStatistics
        Values that add.

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
    >>> options = {"num_samples": None, "generator": None, "pairs": orbitgp.mean_pairs}
    >>> orbitgp.statistics(model, x, x[:, 0] ** 2, **options).gram.shape
    torch.Size([1, 8, 8])
    """
    check_batch(x, y)
    sample = pairs.draw(model, x, num_samples, generator)
    return batch_statistics(model.covariances(sample, pairs), _bound(model, x, y))


@torch.no_grad()
def stream_statistics(
    model: InvariantGP,
    batches: Iterable[tuple[Tensor, Tensor]],
    *,
    num_samples: int | None,
    generator: torch.Generator | None,
    pairs: Pairs,
    memory: int = 2**25,
) -> SufficientStatistics:
    """Compute statistics of any number of batches, in memory that does not grow with them.

    Parameters
    ----------
    model : InvariantGP
        The model.
    batches : iterable of (x, y)
        Inputs and targets.
    num_samples : int or None
        Orbit samples S of each input; None for all points of a finite orbit.
    generator : torch.Generator or None
        Source of the samples; None if there is nothing to draw.
    pairs : Pairs
        `mean_pairs` to solve for q(u), `unbiased_pairs(group_size)` for the bound.
    memory : int, default=2**25
        Bytes that the covariances of a piece of a batch may fill.

    Returns
    -------
    SufficientStatistics
        The sum over all batches.

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
    >>> options = {"num_samples": None, "generator": None, "pairs": orbitgp.mean_pairs}
    >>> batches = [(part, part[:, 0] ** 2) for part in x.split(3)]
    >>> orbitgp.stream_statistics(model, batches, **options).num_data
    8.0
    """
    keyed = ((x, y, generator) for x, y in batches)
    return accumulate(
        stream_covariances(model, keyed, num_samples=num_samples, pairs=pairs, memory=memory)
    )


@torch.no_grad()
def stream_covariances(
    model: InvariantGP,
    batches: Iterable[tuple[Tensor, Tensor, torch.Generator | None]],
    *,
    num_samples: int | None,
    pairs: Pairs,
    memory: int = 2**25,
) -> Iterator[tuple[OrbitCovariances, QuadraticBound]]:
    """Covariances and bounds of batches (x, y, generator), in pieces of about `memory` bytes."""
    draws = {"num_samples": num_samples, "pairs": pairs, "memory": memory}
    for sample, x, y in stream_samples(model, batches, **draws):
        yield model.covariances(sample, pairs), _bound(model, x, y)


@torch.no_grad()
def stream_samples(
    model: InvariantGP,
    batches: Iterable[tuple[Tensor, Tensor, torch.Generator | None]],
    *,
    num_samples: int | None,
    pairs: Pairs,
    memory: int = 2**25,
) -> Iterator[tuple[OrbitSample, Tensor, Tensor]]:
    """The orbit samples of the pieces of `stream_covariances`, with their inputs and targets."""
    num_rows = model.orbit.size if num_samples is None else num_samples
    for batch_x, batch_y, generator in batches:
        check_batch(batch_x, batch_y)
        needed = 4 * num_rows * len(model.posterior.points) * len(batch_x)
        pieces = min(max(1, math.ceil(needed / memory)), max(1, len(batch_x)))
        for x, y in zip(batch_x.chunk(pieces), batch_y.chunk(pieces), strict=True):
            yield pairs.draw(model, x, num_samples, generator), x, y


def _bound(model: InvariantGP, x: Tensor, y: Tensor) -> QuadraticBound:
    """The likelihood's bound, if it speaks of as many outputs as q(u) does."""
    bound, num_outputs = model.likelihood.quadratic_bound(x, y), model.posterior.mean.shape[1]
    if bound.linear.shape[1] != num_outputs:
        raise InputError(
            f"the targets have {bound.linear.shape[1]} outputs, the posterior {num_outputs}; make "
            f"it with InducingPosterior(..., num_outputs={bound.linear.shape[1]})"
        )
    return bound


def check_num_data(num_data: int, x: Tensor) -> None:
    """A batch is part of all data."""
    if num_data < len(x):
        raise InputError(
            f"num_data counts all the data that a batch is drawn from; got {num_data} for a batch "
            f"of {len(x)}"
        )


def check_batch(x: Tensor, y: Tensor) -> None:
    """Inputs and targets that no bound can be made of are refused."""
    if len(x) != len(y):
        raise InputError(f"inputs and targets must pair up; got {len(x)} inputs, {len(y)} targets")
    # what has a finite sum is finite; the other way round, large numbers may overflow
    if y.is_floating_point() and not (y.sum().isfinite() or y.isfinite().all()):
        raise InputError("targets must be finite; got NaN or infinity among them")
