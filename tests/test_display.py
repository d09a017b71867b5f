"""What people see: the notebook's card, the bar on a terminal, logs, and warnings that matter."""

import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import orbitgp
from orbitgp import InvariantGPClassifier, InvariantGPRegressor, OrbitGPError
from orbitgp.callbacks.base import Evaluation
from tests.conftest import QUICK
from tests.processes import on_a_terminal, python

pytestmark = pytest.mark.usefixtures("untyped")


def bars(num_data):
    images = 0.1 * np.random.default_rng(0).random((num_data, 6, 6))
    images[::2, 2] = 1
    images[1::2, :, 2] = 1
    return images, np.array(["<lying>", "standing"] * (num_data // 2))


def test_the_card_of_a_fitted_estimator_says_what_was_learned():
    model = InvariantGPClassifier("affine", settings=QUICK, random_state=0)
    assert "nats" not in model._repr_html_()
    html = model.fit(*bars(20))._repr_html_()
    for text in ("rotation −", f"{model.evidence_:,.1f}", "<polyline", "exact inference"):
        assert text in html
    assert "InvariantGPClassifier" in html  # scikit-learn's own diagram is still there


SCRIPT = """
import numpy as np
from orbitgp import InvariantGPClassifier, TrainingSettings
images = 0.3 * np.random.default_rng(0).random((60, 6, 6))
images[::2, 2] = 5
settings = TrainingSettings(max_steps=4, scan_draws=4, climb_draws=4)
InvariantGPClassifier("affine", settings=settings, random_state=0, verbose=True).fit(
    images, np.arange(60) % 2
)
"""


@pytest.mark.parametrize("columns", [200, 0])
def test_the_bar_is_seen_on_a_terminal(columns):
    code, text = on_a_terminal("-c", SCRIPT, columns=columns)
    assert code == 0, text
    for part in (
        "exact inference: 60 inputs × 64 draws",
        "evidence ",
        "nats",
        "it/s",
        *["rotation −"][:columns],
    ):
        assert part in text, text


def test_a_pipe_gets_lines_and_no_bar():
    piped = python("-c", SCRIPT)
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout == ""
    assert "\r" not in piped.stderr
    first, *_, last = piped.stderr.splitlines()
    assert first.startswith("exact inference: 60 inputs × 64 draws of their orbits, about ")
    assert "  evidence of 60 inputs " in piped.stderr
    assert "step 2 of 5: learning ranges and lengthscale, by the" in piped.stderr
    assert last.startswith("step 5 of 5: solving for all 60 inputs")


def test_a_model_that_found_nothing_says_so():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 8)), random.normal(size=60)
    with pytest.warns(ConvergenceWarning, match="nothing was learned"):
        InvariantGPRegressor(settings=QUICK, random_state=0).fit(X, y)


def test_copies_of_inputs_are_named():
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 3))
    rows = np.r_[np.arange(30), :10]
    with pytest.warns(ConvergenceWarning, match="10 of 40 inputs are exact copies of others"):
        InvariantGPRegressor(settings=QUICK, random_state=0).fit(X[rows], X[rows, 0])


def test_tensorboard_gets_the_curve(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = orbitgp.TensorBoardLog(tmp_path)
    model = InvariantGPClassifier("affine", settings=QUICK, random_state=0, callbacks=[log])
    clone(model).fit(*bars(20))
    model.fit(*bars(20))
    log.warned("nothing is open now")
    log.started(1)
    log.warned("a warning")
    log.finished("again")
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    values = [event.value for event in events.Scalars("evidence_per_input")]
    assert values[-1] == pytest.approx(model.evidence_curve_[-1].per_input, rel=1e-5)
    sizes = [event.value for event in events.Scalars("num_data")]
    assert sizes[-1] == model.evidence_curve_[-1].num_data


@pytest.mark.filterwarnings("ignore")
def test_mlflow_gets_the_curve(tmp_path):
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.create_experiment("test", artifact_location=str(tmp_path))
    mlflow.set_experiment("test")
    with mlflow.start_run() as run:
        log = orbitgp.MLflowLog()
        model = InvariantGPClassifier("affine", settings=QUICK, random_state=0, callbacks=[log])
        clone(model)
        model.fit(*bars(20))
        log.warned("a warning")
    found = mlflow.get_run(run.info.run_id).data
    assert found.metrics["evidence_per_input"] == pytest.approx(model.evidence_curve_[-1].per_input)
    assert "rotation" in found.tags["learned"]
    assert found.tags["warning"] == "a warning"


@pytest.mark.parametrize("name", ["tensorboard", "mlflow"])
def test_a_missing_extra_is_named(name, monkeypatch, tmp_path):
    monkeypatch.setitem(
        sys.modules, {"tensorboard": "torch.utils.tensorboard"}.get(name, name), None
    )
    make = {"tensorboard": lambda: orbitgp.TensorBoardLog(tmp_path), "mlflow": orbitgp.MLflowLog}
    with pytest.raises(OrbitGPError, match=rf"orbitgp\[{name}\]"):
        make[name]()


def test_callbacks_hear_everything_by_default_in_silence():
    quiet = orbitgp.Callback()
    quiet.started(3)
    quiet.evaluated(Evaluation(1, 2.0, 250, "learned"))
    for method in (quiet.announced, quiet.warned, quiet.finished):
        method("text")
