"""A run is a folder that can be killed, and gone on with, at any moment."""

import json
import os
from dataclasses import asdict

import numpy as np
import pytest
import torch

import orbitgp
from orbitgp import FileError, InputError, InvariantGPClassifier, InvariantGPRegressor
from orbitgp.callbacks.base import Callback, evaluations_from
from orbitgp.estimators.folder import example_rows
from orbitgp.orbits.ranges import Range
from orbitgp.sealed import read_sealed
from tests.conftest import assert_same_to_rounding
from tests.files.crash import SETTINGS, bars, crash_test

# thirty images are not always enough to learn from, and an estimator says so
pytestmark = [
    pytest.mark.filterwarnings("ignore:nothing was learned"),
    pytest.mark.usefixtures("untyped"),
]


def classifier(**parameters):
    given = {"settings": SETTINGS, "random_state": 1, **parameters}
    return InvariantGPClassifier(given.pop("orbit", "affine"), **given)


class Stop(Callback):
    def __init__(self, at):
        self.at, self.steps = at, 0

    def stepped(self, step):
        self.steps += 1
        if self.steps == self.at:
            raise RuntimeError("stopped")


def test_three_kills(tmp_path):
    assert crash_test(3, tmp_path, seed=3)[0] == 3


def test_a_run_is_read_back_when_it_is_finished(tmp_path):
    images, labels = bars(30)
    first = classifier(run=tmp_path / "run").fit(images, labels)
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        *("settings.json", "log.jsonl", "checkpoint.safetensors", "model.safetensors"),
        "examples.safetensors",
    }
    again, loaded = classifier(run=tmp_path / "run"), orbitgp.load(tmp_path / "run")
    stopped = Stop(1)
    again.set_params(callbacks=[stopped]).fit(images, labels)
    assert stopped.steps == 0
    for other in (again, loaded):
        assert_same_to_rounding(other.predict_proba(images), first.predict_proba(images))
    lines = (tmp_path / "run/log.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert events.count("started") == 1
    assert events[-1] == "announced"


@pytest.mark.parametrize(("at", "num_inducing"), [(1, None), (2, None), (4, None), (3, 20)])
def test_a_stopped_run_ends_as_an_undisturbed_one(tmp_path, at, num_inducing):
    """In its scan and in its climbs, before exact inference and before that of a bound.

    Also without a seed of the user's.
    """
    images, labels = bars(30)
    run = {"run": tmp_path / "run", "random_state": None, "num_inducing": num_inducing}
    with pytest.raises(RuntimeError, match="stopped"):
        classifier(callbacks=[Stop(at)], **run).fit(images, labels)
    seed = json.loads((tmp_path / "run/settings.json").read_text(encoding="utf-8"))["seed"]
    resumed = classifier(**run).fit(images, labels)
    (tmp_path / "run/settings.json").rename(tmp_path / "settings")
    whole = classifier(**{**run, "run": tmp_path / "whole"})
    (tmp_path / "whole").mkdir()
    record = json.loads((tmp_path / "settings").read_text(encoding="utf-8"))
    assert record["seed"] == seed
    (tmp_path / "whole/settings.json").write_text(json.dumps(record))
    whole.fit(images, labels)
    assert whole.evidence_ == resumed.evidence_
    assert whole.evidence_curve_ == resumed.evidence_curve_
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("run", "whole")]
    assert files[0] == files[1]


def test_a_folder_of_another_run_is_refused(tmp_path):
    images, labels = bars(30)
    classifier(run=tmp_path).fit(images, labels)
    with pytest.raises(InputError, match="different data_sha256"):
        classifier(run=tmp_path).fit(images + 0.1, labels)
    with pytest.raises(InputError, match="different parameters"):
        classifier(run=tmp_path, orbit="rotation").fit(images, labels)
    with pytest.raises(InputError, match="different estimator, parameters, data_sha256"):
        InvariantGPRegressor("affine", settings=SETTINGS, random_state=1, run=tmp_path).fit(
            images, labels
        )
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(FileError, match="delete the folder"):
        classifier(run=tmp_path).fit(images, labels)


def test_other_versions_are_warned_of(tmp_path):
    images, labels = bars(30)
    classifier(run=tmp_path).fit(images, labels)
    record = json.loads((tmp_path / "settings.json").read_text(encoding="utf-8"))
    record["versions"]["torch"] = "1.0"
    (tmp_path / "settings.json").write_text(json.dumps(record))
    with pytest.warns(UserWarning, match="not bit for bit"):
        classifier(run=tmp_path).fit(images, labels)


def test_a_torn_line_of_the_log_is_closed(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"event": "sta')
    log = orbitgp.JsonlLog(path)
    log.warned("first")
    log.warned("second")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["message"] for line in lines[1:]] == ["first", "second"]


def test_ctrl_c_in_the_screening_leaves_a_usable_model(tmp_path):
    class Impatient(Callback):
        def stepped(self, step):
            if step == 3:
                raise KeyboardInterrupt

    images, labels = bars(30)
    model = classifier(callbacks=[Impatient()], run=tmp_path).fit(images, labels)
    assert "interrupted" in model.stopped_
    assert model.n_iter_ == 3
    assert np.isfinite(model.predict_proba(images)).all()
    assert torch.isfinite(torch.tensor(orbitgp.load(tmp_path).evidence_))


def test_what_a_run_is_known_by(tmp_path):
    """Numbers of the orbit and labels as given count, not only names and codes."""
    images, labels = bars(30)
    classifier(run=tmp_path, orbit=orbitgp.Rotation(-0.2, 0.2)).fit(images, labels)
    with pytest.raises(InputError, match="different parts_sha256"):
        classifier(run=tmp_path, orbit=orbitgp.Rotation.full()).fit(images, labels)
    with pytest.raises(InputError, match="different data_sha256"):
        classifier(run=tmp_path, orbit=orbitgp.Rotation(-0.2, 0.2)).fit(images, labels + 5)


def test_groups_and_numpy_numbers_in_a_run(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = X.sum(1)
    for orbit in (orbitgp.coordinate_swap(0, 2, 3), orbitgp.SignFlips(0, 1)):
        folder = tmp_path / orbit.describe()
        given = {"num_inducing": np.int64(9), "settings": SETTINGS, "run": folder}
        first, again = (InvariantGPRegressor(orbit).set_params(**given).fit(X, y) for _ in range(2))
        assert_same_to_rounding(first.predict(X), again.predict(X))
        assert len(again.model_.posterior.points) == 9
        assert again.evidence_curve_[-1] == first.evidence_curve_[-1]
        loaded = orbitgp.load(folder)
        assert loaded.orbit.describe() == orbit.describe()


def test_what_is_refused_leaves_no_folder(tmp_path):
    images, labels = bars(30)
    for wrong in ({"orbit": "affin"}, {"image_shape": (3, 3)}, {"num_inducing": 0}):
        with pytest.raises(InputError):
            classifier(run=tmp_path / "run", **wrong).fit(images, labels)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("where", ["search_width", "climb"])
def test_ctrl_c_leaves_a_usable_model(monkeypatch, where):
    """While ranges are climbed, or while their width is searched."""
    images, labels = bars(30)

    def impatient(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"orbitgp.fit.learning.{where}", impatient)
    model = classifier().fit(images, labels)
    assert "interrupted" in model.stopped_
    assert np.isfinite(model.predict_proba(images)).all()


def test_files_of_others_are_left_alone(tmp_path):
    """Those of killed runs are removed after a day, also when a finished run is read back."""
    (tmp_path / "mine.tmp").write_text("mine")
    leftover = tmp_path / f"checkpoint.safetensors.{'0' * 16}.tmp"
    for _ in range(2):
        leftover.write_text("half")
        classifier(run=tmp_path).fit(*bars(30))
        assert leftover.exists()  # some process may be writing it
        os.utime(leftover, (0, 0))
        classifier(run=tmp_path).fit(*bars(30))
        assert (tmp_path / "mine.tmp").exists()
        assert not leftover.exists()


def test_examples_are_spread_over_the_classes():
    codes = torch.tensor([0, 0, 0, 2, 2, 1, 0])
    assert example_rows(codes) == [0, 1, 2, 6, 5, 3, 4]
    many = torch.arange(100) % 25
    assert example_rows(many) == [place * 25 // 12 for place in range(12)]
    assert len(example_rows(torch.arange(100) % 10)) == 10
    assert example_rows(torch.zeros(40, 2)) == list(range(12))


def test_a_run_keeps_examples_and_ranges(tmp_path):
    images, labels = bars(30)
    names = np.array(["lying", "standing", "spot"])[labels]
    model = classifier(run=tmp_path).fit(3 * images, names)
    _, tensors, config = read_sealed(tmp_path / "examples.safetensors", "orbitgp examples")
    assert config["labels"] == ["lying"] * 4 + ["spot"] * 4 + ["standing"] * 4
    rows = example_rows(torch.from_numpy(np.unique(names, return_inverse=True)[1]))
    scaled = torch.from_numpy(images[rows] / images.max()).float()
    torch.testing.assert_close(tensors["inputs"], scaled)
    ranges = model.evidence_curve_[-1].ranges
    assert [own.title for own in ranges] == [own.title for own in model.orbit_.learned_ranges()]
    logged = [
        json.loads(line)
        for line in (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    first = next(row for row in logged if row["event"] == "evaluated")
    assert (first["ranges"][0]["name"], first["ranges"][0]["unit"]) == ("rotation", "°")
    assert first["ranges"][0]["low"] == -first["ranges"][0]["high"]
    assert orbitgp.load(tmp_path).evidence_curve_ == model.evidence_curve_


def test_points_of_a_curve_are_checked():
    row = {"step": 1, "evidence": 2.0, "num_data": 250, "learned": ""}
    assert evaluations_from([row])[0].ranges == ()
    known = asdict(Range("a", "", 0, 1.0, 2.0))
    assert evaluations_from([{**row, "ranges": [known]}])[0].ranges == (Range(**known),)
    for ranges in ({"a": [1]}, [{"a": 1}], [{**known, "low": "1"}], [1, 2]):
        with pytest.raises(TypeError):
            evaluations_from([{**row, "ranges": ranges}])
    for wrong in ({"num_data": 0}, {"num_data": "2"}, {"evidence": 10**400}, {"kind": "elbo"}):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            evaluations_from([{**row, **wrong}])
