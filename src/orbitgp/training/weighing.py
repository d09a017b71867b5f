"""The two parts of the bound of all data: what the mean of f earns, what its variance costs."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.model import InvariantGP, unbiased_pairs
from orbitgp.objective import stream_covariances
from orbitgp.posterior.algebra import solve_rows
from orbitgp.posterior.inducing import moments
from orbitgp.training.group import Group
from orbitgp.training.passes import (
    Chunk,
    Examples,
    Resident,
    check_coverage,
    chunk_generator,
    portion,
)
from orbitgp.ustatistics import pair_mean_of_products
from orbitgp.values import WhitenedGaussian

GROUP_SIZES = (2, 8)
"""Orbit samples of each input in each of two groups, in each of two independent estimates: at
least, and at most, where data are few and each counts for much."""

NUM_SAMPLES = 16_000
"""What the groups of all inputs should come to."""

SPREAD_SAMPLES = 8


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error."""

    value: float
    error: float


@torch.no_grad()
def earned_by_mean(
    model: InvariantGP,
    examples: Examples,
    q: WhitenedGaussian,
    prior_factor: Float[Tensor, "M M"],
    *,
    seeds: tuple[int, int],
    group: Group,
) -> Estimate:
    """Σ_n c_n + l_n·μ_n − ½ λ_n·μ_n², on draws with two seeds that tell the standard error.

    Var[(a + b)/2] = E[(a − b)²]/4, added up over independent inputs. It costs no M² for a datum.
    """
    alpha = torch.linalg.solve_triangular(prior_factor.mT, q.mean, upper=True)
    size = portion(NUM_SAMPLES, examples.num_data, GROUP_SIZES)
    whole = model.orbit.size <= 2 * size  # leaves nothing to repeat
    sums = torch.zeros(3, dtype=torch.float64)
    for chunk in examples.chunks(group.rank, group.size):
        first = _earned(model, chunk, alpha, size, seeds[0])
        second = first if whole else _earned(model, chunk, alpha, size, seeds[1])
        terms = ((first + second).sum() / 2, (first - second).square().sum(), len(first))
        sums += torch.tensor([float(term) for term in terms], dtype=torch.float64)
    group.add_(sums)
    check_coverage(sums[2].item(), examples.num_data)
    return Estimate(sums[0].item(), 0.5 * sums[1].sqrt().item())


@torch.no_grad()
def cost_of_variance(
    model: InvariantGP,
    some: Resident,
    q: WhitenedGaussian,
    prior_factor: Float[Tensor, "M M"],
    *,
    num_data: int,
    seed: int,
    group: Group,
) -> Estimate:
    """Σ_n ½ λ_n·σ_n² + C KL[q(f_n|u) ‖ p(f_n|u)] of all data, from some drawn at random."""
    weigh, costs = unbiased_pairs(SPREAD_SAMPLES // 2), []
    for chunk in some.chunks(group.rank, group.size):
        keyed = [(chunk.x, chunk.y, chunk_generator(seed, chunk.number))]
        draws = {"num_samples": SPREAD_SAMPLES, "weigh": weigh}
        for covariances, bound in stream_covariances(model, keyed, **draws):
            whitened = solve_rows(prior_factor, covariances.groups.flatten(0, 1))
            found = moments(covariances, q, whitened)
            num_outputs = bound.linear.shape[1]
            spread = (bound.precision.double() * found.variance).expand(-1, num_outputs)
            costs.append(0.5 * spread.sum(1) + num_outputs * found.divergence)
    values = torch.cat(costs) if costs else torch.zeros(0, dtype=torch.float64)
    sums = torch.stack([values.sum(), values.square().sum(), torch.tensor(float(len(values)))])
    group.add_(sums)
    total, squares, count = sums.tolist()
    check_coverage(count, some.num_data)
    mean = total / count
    variance = max(squares / count - mean**2, 0.0) * count / max(count - 1, 1)
    left_out = max(1 - count / num_data, 0.0)
    return Estimate(num_data * mean, num_data * math.sqrt(variance * left_out / count))


def _earned(
    model: InvariantGP, chunk: Chunk, alpha: Float[Tensor, "M C"], size: int, seed: int
) -> Float[Tensor, "N"]:
    keyed = [(chunk.x, chunk.y, chunk_generator(seed, chunk.number))]
    draws = {"num_samples": 2 * size, "weigh": unbiased_pairs(size)}
    values = []
    for covariances, bound in stream_covariances(model, keyed, **draws):
        means, weights = covariances.groups @ alpha, covariances.weights
        mean = means.sum(1) / (means.shape[1] * weights.group_size)
        square = pair_mean_of_products(means, weights)
        fit = (bound.linear * mean).sum(1) - 0.5 * (bound.precision * square).sum(1)
        values.append(bound.constant + fit)
    return torch.cat(values)
