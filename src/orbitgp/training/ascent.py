"""Log-odds of all data, from least squares towards the mode.

The mode has f = K a with a = ∇ log p(y | f), and the bound with the largest curvature that there
is, 1/σ², makes a step towards it of the same equations that codes have: the first step, from f = 0,
is least squares. On the way from there to the mode the probability of left-out labels rises a
little, if at all, and then falls: a mode rests on the few data near a boundary, least squares on
all of them (decision 16). So left-out labels say how far to go.
"""

import itertools
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.training.acceleration import quickened
from orbitgp.training.calibration import scores_of_best_factor
from orbitgp.training.equations import Equations
from orbitgp.values import Moments

MAX_ROUNDS = 60
PATIENCE = 2
"""Rounds without a gain after which no further ones are tried."""


def ascent(
    likelihood: LocalLikelihood,
    labels: Int[Tensor, "N"],
    equations: Equations,
    start: Float[Tensor, "N C"],
    length: float,
) -> Iterator[tuple[Float[Tensor, "N C"], Float[Tensor, "N C"]]]:
    """a and f = K a, from the start on, for ever.

    The slope of log p(y | f = K a) − ½ aᵀK a in f is ∇ log p − a, and log p bends by at most 1/σ²,
    so a step of (K + σ²I)⁻¹ σ² (∇ log p − a) climbs; P is smaller than K + σ²I by at most the
    factor ρ, which makes steps of P⁻¹ `length`, σ²/ρ, safe. Nesterov's way, begun anew where it
    would turn back.
    """
    a, f = start, equations.matrix @ start
    ahead, local, speed = a, f, 1.0
    while True:
        yield a, f
        touching = likelihood.best_local(Moments(local, local.square(), torch.zeros_like(local)))
        bound = likelihood.bound_at(labels, touching)
        slope = bound.linear - bound.precision * local - ahead
        before, a = (a, f), ahead + length * equations.precondition(slope)
        f = equations.matrix @ a
        step = f - before[1]
        speed, momentum = quickened(speed, turns_back=bool(((local - f) * step).sum() > 0))
        ahead, local = a + momentum * (a - before[0]), f + momentum * step


def likeliest_round(
    likelihood: LocalLikelihood,
    labels: Int[Tensor, "N"],
    climbs: Sequence[Iterator[tuple[Tensor, Tensor]]],
    parts: Sequence[Tensor],
) -> tuple[int, Float[Tensor, "L C"]]:
    """After how many rounds the labels of the parts are likeliest, and the f that say so.

    Each climb knows all data but its own part.
    """
    own = labels[torch.cat(list(parts))]
    best, found = (-float("inf"), 0), torch.empty(0)
    for number, states in enumerate(itertools.islice(zip(*climbs, strict=True), MAX_ROUNDS + 1)):
        f = torch.cat([state[1][rows] for state, rows in zip(states, parts, strict=True)])
        score = scores_of_best_factor(likelihood, f, own).mean().item()
        if score > best[0]:
            best, found = (score, number), f
        elif number - best[1] >= PATIENCE:
            break
    return best[1], found
