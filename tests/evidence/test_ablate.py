"""What a transformation is worth, and how far it may go."""

import copy
import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from experiments.intervals import rotated_points, rotation
from orbitgp import (
    Ablation,
    FileError,
    InputError,
    InvariantGPRegressor,
    Mirror,
    Rotation,
    SignFlips,
    ablate,
    compose,
)
from orbitgp.evidence.ablate import interval_around
from orbitgp.evidence.ablation import FILE, Worth, read_ablation, write_ablation
from orbitgp.evidence.ranges import fixed_parts, learned_parameters
from orbitgp.orbits.ranges import Range
from tests.conftest import QUICK, without_checks_of_shapes

ANGLE = Range("rotation", "°", 0, -12.0, 12.0)
TURN = Worth("rotation", ANGLE, (9.0, 15.2), 412.3, 9.1, 100.0, 90.0)


@pytest.fixture(scope="module")
@without_checks_of_shapes()
def problem():
    x, y = rotated_points(80, 0.6, seed=1)
    return InvariantGPRegressor(rotation(), random_state=0).fit(x, y), x, y


@pytest.fixture(scope="module")
@without_checks_of_shapes()
def found(problem):
    return ablate(*problem)


def test_the_true_width_is_inside(problem, found):
    worth = found["angle"]
    low, high = worth.interval
    assert low < 0.6 < high
    assert low < worth.range.high < high
    assert worth.identified
    assert worth.removed > worth.halved > 0
    assert worth.doubled > 0
    assert str(found) == str(worth)
    assert str(worth).startswith("angle ±0.")


def test_a_range_that_is_switched_off_is_searched_too(problem):
    """0 is inside, and widths that the data allow, however far away they are."""
    model, x, y = copy.deepcopy(problem[0]), *problem[1:]
    model.model_.orbit.ranges.assign_widths(torch.full((1, 1), 1e-6))
    worth = ablate(model, x, y)["angle"]
    assert worth.interval[0] == pytest.approx(0, abs=1e-5)
    assert 0.6 < worth.interval[1] < 1.5


def test_asking_changes_nothing(problem, found):
    model, x, y = problem
    before = model.orbit_.learned_ranges(), model.predict(x)
    again = ablate(model, x, y)
    assert again.records() == found.records()
    assert model.orbit_.learned_ranges() == before[0]
    np.testing.assert_array_equal(model.predict(x), before[1])


def test_frame_and_records(found):
    json.dumps(found.records())
    row = found.frame().loc["angle"]
    assert (row["interval_low"], row["interval_high"]) == found["angle"].interval
    with pytest.raises(InputError, match="no transformation is called 'shear'; there are angle"):
        found["shear"]


def test_groups_are_taken_away_one_by_one():
    x = np.random.default_rng(0).uniform(-2, 2, (40, 2))
    y = np.cos(x[:, 0]) * x[:, 1]
    orbit = compose(SignFlips(0), SignFlips(1))
    model = InvariantGPRegressor(orbit, settings=QUICK, random_state=0).fit(x, y)
    worths = {worth.name: worth for worth in ablate(model, x, y).worths}
    right, wrong = worths["sign of coordinate 0"], worths["sign of coordinate 1"]
    assert right.removed_error == wrong.removed_error == 0
    assert wrong.removed < -10
    assert str(wrong) == f"sign of coordinate 1: {-wrong.removed:.0f} nats more without it"
    alone = InvariantGPRegressor(SignFlips(0), settings=QUICK, random_state=0).fit(x, y)
    lost = ablate(alone, x, y)["sign of coordinate 0"].removed
    none = InvariantGPRegressor("none", settings=QUICK, random_state=0).fit(x, y)
    assert lost == pytest.approx(alone.evidence_ - none.evidence_, rel=0.1)


def test_words_and_places():
    orbit = compose(Rotation(-0.1, 0.2), Mirror())
    (part,) = learned_parameters(orbit)
    assert (part.range, part.places) == (orbit.learned_ranges()[0], (0, 1))
    assert [part.describe() for part, _ in fixed_parts(orbit)] == [Mirror().describe()]
    assert str(TURN) == "rotation ±12° (9° to 15°), worth 412 ± 9 nats"
    factor = Range("x-scale", "×", 0, 0.9, 1.1, logarithmic=True)
    scale = Worth("x-scale", factor, (1.05, 1.2), 30.0, 1.0)
    assert str(scale) == "x-scale ×0.90 … ×1.10 (×1.05 to ×1.20), worth 30 ± 1 nats"
    shear = Worth("shear", Range("shear", "", 0, -0.1, 0.1), (0.0, 1.0), 1.5, 1.0)
    assert str(shear) == "shear: not identified"
    assert str(Ablation([], 10)) == "no invariance"


@pytest.mark.usefixtures("untyped")
def test_ranges_of_one_name_keep_apart():
    x, y = rotated_points(20, 0.6, seed=1)
    orbit = compose(rotation(0.2), rotation(0.4))
    model = InvariantGPRegressor(orbit, settings=QUICK, random_state=0).fit(x, y)
    found = ablate(model, x, y)
    assert [worth.name for worth in found.worths] == ["angle of part 1", "angle of part 2"]
    for worth, own in zip(found.worths, model.orbit_.learned_ranges(), strict=True):
        assert worth.range == replace(own, identified=worth.identified)
    assert found["angle of part 2"] == found.worths[1]
    with pytest.raises(InputError, match="there are angle of part 1, angle of part 2"):
        found["angle"]


def test_intervals_of_known_curves():
    """A parabola in the log width; one that 0 is inside of; and one that ends at the limit."""

    def parabola(width):
        return -2.0 * ((width - 1.0) / 0.5) ** 2

    low, high = interval_around(parabola, 1.1, parabola(1.1), lowest=-50.0, upper=5.0)
    assert (low, high) == (pytest.approx(0.5, abs=0.02), pytest.approx(1.5, abs=0.02))
    low, high = interval_around(parabola, 1.0, 0.0, lowest=-1.0, upper=1.2)
    assert (low, high) == (-math.inf, 1.2)


def test_an_ablation_is_kept_in_a_run(tmp_path):
    x = np.random.default_rng(0).uniform(-2, 2, (40, 2))
    y = np.cos(x[:, 0]) * x[:, 1]
    run = tmp_path / "run"
    model = InvariantGPRegressor(SignFlips(0), settings=QUICK, run=run, random_state=0).fit(x, y)
    ablate(model, x, y)
    assert not (run / FILE).exists()
    found = ablate(model, x, y, run=run)
    assert read_ablation(run / FILE) == found
    assert not list(run.glob("*.tmp"))
    with pytest.warns(UserWarning, match="was fitted to 40 inputs, and these are 30"):
        ablate(model, x[:30], y[:30], run=run)
    with pytest.raises(InputError, match=r"with model\.safetensors in it; got .*nowhere"):
        ablate(model, x, y, run=tmp_path / "nowhere")


@pytest.mark.parametrize("worth", [TURN, Worth("mirror", None, None, math.inf, 0.0)])
def test_what_is_kept_is_read_back(worth, tmp_path):
    write_ablation(Ablation([worth], 10), tmp_path)
    assert read_ablation(tmp_path / FILE) == Ablation([worth], 10)


HOSTILE = ({"schema": 2}, {"kind": "<b>"}, {"num_data": {}}, {"num_data": 10**400})
KEPT = {"schema": "orbitgp.ablation/1", "num_data": 3, "kind": "exact", "worths": []}


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "null", "[]", "3", "{}", "[" * 10**5, '"\\ud800"'),
        *(json.dumps(KEPT | part) for part in HOSTILE),
        *(json.dumps(KEPT | {"worths": part}) for part in (3, [3], ["<b>"], [{}], {"a": 1})),
        *(
            json.dumps(KEPT | {"worths": [asdict(TURN) | part]})
            for part in (
                {"range": 3},
                {"range": {}},
                {"interval": [1]},
                {"removed": None},
                {"halved": 10**400},
            )
        ),
    ],
)
def test_files_that_are_no_ablation(text, tmp_path):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(FileError, match=r"ablation\.json cannot be read"):
        read_ablation(tmp_path / FILE)


def test_only_fitted_estimators_are_asked(problem):
    with pytest.raises(InputError, match="call fit first"):
        ablate(InvariantGPRegressor(), *problem[1:])
