"""What a budget buys: exact inference or a bound, draws, inducing variables, a mean on all data."""

import math

import pytest

from orbitgp import Affine, Identity, Mirror, QuarterTurns
from orbitgp.fit.plan import (
    FEWEST_POINTS,
    MAX_PAIRS,
    Resources,
    exact_plan,
    inducing_plan,
    is_enumerated,
)

PLENTY = Resources(300.0, 1e11)
ORBITS = (Identity(), Affine(), Mirror())


def bound(orbit, num_data, resources=PLENTY, **options):
    options = {"num_resident": num_data, "num_features": 128, "num_inducing": None} | options
    return inducing_plan(orbit, num_data=num_data, resources=resources, **options)


@pytest.mark.parametrize("num_data", [100, 1000, 7000, 20_000])
def test_more_data_have_fewer_draws_and_predictions_stay_fast(num_data):
    plan = exact_plan(Affine(), num_data=num_data, num_features=128, resources=PLENTY)
    assert plan is not None
    assert plan.kind == "exact"
    assert num_data * plan.num_draws**2 <= MAX_PAIRS
    assert f"{num_data:,} inputs × {plan.num_draws} draws" in plan.describe(9.0)


def test_exact_inference_ends_with_time_or_memory():
    sizes = {"num_data": 20_000, "num_features": 128}
    assert exact_plan(Affine(), **sizes, resources=PLENTY) is not None
    assert exact_plan(Affine(), **sizes, resources=Resources(10.0, 1e11)) is None
    assert exact_plan(Affine(), **sizes, resources=Resources(300.0, 1e9)) is None


def test_small_orbits_are_enumerated():
    assert is_enumerated(QuarterTurns(), 10_000)
    assert not is_enumerated(QuarterTurns(), 10**8)
    assert not is_enumerated(Affine(), 10)


@pytest.mark.parametrize("num_data", [2000, 60_000, 10**6])
def test_all_orbits_have_as_many_variables(num_data):
    """So that their bounds can be compared."""
    plans = [bound(orbit, num_data) for orbit in ORBITS]
    assert len({plan.num_points for plan in plans}) == 1
    assert len({plan.full_mean for plan in plans}) == 1
    assert all(plan.kind == "bound" for plan in plans)


def test_more_time_buys_more_variables_and_a_mean_on_all_data():
    plans = [bound(Affine(), 60_000, Resources(seconds, 1e11)) for seconds in (1, 60, 900)]
    few, some, many = (plan.num_points for plan in plans)
    assert few == FEWEST_POINTS < some < many < 60_000
    assert [plan.full_mean for plan in plans] == [False, False, True]
    assert "mean on all data" in plans[-1].describe(9.0)
    assert not bound(Affine(), 60_000, Resources(900, 1e9)).full_mean  # half of K does not fit
    assert not bound(Affine(), 60_000, Resources(900, 1e11, 2)).full_mean


def test_variables_are_as_many_as_asked_for_and_as_there_are_data():
    assert bound(Affine(), 60_000, num_inducing=4000).num_points == 4000
    assert bound(Affine(), 300, num_inducing=4000).num_points == 300
    assert bound(Affine(), 300).num_points == 300
    assert bound(Affine(), 10**6, num_resident=50).num_points == 25
    assert math.isfinite(bound(Affine(), 10**9, num_resident=20_000).seconds)
