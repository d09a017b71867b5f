"""How large a model a budget affords."""

import torch

from orbitgp.estimators.task import Task
from orbitgp.model import InvariantGP
from orbitgp.training.solving import affordable_points, default_memory
from orbitgp.training.subsets import MANY_DATA
from orbitgp.training.whole_mean import affordable_samples

STAGE_ONE_POINTS = 500
NUM_AVERAGED = (64, 32, 16, 8, 4, 2, 1)
MOST_AVERAGED = 16
"""Where kernels are slow, or data very few."""

USUAL_AVERAGED = 4
ENOUGH_POINTS = 2000
"""Rather fewer orbit points to an inducing variable than fewer variables than this."""

MEAN_SHARE = 0.6
"""Of the time budget, at most, for a mean with a variable for every datum."""

USUAL_AXES = 256
"""Features that a projection leaves of many, as a guess before anything is learned."""


def affordable_sizes(
    model: InvariantGP,
    task: Task,
    *,
    num_data: int,
    num_resident: int,
    num_processes: int,
    seconds: float,
    num_inducing: int | None,
) -> tuple[int, int, int]:
    """M, the inducing variables of stage two, and J, the points that each is an average of.

    More of J only where M has reached all data, less of it where M would be small. The third
    number is J of a mean with a variable for every datum, 0 where that is not affordable.
    `num_inducing` is the M that was asked for, if one was.
    """
    largest = min(task.largest, num_resident)
    images = model.posterior.points.dtype == torch.float32  # whose kernels are fast
    dense = images and num_data >= MANY_DATA
    most = min(model.orbit.size, NUM_AVERAGED[0] if dense else MOST_AVERAGED)
    averaged = [count for count in NUM_AVERAGED if count <= most]
    num_features = min(model.posterior.points.shape[1], USUAL_AXES)
    alone = num_processes == 1 and num_resident == num_data and num_inducing is None
    mean_samples, mean_seconds = 0, 0.0
    more = largest < num_data or task.final is not None  # log-odds take their f from it
    if task.mean_rounds and alone and images and more:
        mean_samples, mean_seconds = affordable_samples(
            num_data,
            num_features,
            orbit_size=model.orbit.size,
            seconds=MEAN_SHARE * seconds,
            memory=2 * default_memory(),
            num_rounds=task.mean_rounds,
        )
    affordable = {
        count: affordable_points(
            num_data,
            num_features,
            num_averaged=count,
            seconds=seconds - mean_seconds,
            memory=default_memory(num_processes),
            processes=num_processes,
            num_grams=task.num_grams,
        )
        for count in averaged
    }
    wanted = largest if num_inducing is None else min(num_inducing, num_resident)
    enough = [
        count
        for count, size in affordable.items()
        if size >= wanted or (count <= USUAL_AVERAGED and size >= ENOUGH_POINTS)
    ]
    count = enough[0] if enough else averaged[-1]
    if num_inducing is None:  # never fewer than stage one had, however many the data
        wanted = min(largest, max(affordable[count], STAGE_ONE_POINTS))
    return wanted, count, mean_samples
