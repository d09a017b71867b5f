"""Plots store their values, and draw them where they are asked to."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from orbitgp import (
    Ablation,
    CalibrationDisplay,
    Comparison,
    EvidenceDisplay,
    InvariantGPClassifier,
    InvariantGPRegressor,
    OrbitDisplay,
    RangeDisplay,
    SignFlips,
)
from orbitgp.evidence.ablation import Worth
from orbitgp.evidence.trials import Finding
from orbitgp.orbits.ranges import Range
from tests.conftest import QUICK, without_checks_of_shapes
from tests.files.crash import bars

mpl.use("Agg")


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
@without_checks_of_shapes()
def classifier():
    x, y = bars(60)
    return InvariantGPClassifier("rotation", settings=QUICK, random_state=0).fit(x, y), x, y


def finding(name, evidence, draws):
    sizes = {250: evidence / 2, 400: evidence}
    kinds = {"kind": "exact", "likelihood": "gaussian"}
    return Finding(
        name,
        evidence,
        1.0,
        **kinds,
        num_data=400,
        learned="words",
        ranges=(),
        seconds=1.0,
        by_draws=draws,
        by_size=sizes,
    )


def test_orbits_of_images(classifier, ax):
    model, x, _ = classifier
    display = OrbitDisplay.from_estimator(model, x[:3], num_draws=4).plot(ax)
    assert display.ax_ is ax
    height, width = x.shape[1:]
    assert ax.images[0].get_array().shape == (3 * height, 5 * width)
    np.testing.assert_allclose(ax.images[0].get_array()[:height, :width], display.inputs[0])
    assert display.frame().loc["rotation", "high"] > 0
    again = OrbitDisplay.from_estimator(model, x[:3], num_draws=4)
    np.testing.assert_array_equal(again.draws, display.draws)


def test_orbits_of_colours_and_series(ax):
    colours = np.random.default_rng(0).random((2, 3, 4, 4))
    display = OrbitDisplay(
        inputs=colours, draws=colours[:, None], ranges=(), description="same"
    ).plot(ax)
    assert display.ax_.images[0].get_array().shape == (8, 8, 3)
    x = np.random.default_rng(0).normal(size=(20, 2))
    model = InvariantGPRegressor(SignFlips(0), settings=QUICK, random_state=0).fit(x, x[:, 1])
    lines = OrbitDisplay.from_estimator(model, x[:2]).plot(Figure().subplots()).ax_.lines
    assert len(lines) == 2 * (1 + 2)


def test_evidence_of_candidates(ax):
    found = Comparison([finding("a", 10.0, (5.0, 6.0)), finding("b", 30.0, (15.0, 15.0))], 400)
    display = EvidenceDisplay.from_comparison(found).plot(ax)
    assert display.names == ["b", "a"]
    assert [bar.get_width() for bar in ax.patches] == display.differences == [0.0, -20.0]
    assert display.frame().loc["a", "error"] == display.errors[1] > 0
    assert "exact" in ax.get_xlabel()
    lines = display.plot(Figure().subplots(), by_size=True).ax_.lines
    np.testing.assert_array_equal(lines[1].get_ydata(), [-10.0, -20.0])


def test_evidence_of_candidates_that_are_fitted():
    x = np.random.default_rng(0).uniform(-2, 2, (30, 2))
    estimator = InvariantGPRegressor(settings=QUICK)
    display = EvidenceDisplay.from_estimator(estimator, x, np.sin(x[:, 0]), candidates=["none"])
    assert display.differences == [0.0]


def test_ranges(ax):
    turn = Range("rotation", "°", 0, -12.0, 12.0)
    worths = [
        Worth("rotation", turn, (9.0, 15.0), 412.0, 9.0, 100.0, 90.0),
        Worth("shear", Range("shear", "", 0, -0.1, 0.1), (0.0, 0.3), 1.0, 1.0, 0.5, 0.5),
        Worth("mirror", None, None, -5.0, 0.0),
    ]
    display = RangeDisplay(ablation=Ablation(worths, 300)).plot(ax)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["rotation 12°\n(9° to 15°)", "shear\nnot identified", "mirror"]
    assert [bar.get_width() for bar in ax.patches] == [412.0, 1.0, -5.0]
    assert "300 inputs, exact" in ax.get_xlabel()
    assert display.frame().loc["shear", "interval_high"] == 0.3


def test_ranges_of_an_estimator():
    x = np.random.default_rng(0).uniform(-2, 2, (30, 1))
    y = np.cos(x[:, 0])
    model = InvariantGPRegressor(SignFlips(0), settings=QUICK, random_state=0).fit(x, y)
    assert RangeDisplay.from_estimator(model, x, y).ablation.worths[0].identified


def test_calibration(classifier, ax):
    model, x, y = classifier
    display = CalibrationDisplay.from_estimator(model, x, y).plot(ax)
    assert display.count.sum() == len(x)
    frame = display.frame()
    expected = (model.predict(x) == y).mean()
    assert (frame["accuracy"] * frame["count"]).sum() / len(x) == pytest.approx(expected)
    assert (frame["error"] > 0).all()
    assert ax.get_legend() is not None


def test_new_axes(classifier):
    from matplotlib import pyplot as plt

    model, x, y = classifier
    display = CalibrationDisplay.from_estimator(model, x, y).plot()
    assert display.figure_.axes == [display.ax_]
    plt.close(display.figure_)
