"""What people see: the notebook's card, the bar on a terminal, logs, and warnings that matter."""

import re
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import orbitgp
from orbitgp import InvariantGPClassifier, InvariantGPRegressor
from orbitgp.callbacks.base import Evaluation
from tests.conftest import QUICK
from tests.processes import on_a_terminal, python

ROOT = Path(__file__).parents[1]

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


def test_the_callback_of_the_documentation_logs_the_curve(monkeypatch):
    """With stand-ins for both logs, which need not be installed."""
    writer, mlflow = mock.Mock(), mock.Mock()
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", writer)
    page = (ROOT / "docs/runs.md").read_text()
    (source,) = re.findall(r"```python\n(import mlflow.*?)```", page, re.DOTALL)
    names = {"orbitgp": orbitgp, "InvariantGPClassifier": InvariantGPClassifier}
    exec(source, names)
    model = names["model"].set_params(settings=QUICK, random_state=0)
    clone(clone(model).fit(*bars(20)))
    last = model.fit(*bars(20)).evidence_curve_[-1]
    logged = writer.SummaryWriter.return_value
    assert logged.add_scalar.call_args == mock.call("evidence", last.evidence, last.step)
    assert mlflow.log_metric.call_args == mock.call("evidence", last.evidence, step=last.step)
    logged.close.assert_called()


def test_callbacks_hear_everything_by_default_in_silence():
    quiet = orbitgp.Callback()
    quiet.started(3)
    quiet.evaluated(Evaluation(1, 2.0, 250, "learned"))
    for method in (quiet.announced, quiet.warned, quiet.finished):
        method("text")
