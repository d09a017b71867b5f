"""The mean of f with every datum for a variable of its own.

Given S orbit points of each datum, averages of g over them have covariance K [N, N], and the mean
of a process that was fitted to all of them is k̄(x)·a with (K + σ²I) a = y (`equations.py`).

Where f is a log-odds, `ascent.py` climbs from such an a towards the mode, as far as left-out labels
gain by it. What either says of data that it was not given tells how sure to be (`calibration.py`).
"""

import copy
import itertools
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.kernels import RBF
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP
from orbitgp.posterior.mean_basis import MeanBasis
from orbitgp.processor import FLOAT64_FLOPS, covariance_seconds
from orbitgp.training.ascent import ascent, likeliest_round
from orbitgp.training.equations import (
    BLOCK,
    Equations,
    averages,
    conjugate_gradients,
    half_covariance,
)
from orbitgp.training.passes import CHUNK, Resident
from orbitgp.training.starts import orbit_points

NUM_SAMPLES = (64, 32, 16, 8, 4)
"""Orbit points of each datum, as many of these as time allows."""

NUM_COLUMNS = 3000
USUAL_ROUNDS, ODDS_ROUNDS = 20, 30
"""Products with K that codes and log-odds take."""

LEFT_OUT = (1000, 2000)
"""Data that are left out, at least and at most; never more than a quarter of all at once."""

GIVEN_UP = 0.5
"""If more of |y| remains than this, the mean of q(u) is better than such an answer."""

ROUND = 2.6e-9
"""Seconds of one thread for an entry of K in a round."""


def affordable_samples(
    num_data: int,
    num_features: int,
    *,
    orbit_size: float,
    seconds: float,
    memory: float,
    num_rounds: int = USUAL_ROUNDS,
) -> tuple[int, float]:
    """The most orbit points of each datum that fit into the budget, and their seconds.

    None if not even the fewest fit, or if half of K is too large.
    """
    threads, entries = torch.get_num_threads(), num_data**2 / 2
    columns = min(NUM_COLUMNS, num_data)
    for wanted in NUM_SAMPLES:
        count = int(min(wanted, orbit_size))
        kernel = count**2 * covariance_seconds(num_features)
        solve = num_data * columns**2 / FLOAT64_FLOPS
        total = (entries * (kernel + num_rounds * ROUND) + solve) / threads
        if total <= seconds and 4 * entries <= memory:
            return count, total
    return 0, 0.0


@dataclass(frozen=True)
class WholeMean:
    """A mean on all data, and what it would be at some of them had it not been given these."""

    basis: MeanBasis
    left_out: Float[Tensor, "H C"]


@torch.no_grad()
def mean_of_all(
    model: InvariantGP,
    examples: Resident,
    order: Int[Tensor, "N"],
    *,
    num_samples: int,
    generator: torch.Generator,
    variance: float | None = None,
) -> WholeMean | None:
    """a, the orbit points that it belongs to, and the mean at `some_left_out`; none if no a is.

    The first data of this order make the preconditioner. `variance` takes the place of the
    kernel's.
    """
    x, y, likelihood = examples.x, examples.y, model.likelihood
    draws = {"num_averaged": num_samples, "generator": generator}
    points = torch.cat([orbit_points(model, part, **draws) for part in x.split(CHUNK)])
    local = isinstance(likelihood, LocalLikelihood)
    bound = likelihood.flattest_bound(y) if local else likelihood.quadratic_bound(x, y)
    noise = 1 / (likelihood.max_precision if local else bound.precision.mean().item())
    kernel, wider = copy.deepcopy(model.kernel), 1.0
    if variance is not None:
        assert isinstance(kernel, RBF)
        wider = variance / kernel.variance.item()
        kernel.variance = variance
    matrix, first = half_covariance(kernel, points), order[:NUM_COLUMNS]
    columns = [averages(kernel, part, points[first]) for part in points.split(BLOCK)]
    equations = Equations.of(matrix, torch.cat(columns), first, noise)
    parts = parts_left_out(order)
    fewer = [equations.without(rows) for rows in parts]
    targets = noise * bound.linear
    found = [conjugate_gradients(some, targets)[0] for some in fewer]
    weights, remains = conjugate_gradients(equations, targets, found[-1])
    if remains > GIVEN_UP:
        return None
    if local:
        labels = likelihood.labels_of(y)
        length = noise / equations.largest_ratio(weights)
        starts = zip(fewer, found, strict=True)
        climbs = [ascent(likelihood, labels, some, a, length) for some, a in starts]
        number, said = likeliest_round(likelihood, labels, climbs, parts)
        climb = ascent(likelihood, labels, equations, weights, length)
        weights, _ = next(itertools.islice(climb, number, None))
    else:
        said = torch.cat([(matrix @ a)[rows] for a, rows in zip(found, parts, strict=True)])
    return WholeMean(MeanBasis(points, wider * weights), said)


def some_left_out(order: Int[Tensor, "N"]) -> Int[Tensor, "H"]:
    """The last data of this order: those without an inducing variable are like those to come."""
    least, most = LEFT_OUT
    return order.flip(0)[: min(max(len(order) // 4, least), most)]


def parts_left_out(order: Int[Tensor, "N"]) -> list[Int[Tensor, "H"]]:
    """The same in as few parts as leave three quarters of all data to learn from."""
    return list(some_left_out(order).split(max(1, len(order) // 4)))
