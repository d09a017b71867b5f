"""What a fit checks at its end: was anything learned, do intervals hold, what is identified."""

import math
import statistics

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.callbacks.base import Callback
from orbitgp.fit.learning import Learning
from orbitgp.fit.log_odds import bound_of_subset
from orbitgp.fit.solution import Solution
from orbitgp.hyperparameters.learn import lost_without
from orbitgp.hyperparameters.parameters import learned_ranges
from orbitgp.likelihoods.gaussian import NOISE_FLOOR, Gaussian
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.orbit_model import OrbitModel

NUM_EXAMINED = 500
"""Data whose evidence shows how much depends on the draws, and on each range."""

IDENTIFIED = 2.0
"""Nats that a range must be worth."""

MIN_COVERED, FEWEST_COVERED = 0.8, 20
"""The part of left-out targets that intervals of 95 % must hold; so few targets are not checked."""


MANY_COPIES = 0.1
"""The part of inputs that may be exact copies of others."""


def mark_identified(learning: Learning) -> None:
    """Mark the ranges whose evidence hardly changes when they are switched off."""
    if not learning.parameters.num_widths:
        return
    landscape = learning.landscape(NUM_EXAMINED, learning.plan.num_draws)
    worth = torch.from_numpy(lost_without(landscape, learning.z)) >= IDENTIFIED
    for part in learned_ranges(learning.problem.model.orbit):
        own, worth = worth.tensor_split([int(part.learned.sum())])
        found = torch.ones_like(part.learned)
        found[part.learned] = own.to(found.device)
        part.identified.copy_(found.any(0))


def spread_over_draws(learning: Learning, model: OrbitModel) -> float:
    """Return the standard deviation of the evidence over sets of draws; 0 for a whole orbit.

    The evidence is that of the likelihood of the fitted `model`.
    """
    sampling, num_draws = learning.sampling, learning.plan.num_draws
    if sampling.enumerated:
        return 0.0
    places = range(len(sampling.seeds))
    if isinstance(model.likelihood, LocalLikelihood):
        found = [bound_of_subset(model, sampling, NUM_EXAMINED, num_draws, n) for n in places]
    else:
        landscapes = (learning.landscape(NUM_EXAMINED, num_draws, place) for place in places)
        found = [landscape.at(learning.z).evidence for landscape in landscapes]
        learning.parameters.assign(learning.z)
    size = min(NUM_EXAMINED, len(sampling.order))
    return statistics.stdev(found) * learning.problem.examples.num_data / size


def evidence_of_a_constant(targets: Float[Tensor, "N C"], num_data: int) -> float:
    """log p(y) of the best constant with the noise that suits it: what a collapsed model has."""
    noise = (targets - targets.mean(0)).square().mean().clamp(min=NOISE_FLOOR).item()
    return -0.5 * num_data * targets.shape[1] * (math.log(2 * math.pi * noise) + 1)


def warn(learning: Learning, solution: Solution, error: float, callback: Callback) -> None:
    """Of copied inputs, and of what a Gaussian likelihood shows to have gone wrong."""
    likelihood, targets = solution.model.likelihood, learning.sampling.targets
    warn_of_copies(learning.problem.examples.x, callback)
    if isinstance(likelihood, Gaussian):
        num_data = learning.problem.examples.num_data
        warn_if_nothing_was_learned(targets, num_data, solution.evidence, error, callback)
    if type(likelihood) is Gaussian:
        warn_of_narrow_intervals(targets, solution, likelihood.noise.item(), callback)


def warn_of_copies(x: Float[Tensor, "N *event"], callback: Callback) -> None:
    """Each copy counts as evidence of its own, of which there is none."""
    rows = x.flatten(1).cpu().numpy()
    copies = len(rows) - len({row.tobytes() for row in rows})
    if copies > MANY_COPIES * len(rows):
        callback.warned(
            f"{copies:,} of {len(rows):,} inputs are exact copies of others, and count as "
            "independent evidence, which is then far too sure: leave them out, for example by "
            "numpy.unique"
        )


def warn_if_nothing_was_learned(
    targets: Float[Tensor, "N C"], num_data: int, evidence: float, error: float, callback: Callback
) -> None:
    """Where a constant explains the targets as well."""
    constant = evidence_of_a_constant(targets, num_data)
    if evidence + 2 * error <= constant + 1:
        callback.warned(
            "nothing was learned: compared with a constant, the evidence is "
            f"{evidence - constant:+.1f} nats; look for shuffled labels, inputs without "
            "information, too few data, a feature_map that does not show how they differ, or an "
            "orbit that is far too wide"
        )


def warn_of_narrow_intervals(
    targets: Float[Tensor, "N C"], solution: Solution, noise: float, callback: Callback
) -> None:
    """A noise that has collapsed shows in targets that are left out."""
    rows, left_out = solution.rows, solution.left_out
    error = (targets[rows] - left_out.mean).abs()
    covered = (error <= 2 * (left_out.variance + noise).sqrt()).double().mean().item()
    if covered < MIN_COVERED and len(rows) >= FEWEST_COVERED:
        callback.warned(
            f"intervals are too narrow: of the training targets, each predicted from all "
            f"others, {covered:.0%} lie within two standard deviations, where 95 % should; "
            f"the noise may have collapsed (its variance is {noise:.2g} of that of the "
            "targets): look for an orbit that is not an invariance, or repeated inputs"
        )
