"""How long a fit will take on this machine, for people who wait: nothing depends on it."""

import math
import time

from orbitgp.devices import rates_of
from orbitgp.fit.budget import (
    Resources,
    bound_seconds,
    factor_seconds,
    full_mean_seconds,
    kernel_seconds,
)
from orbitgp.fit.checks import NUM_EXAMINED
from orbitgp.fit.learning import NUM_CHECKED, Learning

SCANNED, SEARCHED, EXAMINED = 24, 9, 5
"""Evaluations of a scan, of the search over the width, and of the spread over draws."""

PER_STEP, GRADIENT = 1.4, 3.7
"""Evaluations in a step of L-BFGS, and the cost of one with its gradient."""

FACTORED = 7
"""Factorisations of an evaluation, which looks for the ratio of variance to noise."""

PROBED = 8
"""Draws of each input whose time is taken."""


def expected_seconds(learning: Learning) -> float:
    """Return the time of all phases by their sizes; that of orbit and features is measured."""
    probe = learning.landscape(NUM_CHECKED, PROBED)
    start = time.perf_counter()
    points = probe.subset.points(learning.problem.model)
    point = (time.perf_counter() - start) / (points.shape[0] * points.shape[1])
    group = learning.problem.group
    speed = Resources(math.inf, math.inf, rates_of(points.device), points.shape[2], group.size)

    def evaluation(num_data: int, num_draws: int) -> float:
        size = min(num_data, len(learning.problem.examples.x))
        kernel = kernel_seconds(size, num_draws, speed)
        return size * num_draws * point + kernel + FACTORED * factor_seconds(size, speed)

    settings, plan = learning.settings, learning.plan
    climb_draws, scan_draws, widths = settings.climb_draws, settings.scan_draws, 0
    if plan.enumerated:
        climb_draws = scan_draws = plan.num_draws
    else:
        widths = learning.parameters.num_widths
    if plan.kind == "exact":
        solved = 2 * evaluation(plan.num_data, plan.num_draws)
    else:
        solved = bound_seconds(plan, speed) + plan.full_mean * full_mean_seconds(plan, speed)
    climbed = PER_STEP * settings.max_steps * GRADIENT
    return (
        SCANNED * evaluation(settings.scan_size, scan_draws)
        + climbed * evaluation(settings.climb_size, climb_draws)
        + 4 * widths * evaluation(settings.scan_size, scan_draws // 2)
        + SEARCHED * evaluation(settings.search_size, plan.num_draws)
        + (widths + EXAMINED) * evaluation(NUM_EXAMINED, plan.num_draws)
        + solved
    )
