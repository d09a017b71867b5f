"""Forward and backward selection of transformations."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from orbitgp import (
    Ablation,
    Discovery,
    InputError,
    InvariantGPClassifier,
    InvariantGPRegressor,
    Mirror,
    Transformation,
    discover,
    load,
)
from orbitgp.evidence.ablation import Worth, read_ablation
from orbitgp.evidence.kinds import (
    checked_kind,
    image_transformations,
    suitable_transformations,
    vector_transformations,
)
from orbitgp.evidence.selection import SelectionStep
from orbitgp.evidence.transformations import is_closed, is_contained, orbit_of
from orbitgp.fit.feature_choice import is_of_images
from tests.conftest import QUICK

REGRESSOR = InvariantGPRegressor(settings=QUICK)


def points(num_data=50, num_columns=2):
    return np.random.default_rng(0).uniform(-2, 2, (num_data, num_columns))


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda x: np.sin(x).sum(1), ["swap of columns 0 and 1"]),
        (lambda x: np.cos(2 * x[:, 0]) * x[:, 1], ["sign of column 0"]),
        (lambda x: np.cos(x[:, 0]) * np.cos(2 * x[:, 1]), ["sign of column 0", "sign of column 1"]),
        (lambda x: np.sin(2 * x[:, 0]) + x[:, 1], []),
    ],
)
def test_symmetries_of_functions(function, names):
    x = points()
    found = discover(x, function(x), estimator=REGRESSOR)
    assert sorted(found.names) == names
    assert (found.gain > 5) == bool(names)
    assert found.estimator.evidence_ == pytest.approx(found.none + found.gain)
    assert ("supported no invariance" in found.sentence) == (not names)
    assert all(name in found.sentence for name in found.names)
    assert str(found).endswith(found.sentence)
    json.dumps(found.records())


def test_swaps_together_make_all_permutations():
    x = points(60, 3)
    found = discover(x, np.sin(x).sum(1) + np.cos(x).prod(1), estimator=REGRESSOR)
    assert found.estimator.orbit_.size == 6
    assert {"sign of column 0", "sign of column 1"}.isdisjoint(found.names)


def spots():
    """Images of a spot above or below: left and right are the same, up and down are not."""
    random = np.random.default_rng(0)
    x = 0.05 * random.random((60, 8, 8))
    y = random.integers(0, 2, 60)
    for image, label, column in zip(x, y, random.integers(0, 8, 60), strict=True):
        image[(1 if label else 6), column] += 1
    return x, y


def test_images_with_a_mirror(tmp_path, capsys):
    x, y = spots()
    parts = [part for part in image_transformations((8, 8)) if "mirror" in part.name]
    estimator = InvariantGPClassifier(settings=QUICK)
    found = discover(x, y, estimator=estimator, transformations=parts, run=tmp_path, verbose=True)
    assert found.names == ["horizontal mirror"]
    assert found.tried == ["horizontal mirror", "vertical mirror"]
    assert load(tmp_path / "horizontal-mirror").evidence_ == found.estimator.evidence_
    kept = read_ablation(tmp_path / "horizontal-mirror" / "ablation.json")
    assert kept == found.ablation
    assert kept["mirror along axis −1"].identified
    lines = capsys.readouterr().err
    assert "no invariance" in lines
    assert "+ horizontal mirror" in lines


@pytest.mark.filterwarnings("ignore:nothing was learned")
def test_what_is_worth_nothing_is_given_up():
    """A group that the few data of the selection like is taken away again."""
    x, y = spots()
    mirror = Transformation("mirror", (0,), "mirror", lambda _: Mirror(-2))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("WORTHWHILE", "HOPELESS"):
            patch.setattr(f"orbitgp.evidence.selection.{name}", -np.inf)
        found = discover(
            x, y, estimator=InvariantGPClassifier(settings=QUICK), transformations=[mirror]
        )
    steps = [(step.name, step.taken) for step in found.path]
    assert steps == [("mirror", True), ("mirror", False)]
    assert found.names == []
    assert found.gain == 0


@pytest.mark.parametrize(
    ("shape", "kinds"),
    [
        ((96,), "kind='series' or kind='vectors'"),
        ((6, 100), "kind='images', kind='series' or kind='points'"),
        ((11, 4), "kind='images', kind='series' or kind='points'"),
    ],
)
def test_shapes_of_several_kinds_are_asked_for(shape, kinds):
    """Before anything is fitted."""
    with pytest.raises(InputError, match=kinds):
        discover(np.zeros((10, *shape)), np.arange(10) % 2)
    assert checked_kind(shape, "series" if len(shape) == 1 else "points")


@pytest.mark.parametrize(
    ("likelihood", "kind", "of"),
    [("auto", "exact", ""), ("softmax", "bound, softmax", " to the evidence of one-hot labels")],
)
def test_a_discovery_says_which_likelihood_its_numbers_are_of(likelihood, kind, of):
    estimator = SimpleNamespace(
        likelihood=likelihood, evidence_=-10.0, evidence_kind_=kind.split(",")[0]
    )
    ablation = Ablation([Worth("mirror", None, None, 9.0, 1.0)], 300)
    path = [SelectionStep("mirror", 0.0, 9.0, True)]
    found = Discovery(estimator, path, ["mirror"], ablation, -30.0, 300, 1.0)
    assert f"with 20 nats more than no invariance ({kind}); what each is worth{of}: " in (
        found.sentence
    )


@pytest.mark.parametrize("shape", [(30, 100), (100, 30), (12, 24), (28, 28), (8, 8), (1, 30, 100)])
def test_features_and_discover_have_one_rule_for_images(shape):
    """Of a series of 30 channels, neither looks for edges nor turns it."""
    try:
        kind = checked_kind(shape)
    except InputError:
        kind = "asked for"
    assert is_of_images((9, *shape)) == (kind == "images" and min(shape[-2:]) >= 12)


def test_transformations_of_each_kind_of_data():
    names = [part.name for part in suitable_transformations((8, 8))]
    assert {"quarter turns", "rotation", "shift", "noise", "contrast"} <= set(names)
    assert "quarter turns" not in [part.name for part in suitable_transformations((3, 8, 6))]
    assert len(vector_transformations(3)) == 3 + 1 + 3
    assert [part.name for part in vector_transformations(20)] == ["cyclic shift"]
    assert {"cyclic shift", "stretch", "drift"} <= {
        part.name for part in suitable_transformations((30,), "series")
    }
    assert "any order" in [part.name for part in suitable_transformations((5, 4), "points")]
    with pytest.raises(InputError, match="or transformations= of your own"):
        suitable_transformations((2, 3, 4, 5))
    with pytest.raises(InputError, match=r"got points of shape \[9\]"):
        suitable_transformations((9,), "points")
    with pytest.raises(InputError, match="kind must be one of images, series"):
        suitable_transformations((9,), "waves")


def test_orbits_of_several_transformations():
    parts = {part.name: part for part in image_transformations((8, 8))}
    chosen = {parts["rotation"]: 0.3, parts["shift"]: 0.1, parts["horizontal mirror"]: 0.0}
    orbit = orbit_of(chosen)
    assert orbit.describe() == (
        "mirror along axis −1, then rotation −17° … +17°, x-shift −5.0% … +5.0%, "
        "y-shift −5.0% … +5.0%"
    )
    assert is_closed(chosen, (8, 8))
    assert is_closed({parts["quarter turns"]: 0.0, parts["vertical mirror"]: 0.0}, (8, 8))
    turns = parts["quarter turns"]
    assert is_contained(turns, {parts["rotation"]: math.pi})
    assert not is_contained(turns, {parts["rotation"]: 0.3, parts["horizontal mirror"]: 0.0})
    assert not is_contained(parts["rotation"], {turns: 0.0})
    columns = {part.name: part for part in vector_transformations(2)}
    both = {columns["swap of columns 0 and 1"]: 0.0, columns["sign of column 0"]: 0.0}
    assert not is_closed(both, (2,))
    assert is_closed({**both, columns["sign of column 1"]: 0.0}, (2,))
    for part in parts.values():
        assert part.ranges == () or any(
            found.name in part.ranges for found in orbit_of({part: 0.1}).learned_ranges()
        )
