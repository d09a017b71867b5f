"""How well a model predicts what it has not seen."""

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from scipy.stats import binomtest, norm

from orbitgp.reports.charts import axis_of, bars, curve, dots, fractions, plot, straight
from orbitgp.reports.matrix import Matrix, confusion_counts, confusion_matrix
from orbitgp.reports.pictures import Kind, kind_of, limits, picture
from orbitgp.reports.record import Record
from orbitgp.reports.words import PERCENT, Ends, number, percent, short
from orbitgp.scores import BINS, TestResult, calibration_bins

MAX_MATRIX = 40
MAX_DOTS = 1500
MAX_OUTPUTS = 4
LEVELS = (*(level / 20 for level in range(1, 20)), 0.99)

METRICS = {
    "error": ("Error", "fraction of misclassified inputs"),
    "nll": ("Negative log likelihood", "nats for each label; less is better"),
    "brier": ("Brier score", "squared error of the probabilities, 0 … 2; less is better"),
    "ece": ("Calibration error", f"confidence against frequency, in {BINS} bins"),
    "rmse": ("Root mean squared error", "in the unit of the target"),
    "coverage95": ("Coverage", "of the 95 % intervals; 95 % is ideal"),
}


@dataclass(frozen=True)
class Rate:
    """A number of hits among all of some inputs."""

    hits: int
    total: int

    @property
    def share(self) -> float:
        """Return the fraction, from 0 to 1."""
        return self.hits / self.total

    @property
    def interval(self) -> Ends:
        """Return the 95 % interval of the fraction (Wilson 1927)."""
        found = binomtest(self.hits, self.total).proportion_ci(method="wilson")
        return float(found.low), float(found.high)


@dataclass(frozen=True)
class Mistake:
    """An input, its true label, and what it was taken for."""

    picture: Markup
    truth: str
    guess: str
    certainty: str
    file: str


@dataclass(frozen=True)
class Classification:
    """`rates` are how many of each class are found, and of the others are not taken for it.

    There are none, and no matrix, if there are too many classes.
    """

    num_classes: int
    mistakes: Rate
    matrix: Matrix | None
    confused: tuple[tuple[str, str], ...]
    reliability: tuple[Markup, Markup]
    rates: tuple[tuple[str, Rate, Rate], ...]


@dataclass(frozen=True)
class Regression:
    """A drawing for each output; an input in `every` is drawn, and the last outputs are not."""

    scatters: tuple[Markup, ...]
    every: int
    num_left: int
    intervals: Markup


@dataclass(frozen=True)
class Performance:
    """What the test showed; `shape` is what the inputs of the worst mistakes are."""

    num_inputs: int
    metrics: tuple[tuple[str, ...], ...]
    details: Classification | Regression
    shape: str
    worst: tuple[Mistake, ...]


def performance(record: Record) -> Performance | None:
    """Nothing without a test, since the summary says how to get one."""
    test = record.test
    if test is None:
        return None
    kind = kind_of(tuple(test.inputs.shape[1:])) if len(test.inputs) else Kind.OTHER
    metrics = ((name, value) for name, value in test.metrics.items() if name in METRICS)
    return Performance(
        num_inputs=len(test.labels),
        metrics=tuple((METRICS[n][0], _metric(n, value), METRICS[n][1]) for n, value in metrics),
        details=_classification(test) if test.kind == "classification" else _regression(test),
        shape=kind.value,
        worst=() if kind is Kind.OTHER else _worst(test),
    )


def _metric(name: str, value: float) -> str:
    if name in ("error", "ece", "coverage95"):
        return percent(value, 2)
    return number(value, 4) if abs(value) < 10 else short(value)


def _classification(test: TestResult) -> Classification:
    counts, few = confusion_counts(test), len(test.classes) <= MAX_MATRIX
    return Classification(
        num_classes=len(test.classes),
        mistakes=Rate(int(counts.sum() - counts.trace()), int(counts.sum())),
        matrix=confusion_matrix(counts, test.classes) if few else None,
        confused=_confused(counts, test.classes),
        reliability=reliability_charts(test.uncertainty.max(1), test.predictions == test.labels),
        rates=_rates(counts, test.classes) if few else (),
    )


def _rates(counts: np.ndarray, classes: tuple[str, ...]) -> tuple[tuple[str, Rate, Rate], ...]:
    hits, own, others = np.diag(counts), counts.sum(1), counts.sum() - counts.sum(1)
    rejected = others - (counts.sum(0) - hits)
    rows = zip(classes, *(n.tolist() for n in (hits, own, rejected, others)), strict=True)
    return tuple((name, Rate(a, b), Rate(c, d)) for name, a, b, c, d in rows)


def _confused(counts: np.ndarray, classes: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the five most frequent confusions."""
    off = counts - np.diag(np.diag(counts))
    order = [divmod(int(k), len(classes)) for k in np.argsort(-off, axis=None, kind="stable")[:5]]
    pairs = ((f"{classes[i]} predicted as {classes[j]}", int(off[i, j])) for i, j in order)
    return tuple((words, number(count)) for words, count in pairs if count)


def reliability_charts(confidence: np.ndarray, right: np.ndarray) -> tuple[Markup, Markup]:
    """Frequency of being right over confidence, and how often each confidence is given."""
    counts, sure, hits = calibration_bins(confidence, right)
    used = counts > 0
    rates = [Rate(int(a), int(b)) for a, b in zip(hits[used], counts[used], strict=True)]
    x, y = fractions("confidence (%)"), fractions("right (%)")
    middles = (sure[used] / counts[used]).tolist()
    points = [(middle, rate.share) for middle, rate in zip(middles, rates, strict=True)]
    radii = 2.5 + 4.5 * np.sqrt(counts[used] / counts.max())
    marks = straight((0, 0), (1, 1), x, y)
    for middle, rate in zip(middles, rates, strict=True):
        low, high = rate.interval
        marks += straight((middle, low), (middle, high), x, y, colour="whisker")
    for point, radius in zip(points, radii.tolist(), strict=True):
        marks += dots([point], x, y, radius=radius)
    label = f"Reliability in {len(points)} bins of confidence"
    above = plot(x, y, label=label, shape="square", curves=curve(points, x, y), marks=marks)
    most = axis_of([0, float(counts.max())], "inputs", margin=0.0, count=2)
    assert most is not None
    marks = bars(counts.astype(float).tolist(), most)
    return above, plot(x, most, label="Histogram of confidence", shape="low", marks=marks)


def _worst(test: TestResult) -> tuple[Mistake, ...]:
    files = test.files or [""] * len(test.inputs)
    rows = zip(test.inputs, test.worst.tolist(), files, strict=True)
    return tuple(Mistake(picture(x, *limits(x)), *_words(test, row), file) for x, row, file in rows)


def _words(test: TestResult, row: int) -> tuple[str, str, str]:
    """The truth, what it was taken for, and how sure the model was."""
    if test.kind == "classification":
        truth, guess = int(test.labels[row]), int(test.predictions[row])
        return test.classes[truth], test.classes[guess], _sure(float(test.uncertainty[row, guess]))
    truth, mean = short(test.labels[row, 0]), short(test.predictions[row, 0])
    return truth, f"{mean} ± {short(test.uncertainty[row, 0])}", ""


def _sure(probability: float) -> str:
    """Never all the way, by rounding alone."""
    return (percent(probability, 0) if probability < 0.995 else ">99" + PERCENT) + " sure"


def _regression(test: TestResult) -> Regression:
    outputs = range(min(test.labels.shape[1], MAX_OUTPUTS))
    every = -(-len(test.labels) // MAX_DOTS)
    drawn = [values[::every].T for values in (test.labels, test.predictions, test.uncertainty)]
    return Regression(
        scatters=tuple(scatter_chart(*(values[output] for values in drawn)) for output in outputs),
        every=every,
        num_left=test.labels.shape[1] - len(outputs),
        intervals=interval_chart(np.abs((test.labels - test.predictions) / test.uncertainty)),
    )


def scatter_chart(truth: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> Markup:
    """Each prediction over its target, with the diagonal where both are the same."""
    both = [*truth.tolist(), *means.tolist()]
    x, y = axis_of(both, "true value"), axis_of(both, "predicted value")
    if x is None or y is None:
        return Markup()
    rows = list(zip(truth.tolist(), means.tolist(), (1.96 * deviations).tolist(), strict=True))
    marks = straight((x.low, y.low), (x.high, y.high), x, y)
    marks += Markup().join(
        straight((t, max(m - s, y.low)), (t, min(m + s, y.high)), x, y, colour="whisker")
        for t, m, s in rows
    )
    points = [(t, m) for t, m, _ in rows]
    label = f"Predicted over true values of {len(points)} test inputs"
    return plot(x, y, label=label, shape="square", marks=marks + dots(points, x, y, radius=2.5))


def interval_chart(surprise: np.ndarray) -> Markup:
    """Draw observed over nominal coverage, from errors in standard deviations."""
    x, y = fractions("nominal (%)"), fractions("observed (%)")
    points = [(level, float((surprise <= norm.interval(level)[1]).mean())) for level in LEVELS]
    marks = straight((0, 0), (1, 1), x, y) + dots(points, x, y)
    curves = curve(points, x, y)
    label = "Observed over nominal coverage of intervals"
    return plot(x, y, label=label, shape="square", curves=curves, marks=marks)
