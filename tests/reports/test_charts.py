"""Charts of ordinary and of odd values, and numbers as people write them."""

import math
import re

import numpy as np
import pytest

from orbitgp.callbacks.base import Evaluation
from orbitgp.orbits.ranges import Range
from orbitgp.reports import charts
from orbitgp.reports.matrix import confusion_matrix
from orbitgp.reports.page import render
from orbitgp.reports.performance import Rate, interval_chart, reliability_charts, scatter_chart
from orbitgp.reports.training import evidence_chart, range_chart
from orbitgp.reports.words import (
    duration,
    end,
    listed,
    number,
    percent,
    phrase,
    short,
    size,
)
from tests.reports.pages import parse


def curve_of(*values):
    return [Evaluation(10 * i, 4 * value, 4, "", ()) for i, value in enumerate(values)]


def confusion_table(counts, classes):
    return render("matrix.html.jinja", matrix=confusion_matrix(counts, classes))


def drawn_numbers(html):
    """Every coordinate of a drawing."""
    inside = re.findall(r'\b(?:x|y|x1|x2|y1|y2|cx|cy|width|height)="([^"%]+)%?"', html)
    points = " ".join(re.findall(r'points="([^"]*)"', html)).replace(",", " ").split()
    return [float(value) for value in (*inside, *points)]


@pytest.mark.parametrize(
    "values",
    [[5.0], [5.0, 5.0], [0.0, 0.0], [1.0, math.nan, 2.0], [-math.inf, 3.0, 4.0], [1e12, 1e12 + 1]],
)
def test_evidence_of_any_kind_is_drawn(values):
    html = evidence_chart(curve_of(*values))
    parse(html)
    assert all(-1 <= value <= 101 for value in drawn_numbers(html))
    assert html.count("<circle") == sum(map(math.isfinite, values))


@pytest.mark.parametrize("values", [[], [math.nan], [math.inf, -math.inf]])
def test_nothing_finite_is_no_chart(values):
    assert evidence_chart(curve_of(*values)) == ""


def test_evidence_is_drawn_per_input_without_a_band():
    """Of 100 inputs and of 200 like them, evidence per input is the same."""
    html = evidence_chart([Evaluation(1, -50.0, 100, ""), Evaluation(2, -100.0, 200, "")])
    assert "evidence per input (nats)" in html
    assert "from −0.500 to −0.500 nats" in html
    assert "<polygon" not in html


def test_gaps_stay_gaps():
    html = evidence_chart(curve_of(1.0, 2.0, math.nan, 3.0, 4.0))
    assert html.count("<polyline") == 2


def test_places_of_a_curve():
    x, y = charts.steps_axis([0, 10]), charts.fractions("share")
    assert 'points="0.00,100.00 50.00,75.00 100.00,0.00"' in charts.curve(
        [(0, 0), (5, 0.25), (10, 1)], x, y
    )
    assert 'cx="50.00%" cy="75.00%"' in charts.dots([(5, 0.25)], x, y)


@pytest.mark.parametrize("values", [[0, 1], [-7.3, 8.1], [1e-7, 3e-7], [12_000, 13_500], [2, 2]])
def test_ticks_are_round_inside_and_told_apart(values):
    axis = charts.axis_of(values, "value")
    assert axis.low < min(values) <= max(values) < axis.high
    assert 2 <= len(axis.ticks) <= 7
    texts = [axis.text(tick) for tick in axis.ticks]
    assert len(set(texts)) == len(texts)
    for tick, text in zip(axis.ticks, texts, strict=True):
        assert axis.low <= tick <= axis.high
        assert float(text.replace("−", "-").replace(",", "")) == pytest.approx(tick, rel=1e-6)


def test_sizes_are_written_as_numbers():
    axis = charts.sizes_axis([250, 500, 1000, 2000, 2100], "inputs")
    assert [axis.text(tick) for tick in axis.ticks] == ["250", "500", "1,000", "2,100"]
    assert charts.sizes_axis([40], "inputs").ticks == pytest.approx([math.log2(40)])


def test_names_beside_curves_are_apart():
    x, y = charts.steps_axis([0, 1]), charts.fractions("share")
    html = charts.names_beside([("a", 0.5), ("b", 0.51), ("c", math.nan), ("<d>", 0.0)], x, y)
    heights = [float(height) for height in re.findall(r' y="([^"%]+)%"', html)]
    assert heights == pytest.approx([100, 50, 50 - 100 * charts.NAMES_APART])
    crowd = [(str(number), 1.0) for number in range(5)]
    heights = re.findall(r' y="([^"%]+)%"', charts.names_beside(crowd, x, y))
    assert -np.diff([float(height) for height in heights]) == pytest.approx(
        [100 * charts.NAMES_APART] * 4
    )
    assert "&lt;d&gt;" in html


@pytest.mark.parametrize("value", [3.0, -2.0, math.nan, math.inf])
def test_levels(value):
    x = charts.axis_of([0, -3, 4], "nats")
    html = charts.level(value, 1.0, x)
    parse(html)
    assert html.count("<rect") == html.count('class="error"') == math.isfinite(value)
    assert all(-1 <= number <= 101 for number in drawn_numbers(html))


def test_an_axis_that_no_number_can_hold():
    assert charts.axis_of([-1.7e308, 1.7e308], "value") is None


def angle(low, high, part=0):
    return Range("rotation", "°", part, low, high)


def factor(low, high):
    return Range("x-scale", "×", 0, low, high, logarithmic=True)


def gain(low, high):
    return Range("<b>gain</b>", "", 0, low, high)


@pytest.mark.parametrize("make", [angle, factor, gain])
@pytest.mark.parametrize("rows", [[(0, 1, 1)], [(0, -1, 1), (5, math.nan, 2), (9, -2, 2)]])
def test_ranges_are_drawn(make, rows):
    html = range_chart(make(-0.5, 0.5), rows)
    parse(html)
    assert "<b>" not in html
    assert "&amp;" not in html  # escaped once
    assert all(-1 <= value <= 101 for value in drawn_numbers(html))
    assert html.count('class="note"') == 2
    assert range_chart(make(math.nan, 1.0), rows) == range_chart(make(0, 1), []) == ""


@pytest.mark.parametrize("many", [2, 10, 30])
def test_confusions_are_a_table(many):
    counts = np.arange(many**2).reshape(many, many)
    html = confusion_table(counts, tuple(f"<{k}>" for k in range(many)))
    assert html.count("<tr>") == many + 1
    parse(html)
    assert html.count('class="right') == many - (counts[0, 0] == 0)
    assert "&lt;1&gt; predicted as &lt;0&gt;" in html
    parse(confusion_table(np.zeros((2, 2), int), ("a", "b")))


def test_reliability_and_intervals():
    html = "".join(reliability_charts(np.array([1.0, 1.0, 0.5]), np.array([True, False, True])))
    parse(html)
    assert html.count("<circle") == html.count("<rect") == 2
    assert 'cx="100.00%" cy="50.00%"' in html
    assert 'cx="50.00%" cy="0.00%"' in html
    surprise = np.abs(np.random.default_rng(0).normal(size=200_000))
    for cx, cy in re.findall(r'cx="([\d.]+)%" cy="([\d.]+)%"', interval_chart(surprise)):
        assert 100 - float(cy) == pytest.approx(float(cx), abs=0.6)


def test_scatter_of_odd_values():
    ones = np.ones(3)
    for truth in (np.zeros(3), np.array([0, 1, np.nan]), np.array([1e9, 1e9, 1e9])):
        html = scatter_chart(truth, truth, ones)
        assert html.count("<circle") == np.isfinite(truth).sum()
        assert "nan" not in html
    assert scatter_chart(ones * np.nan, ones * np.nan, ones) == ""


def test_numbers():
    assert number(-12345.67, 1) == "−12,345.7"
    assert number(-0.001, 1) == "0.0"
    assert number(0.04, 1, sign=True) == "0.0"
    assert (number(math.inf), number(-math.inf), number(math.nan)) == ("∞", "−∞", "not a number")
    assert [short(v) for v in (3.7971, 1234.5, -0.001234, 1e-9, 0)] == [
        *("3.80", "1,234", "−0.00123", "1.00e−09", "0")
    ]
    assert percent(0.0713) == "7.1\u00a0%"
    assert [duration(s) for s in (0.04, 12, 61, 7300)] == [
        "0.0 s",
        "12 s",
        "1 min 1 s",
        "2 h 1 min",
    ]
    assert [size(n) for n in (999, 5_100, 7_900_000, 2 * 10**9)] == [
        *("999 B", "5.1 kB", "7.9 MB", "2.0 GB")
    ]
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a", "b"], "; ") == "a; and b"


def test_ranges_in_words():
    assert phrase(angle(-6.4, 6.0)) == "turned by up to 6.4° clockwise and 6.0° counter-clockwise"
    assert phrase(angle(-6.0, 6.0)) == "turned by up to 6.0° either way"
    assert phrase(angle(-180, 180, part=2)) == "turned by any angle (part 2)"
    assert phrase(factor(0.66, 1.27)) == "scaled to 0.66 … 1.27 times its width"
    assert "5.5\u00a0% of its height up" in phrase(Range("y-shift", "% of height", 0, -5.5, 6.2))
    assert phrase(Range("gain", "", 0, -0.1, 1.0)) == "changed in gain by −0.10 … +1.0"
    assert phrase(Range("blur", "pixels", 0, 0, 1)) == "changed in blur (pixels) by 0 … +1.0"
    assert phrase(Range("scale of noise", "", 0, 0.1, 0.1)).endswith("deviation 0.100")
    assert (end(factor(1, 2), 1.5), end(angle(-3, 3), -3)) == ("×1.50", "−3.0°")


def test_wilson():
    """Against the root of |p̂ − p| = z √(p (1 − p) / n), which defines it."""
    for wrong, total in ((5, 150), (143, 2007), (1, 3)):
        for p in Rate(wrong, total).interval:
            gap = abs(wrong / total - p)
            assert gap == pytest.approx(1.959964 * math.sqrt(p * (1 - p) / total))
    assert Rate(0, 10).interval[0] == 0
    assert Rate(10, 10).interval[1] == 1
