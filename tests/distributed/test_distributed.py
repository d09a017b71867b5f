"""Several processes do what one does."""

import pytest
import torch

from orbitgp.distributed.current import current_group
from orbitgp.distributed.group import ALONE
from tests.distributed.kills import kill_test
from tests.distributed.ranks import NUM_DATA, fitted, of_ranks, results

TOLERANCE = {"statistics": 1e-10, "evidence": 1e-10, "fitted": 1e-4, "exact": 1e-4}
"""Relative, 1e-6 for all else; an estimator has its images in float32."""


def difference(found, expected):
    """Relative to the largest number of each tensor."""
    return ((found - expected).abs().max() / expected.abs().max().clamp(min=1e-300)).item()


def assert_same(ranks, alone):
    for found in ranks:
        for name, expected in alone.items():
            limit = TOLERANCE.get(name.split(".")[0], 1e-6)
            gap = difference(found[name], expected)
            assert gap <= limit, f"{name}: {gap:.1e} apart, {limit:.0e} allowed"
        # decisions are taken from sums, so processes never part
        assert all(torch.equal(found[name], ranks[0][name]) for name in alone)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("world_size", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:the run began with")
def test_several_processes_find_what_one_finds(tmp_path, world_size):
    alone = results(tmp_path)
    assert alone["statistics.mean.num_data"] == NUM_DATA
    ranks = of_ranks(world_size, tmp_path)
    assert_same(ranks, alone)
    gaps = {name: difference(ranks[0][name], alone[name]) for name in alone}
    print({name: f"{gap:.1e}" for name, gap in gaps.items()})
    assert any(gaps.values()), "nothing differs at all: the work was not shared"
    # what several processes began, one goes on with, from the checkpoint that they left
    folder = tmp_path / f"run-{world_size}"
    (folder / "model.safetensors").unlink()
    resumed = fitted(folder)
    assert '"the run goes on where it stood"' in (folder / "log.jsonl").read_text()
    for name, value in resumed.items():
        assert difference(value, alone[name]) <= TOLERANCE["fitted"]


def test_one_process_needs_no_group():
    assert current_group() is ALONE


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_killed_process_changes_nothing(tmp_path):
    runs = kill_test(3, tmp_path, seed=1)
    assert any(run["resumed"] for run in runs)
