"""Sizes follow from data and settings: exact or a bound, draws, inducing variables, the mean."""

import math
from dataclasses import replace

import pytest
import torch

from orbitgp import (
    Affine,
    Identity,
    InputError,
    InvariantGPClassifier,
    Mirror,
    QuarterTurns,
    TrainingSettings,
    compose,
)
from orbitgp.devices import Rates, rates_of
from orbitgp.fit.budget import Resources, affordable, bound_seconds
from orbitgp.fit.plan import (
    FEWEST_POINTS,
    MAX_PAIRS,
    Plan,
    Work,
    check_memory,
    is_enumerated,
    plan_of,
)
from tests.conftest import QUICK
from tests.files.crash import bars

SETTINGS = TrainingSettings()
RATES = Rates(140e9, 100e9, 1e9)
"""Of two threads."""

PLENTY = Resources(300.0, 1e12, RATES, 128)
ORBITS = (Identity(), Affine(), Mirror(), compose(Mirror(), Affine()))


def work(num_data, orbit=None, **options):
    return Work(orbit or Affine(), num_data, **{"num_resident": num_data} | options)


def within(num_data, resources, settings=SETTINGS, **options):
    task = work(num_data, **options)
    return plan_of(task, affordable(task, settings, resources))


@pytest.mark.parametrize("num_data", [100, 1000, 7000, 20_000])
def test_more_data_have_fewer_draws_and_predictions_stay_fast(num_data):
    plan = plan_of(work(num_data), SETTINGS)
    assert plan.kind == "exact"
    assert num_data * plan.num_draws**2 <= MAX_PAIRS
    assert f"{num_data:,} inputs × {plan.num_draws} draws" in plan.describe(9.0)


def test_exact_inference_ends_at_a_number_of_data():
    assert plan_of(work(20_000), SETTINGS).kind == "exact"
    assert plan_of(work(20_001), SETTINGS).kind == "bound"
    assert plan_of(work(20_001), TrainingSettings(max_exact=30_000)).kind == "exact"
    assert plan_of(work(100), TrainingSettings(max_exact=99)).kind == "bound"
    assert plan_of(work(100, can_be_exact=False), SETTINGS).kind == "bound"


@pytest.mark.parametrize(
    ("num_data", "num_points", "full_mean"),
    [(20_001, 5000, True), (50_000, 3741, True), (50_001, 3741, False), (10**6, 836, False)],
)
def test_more_data_have_fewer_variables(num_data, num_points, full_mean):
    plan = plan_of(work(num_data), SETTINGS)
    assert (plan.num_points, plan.full_mean) == (num_points, full_mean)


def test_there_are_some_variables_whatever_the_number_of_data():
    plan = plan_of(work(10**9, num_resident=20_000, can_be_exact=False), SETTINGS)
    assert plan.num_points == FEWEST_POINTS
    assert math.isfinite(bound_seconds(plan, PLENTY))


def test_small_orbits_are_enumerated():
    assert is_enumerated(QuarterTurns(), 10_000)
    assert not is_enumerated(QuarterTurns(), 10**8)
    assert not is_enumerated(Affine(), 10)


@pytest.mark.parametrize("num_data", [30_000, 60_000, 10**6])
@pytest.mark.parametrize("resources", [None, PLENTY])
def test_all_orbits_have_as_many_variables(num_data, resources):
    """So that their bounds can be compared."""
    tasks = [work(num_data, orbit) for orbit in ORBITS]
    settings = [affordable(task, SETTINGS, resources) if resources else SETTINGS for task in tasks]
    plans = [plan_of(*pair) for pair in zip(tasks, settings, strict=True)]
    assert len({(plan.num_points, plan.full_mean) for plan in plans}) == 1


@pytest.mark.parametrize("orbit", [*ORBITS, QuarterTurns()])
@pytest.mark.parametrize("num_data", [50, 3000, 20_001, 100_000])
def test_recorded_sizes_give_the_same_plan(orbit, num_data):
    task = work(num_data, orbit)
    for settings in (SETTINGS, affordable(task, SETTINGS, replace(PLENTY, seconds=3.0))):
        plan = plan_of(task, settings)
        assert plan_of(task, TrainingSettings(**plan.sizes)) == plan


def test_a_budget_ends_exact_inference_with_time_or_memory():
    assert within(22_000, replace(PLENTY, memory=1e12)).kind == "exact"
    assert within(22_000, replace(PLENTY, seconds=10.0)).kind == "bound"
    assert within(22_000, replace(PLENTY, memory=1e9)).kind == "bound"


def test_more_time_buys_more_variables_and_a_mean_on_all_data():
    plans = [within(60_000, replace(PLENTY, seconds=seconds)) for seconds in (1, 60, 600)]
    few, some, many = (plan.num_points for plan in plans)
    assert few == FEWEST_POINTS < some < many < 60_000
    assert [plan.full_mean for plan in plans] == [False, False, True]
    assert "mean on all data" in plans[-1].describe(9.0)
    assert not within(60_000, Resources(600, 1e9, RATES, 128)).full_mean  # half of K does not fit
    assert not within(60_000, Resources(600, 1e12, RATES, 128, 2)).full_mean


def test_variables_are_as_many_as_asked_for_and_as_there_are_data():
    given = TrainingSettings(num_inducing=4000)
    assert plan_of(work(60_000), given).num_points == 4000
    assert plan_of(work(300), given).num_points == 300
    assert within(60_000, PLENTY, given).num_points == 4000
    assert plan_of(work(300, can_be_exact=False), SETTINGS).num_points == 300
    sample = work(10**6, num_resident=50, can_be_exact=False)
    assert plan_of(sample, SETTINGS).num_points == 25
    assert not plan_of(work(30_000), given).full_mean
    assert plan_of(work(30_000), replace(given, full_mean=True)).full_mean


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_inducing": 0}, "needs likelihood='gaussian' and data in memory"),
        ({"full_mean": True}, "needs likelihood"),
    ],
)
def test_sizes_that_a_stream_cannot_have_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        plan_of(work(100, can_be_exact=False), TrainingSettings(**given))


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    "wrong", [{"max_exact": -1}, {"num_draws": 0}, {"num_draws": 2.5}, {"full_mean": "yes"}]
)
def test_settings_that_are_no_sizes_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        TrainingSettings(**wrong)


@pytest.mark.parametrize(
    ("plan", "needed", "fits"),
    [
        (Plan(20_000, 8, False), "exact inference with 20,000 inputs needs 9.6 GB", 4082),
        (Plan(50_000, 4, False, 3000, True), "a mean on all 50,000 inputs needs 7.83 GB", 3000),
        (Plan(10**6, 4, False, 9000), "a bound with 9,000 inducing variables needs 3.89 GB", 4082),
    ],
)
def test_what_is_too_large_for_the_memory_is_refused_and_what_fits_is_said(plan, needed, fits):
    check_memory(plan, 2 * plan.num_bytes)
    with pytest.raises(InputError) as error:
        check_memory(plan, 1e9)
    assert f"{needed} of memory, but only 0.8 GB of 1 GB can be used" in str(error.value)
    assert f"num_inducing={fits} fits" in str(error.value)
    given = TrainingSettings(num_inducing=fits)
    check_memory(plan_of(work(plan.num_data), given), 1e9)


def fitted(orbit="rotation", **parameters):
    model = InvariantGPClassifier(orbit, random_state=0, **{"settings": QUICK} | parameters)
    return model.fit(*bars(40))


@pytest.mark.usefixtures("untyped")
def test_sizes_do_not_depend_on_the_machine(monkeypatch):
    """Neither on threads, nor on memory that is enough, nor on how fast it is."""
    threads, found = torch.get_num_threads(), []
    try:
        for count, memory in ((1, 1e8), (2, 1e13)):
            torch.set_num_threads(count)
            monkeypatch.setattr("orbitgp.estimators.base.memory_of", lambda *_, m=memory: m)
            found.append(fitted(settings=replace(QUICK, max_exact=30)))
    finally:
        torch.set_num_threads(threads)
    assert (
        found[0].sizes_
        == found[1].sizes_
        == plan_of(work(40), replace(SETTINGS, max_exact=30)).sizes
    )
    assert found[0].evidence_ == pytest.approx(found[1].evidence_, rel=1e-4)


@pytest.mark.usefixtures("untyped")
def test_a_fit_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("orbitgp.estimators.base.memory_of", lambda *_: 30_000.0)
    with pytest.raises(InputError, match=r"needs .* of memory, but only 2\.4e-05 GB"):
        fitted()
    assert fitted(num_inducing=22).sizes_["num_inducing"] == 22


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("seconds", [1e-9, 100.0])
def test_sizes_that_a_budget_bought_give_the_same_model_without_it(seconds):
    bought = fitted(budget_seconds=seconds)
    assert bought.sizes_["num_inducing"] == (40 if seconds < 1 else 0)
    again = fitted(settings=replace(QUICK, **bought.sizes_))
    assert again.evidence_ == bought.evidence_
    state, other = again.model_.state_dict(), bought.model_.state_dict()
    assert all(torch.equal(state[name], other[name]) for name in state | other)


def test_two_numbers_of_variables_are_refused():
    with pytest.raises(InputError, match="give one of them"):
        fitted(num_inducing=3, settings=replace(QUICK, num_inducing=4))


def test_rates_decide_only_where_there_is_a_budget(monkeypatch):
    """The clock of a GPU, for example, is read for a forecast that is printed, and no more."""
    plans = []
    for rates in (rates_of(torch.device("cpu")), Rates(1.0, 1.0, 1.0)):
        monkeypatch.setattr("orbitgp.estimators.base.rates_of", lambda _, r=rates: r)
        plans.append([fitted("none", budget_seconds=budget).sizes_ for budget in (None, 1.0)])
    assert plans[0][0] == plans[1][0]
    assert plans[0][1] != plans[1][1]
