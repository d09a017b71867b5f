"""What a budget buys: inducing variables, and orbit points to each."""

import pytest
import torch

from orbitgp import Affine, Gaussian
from orbitgp.estimators.sizes import STAGE_ONE_POINTS, affordable_sizes
from orbitgp.estimators.task import Task
from orbitgp.training.starts import initial_model


@pytest.fixture
def sizes(generator):
    """M and J for so many images of 28×28."""
    likelihood = Gaussian(0.1)
    model = initial_model(
        Affine(-0.1, 0.1),
        likelihood,
        torch.rand(20, 28, 28, generator=generator),
        num_outputs=1,
        num_points=10,
        feature_map=torch.nn.Flatten(),
        variance=1.0,
        generator=generator,
    )

    def found(num_data, seconds, num_inducing=None):
        task = Task(likelihood, num_outputs=1, variance=1.0, max_ratio=100.0, largest=num_data)
        data = {"num_data": num_data, "num_resident": num_data, "num_processes": 1}
        asked = {"seconds": seconds, "num_inducing": num_inducing}
        return affordable_sizes(model, task, **data, **asked)[:2]

    return found


def test_few_variables_of_many_data_have_no_more_points_than_the_budget_buys(sizes):
    points = [sizes(60_000, seconds, STAGE_ONE_POINTS) for seconds in (5, 60, 6000)]
    assert [m for m, _ in points] == [STAGE_ONE_POINTS] * 3
    assert points[0][1] < points[1][1] < points[2][1] == 64
    assert sizes(60_000, 1e-3, 4000) == (4000, 1)


def test_no_fewer_variables_than_stage_one_had(sizes):
    assert sizes(10**7, 1e-3) == (STAGE_ONE_POINTS, 1)
    assert sizes(300, 60) == (300, 64)
    few, many = sizes(60_000, 10), sizes(60_000, 600)
    assert STAGE_ONE_POINTS < few[0] < many[0] <= 60_000
