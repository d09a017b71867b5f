"""Engines that map and reduce give the statistics of one process."""

import pytest

from orbitgp import InputError, mean_pairs, solve
from orbitgp.distributed.group import ALONE
from orbitgp.inference.passes import Resident
from orbitgp.recipes import chunk_statistics, pass_statistics
from tests.conftest import assert_close
from tests.distributed.ranks import NUM_DATA, model_and_data

DRAWS = {"num_samples": 4, "pairs": mean_pairs, "seed": 7}


def problem():
    model, x, y, _ = model_and_data()
    return model, Resident(x, y)


def assert_same_model(model, total, expected):
    for part in ("constant", "linear", "gram", "variance"):
        assert_close(getattr(total, part), getattr(expected, part))
    assert total.num_data == expected.num_data == NUM_DATA
    prior = model.posterior.prior_covariance(model.kernel)
    assert_close(solve(total, prior).mean, solve(expected, prior).mean, tolerance=1e-9)


@pytest.mark.parametrize("num_shards", [1, 2, 3, 7])
def test_shards_add_up_in_any_order(num_shards):
    """Seven shards are more than there are chunks: some are empty."""
    model, examples = problem()
    expected = pass_statistics(model, examples, group=ALONE, **DRAWS)
    parts = [
        chunk_statistics(model, examples, shard, num_shards, **DRAWS)
        for shard in reversed(range(num_shards))
    ]
    assert_same_model(model, sum(parts), expected)


@pytest.mark.slow
def test_ray_must_be_there_and_started():
    pytest.importorskip("ray")
    from orbitgp.recipes import ray_statistics

    model, examples = problem()
    with pytest.raises(InputError, match=r"ray\.init"):
        ray_statistics(model, examples, num_shards=2, **DRAWS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ray's own
@pytest.mark.parametrize("num_shards", [1, 3, 8])
def test_ray_gives_the_same_model(num_shards):
    ray = pytest.importorskip("ray")
    from orbitgp.recipes import ray_statistics

    model, examples = problem()
    expected = pass_statistics(model, examples, group=ALONE, **DRAWS)
    ray.init(num_cpus=2, include_dashboard=False, ignore_reinit_error=True)
    try:
        total = ray_statistics(model, examples, num_shards=num_shards, **DRAWS)
    finally:
        ray.shutdown()
    assert_same_model(model, total, expected)
