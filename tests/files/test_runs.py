"""A run is a folder that can be killed, and gone on with, at any moment."""

import json

import numpy as np
import pytest
import torch

import orbitgp
from orbitgp import FileError, InputError, InvariantGPClassifier, InvariantGPRegressor
from orbitgp.training.callbacks import Callback
from tests.files.crash import SETTINGS, bars, crash_test

# thirty images are not always enough to learn from, and an estimator says so
pytestmark = pytest.mark.filterwarnings("ignore:nothing was learned")


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


def test_five_kills(tmp_path):
    assert crash_test(5, tmp_path, seed=3)[0] == 5


def test_a_run_is_read_back_when_it_is_finished(tmp_path):
    images, labels = bars(30)
    first = classifier(run=tmp_path / "run").fit(images, labels)
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        *("settings.json", "log.jsonl", "checkpoint.safetensors", "model.safetensors")
    }
    again, loaded = classifier(run=tmp_path / "run"), orbitgp.load(tmp_path / "run")
    stopped = Stop(1)
    again.set_params(callbacks=[stopped]).fit(images, labels)
    assert stopped.steps == 0
    for other in (again, loaded):
        np.testing.assert_array_equal(other.predict_proba(images), first.predict_proba(images))
    lines = (tmp_path / "run/log.jsonl").read_text().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert events.count("started") == 3  # two starts are screened, one is trained
    assert events[-1] == "announced"


@pytest.mark.parametrize("at", [3, 45, 95])
def test_a_stopped_run_ends_as_an_undisturbed_one(tmp_path, at):
    """In the first screening, the second, and in training; also without a seed of the user's."""
    images, labels = bars(30)
    run = {"run": tmp_path / "run", "random_state": None}
    with pytest.raises(RuntimeError, match="stopped"):
        classifier(callbacks=[Stop(at)], **run).fit(images, labels)
    seed = json.loads((tmp_path / "run/settings.json").read_text())["seed"]
    resumed = classifier(**run).fit(images, labels)
    (tmp_path / "run/settings.json").rename(tmp_path / "settings")
    whole = classifier(run=tmp_path / "whole", random_state=None)
    (tmp_path / "whole").mkdir()
    record = json.loads((tmp_path / "settings").read_text())
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
    with pytest.raises(InputError, match="different estimator, data_sha256"):
        InvariantGPRegressor("affine", settings=SETTINGS, random_state=1, run=tmp_path).fit(
            images, labels
        )
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(FileError, match="delete the folder"):
        classifier(run=tmp_path).fit(images, labels)


def test_other_versions_are_warned_of(tmp_path):
    images, labels = bars(30)
    classifier(run=tmp_path).fit(images, labels)
    record = json.loads((tmp_path / "settings.json").read_text())
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
    lines = path.read_text().splitlines()
    assert [json.loads(line)["message"] for line in lines[1:]] == ["first", "second"]


def test_ctrl_c_in_the_screening_leaves_a_usable_model(tmp_path):
    class Impatient(Callback):
        def stepped(self, step):
            if step == 7:
                raise KeyboardInterrupt

    images, labels = bars(30)
    model = classifier(callbacks=[Impatient()], run=tmp_path).fit(images, labels)
    assert "interrupted" in model.stopped_
    assert model.n_iter_ == 7
    assert np.isfinite(model.predict_proba(images)).all()
    assert torch.isfinite(torch.tensor(orbitgp.load(tmp_path).evidence_))
