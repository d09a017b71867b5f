"""How well a model predicts what it has not seen."""

from statistics import NormalDist

import numpy as np

from orbitgp.reports.charts import axis_of, bars, curve, dots, fractions, plot, straight
from orbitgp.reports.pictures import Kind, kind_of, limits, picture
from orbitgp.reports.record import Record
from orbitgp.reports.words import PERCENT, number, percent, safe, short, wilson
from orbitgp.scores import BINS, TestResult, confidence_bins

MAX_MATRIX = 40
MAX_DOTS = 1500
MAX_OUTPUTS = 4
LEVELS = (*(level / 20 for level in range(1, 20)), 0.99)


def performance(record: Record) -> str:
    """The section on the test; nothing without one, since the summary says how to get it."""
    test = record.test
    if test is None:
        return ""
    body = _classification(test) if test.kind == "classification" else _regression(test)
    return (
        f'<section id="test"><h2>Test</h2><p>{len(test.labels):,} inputs that training has not '
        f"seen.</p>{_metrics(test)}{body}{_worst(test)}</section>"
    )


def _metrics(test: TestResult) -> str:
    words = {
        "error": ("Error", "fraction put into the wrong class"),
        "nll": ("Negative log likelihood", "nats for each label; less is better"),
        "brier": ("Brier score", "squared error of the probabilities, 0 … 2; less is better"),
        "ece": ("Calibration error", f"confidence against frequency, in {BINS} bins"),
        "rmse": ("Root mean squared error", "in the unit of the target"),
        "coverage95": ("Coverage", "of the 95 % intervals; 95 % is right"),
    }
    rows = "".join(
        f'<tr><th scope="row">{words[name][0]}</th><td class="num">{_metric(name, value)}</td>'
        f"<td>{words[name][1]}</td></tr>"
        for name, value in test.metrics.items()
        if name in words
    )
    return f'<div class="scroll"><table class="facts">{rows}</table></div>'


def _metric(name: str, value: float) -> str:
    if name in ("error", "ece", "coverage95"):
        return percent(value, 2)
    return number(value, 4) if abs(value) < 10 else short(value)


def _classification(test: TestResult) -> str:
    return f'<div class="pair">{_confusions(test)}{_reliability(test)}</div>{_by_class(test)}'


def _confusions(test: TestResult) -> str:
    counts = confusion_counts(test)
    many = len(test.classes)
    drawing = confusion_table(counts, test.classes) if many <= MAX_MATRIX else ""
    text = (
        "Rows are true classes, columns predicted ones. Blue is right, orange wrong."
        if drawing
        else f"{many} classes are too many for a matrix; these are the pairs most often mixed up."
    )
    pairs = _frequent(counts, test.classes) if many > 2 else ""
    wide = " whole" if many > 12 else ""
    return (
        f'<figure class="confusion{wide}"><figcaption><h3>Confusions</h3><p>{text}</p></figcaption>'
        f"<div>{drawing}{pairs}</div></figure>"
    )


def _by_class(test: TestResult) -> str:
    """Sensitivity and specificity of each class, with 95 % intervals."""
    if len(test.classes) > MAX_MATRIX:
        return ""
    counts = confusion_counts(test)
    rows = "".join(
        f'<tr><th scope="row">{safe(name)}</th><td class="num">{int(counts[k].sum()):,}</td>'
        f'<td class="num">{_rate(int(counts[k, k]), int(counts[k].sum()))}</td>'
        f'<td class="num">{_rate(*_rejected(counts, k))}</td></tr>'
        for k, name in enumerate(test.classes)
    )
    return (
        "<figure><figcaption><h3>Each class</h3><p>Sensitivity: how many of the class are found. "
        "Specificity: how many of the others are not taken for it. In brackets 95 % intervals.</p>"
        '</figcaption><div class="scroll"><table class="facts"><thead><tr><th scope="col">Class'
        '</th><th scope="col" class="num">Inputs</th><th scope="col" class="num">Sensitivity</th>'
        '<th scope="col" class="num">Specificity</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></figure>"
    )


def _rejected(counts: np.ndarray, k: int) -> tuple[int, int]:
    """Inputs of other classes that are not taken for class k, and all of them."""
    others = int(counts.sum() - counts[k].sum())
    return others - int(counts[:, k].sum() - counts[k, k]), others


def _rate(hits: int, total: int) -> str:
    if not total:
        return "–"
    low, high = wilson(hits, total)
    return f"{percent(hits / total)} <span>({percent(low)} to {percent(high)})</span>"


def confusion_counts(test: TestResult) -> np.ndarray:
    """How often each true class, in rows, was taken for each other, in columns."""
    many = len(test.classes)
    return np.bincount(test.labels * many + test.predictions, minlength=many**2).reshape(many, many)


def confusion_table(counts: np.ndarray, classes: tuple[str, ...]) -> str:
    """A heat map that is a table: colour by the share of the true class."""
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    wrong = share - np.diag(np.diag(share))
    strength = np.sqrt(wrong / max(float(wrong.max()), 1e-12)) * 0.85
    np.fill_diagonal(strength, np.diag(share) * 0.9)
    shades = strength.tolist()
    head = "".join(f'<th scope="col" title="{safe(c)}"><i>{safe(c)}</i></th>' for c in classes)
    rows = "".join(
        f'<tr><th scope="row" title="{safe(name)}"><i>{safe(name)}</i></th>'
        + "".join(
            _cell(count, shade, i == j, f"{name} taken for {classes[j]}")
            for j, (count, shade) in enumerate(zip(counts[i].tolist(), shades[i], strict=True))
        )
        + "</tr>"
        for i, name in enumerate(classes)
    )
    dense = "dense" if len(classes) > 12 else "few" if len(classes) < 5 else ""
    return (
        f'<div class="scroll" tabindex="0"><table class="matrix {dense}"><thead><tr>'
        f'<td class="corner">true ↓<br>predicted →</td>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cell(count: int, strength: float, right: bool, words: str) -> str:
    if not count:
        return '<td class="none">·</td>'
    kind = ("right" if right else "wrong") + (" strong" if strength > 0.72 else "")
    return (
        f'<td class="{kind}" style="--a:{strength:.2f}" title="{safe(words)}: {count:,}">'
        f"{count:,}</td>"
    )


def _frequent(counts: np.ndarray, classes: tuple[str, ...]) -> str:
    """The five pairs that are mixed up most."""
    off = counts - np.diag(np.diag(counts))
    order = [divmod(int(k), len(classes)) for k in np.argsort(-off, axis=None, kind="stable")[:5]]
    rows = "".join(
        f"<tr><td>{safe(classes[i])} taken for {safe(classes[j])}</td>"
        f'<td class="num">{off[i, j]:,}</td></tr>'
        for i, j in order
        if off[i, j]
    )
    if not rows:
        return "<p>Nothing was mixed up.</p>"
    return (
        '<details><summary>Most frequent confusions</summary><div class="scroll">'
        f'<table class="facts">{rows}</table></div></details>'
    )


def _reliability(test: TestResult) -> str:
    confidence = test.uncertainty.max(1)
    return (
        "<figure><figcaption><h3>Calibration</h3><p>How often it is right when it says how sure it "
        "is; larger dots are more inputs, bars 95 % intervals. On the diagonal it keeps its word; "
        "below, it is too sure of itself.</p></figcaption>"
        f"<div>{reliability_chart(confidence, test.predictions == test.labels)}</div></figure>"
    )


def reliability_chart(confidence: np.ndarray, right: np.ndarray) -> str:
    """Frequency of being right over confidence, and how often each confidence is given."""
    place = confidence_bins(confidence)
    counts = np.bincount(place, minlength=BINS)
    x, y = fractions("confidence (%)"), fractions("right (%)")
    points = [
        (float(confidence[place == b].mean()), float(right[place == b].mean()))
        for b in range(BINS)
        if counts[b]
    ]
    radii = 2.5 + 4.5 * np.sqrt(counts[counts > 0] / counts.max())
    ends = [wilson(int(right[place == b].sum()), int(counts[b])) for b in range(BINS) if counts[b]]
    whiskers = "".join(
        straight((sure, low), (sure, high), x, y, colour="whisker")
        for (sure, _), (low, high) in zip(points, ends, strict=True)
    )
    marks = (
        straight((0, 0), (1, 1), x, y)
        + whiskers
        + "".join(
            dots([point], x, y, radius=radius)
            for point, radius in zip(points, radii.tolist(), strict=True)
        )
    )
    above = plot(
        x,
        y,
        label=f"Reliability in {len(points)} bins of confidence",
        shape="square",
        curves=curve(points, x, y),
        marks=marks,
    )
    most = axis_of([0, float(counts.max())], "inputs", margin=0.0, count=2)
    assert most is not None
    below = plot(
        x,
        most,
        label="Histogram of confidence",
        shape="low",
        marks=bars(counts.astype(float).tolist(), most),
    )
    return above + below


def _worst(test: TestResult) -> str:
    kind = kind_of(tuple(test.inputs.shape[1:])) if len(test.inputs) else Kind.OTHER
    if kind is Kind.OTHER:
        return ""
    tiles = "".join(
        f"<figure>{picture(x, *limits(x), words='')}<figcaption>{_mistake(test, row)}{file}"
        "</figcaption></figure>"
        for x, row, file in zip(test.inputs, test.worst.tolist(), _files(test), strict=True)
    )
    rule = (
        "those whose true class was given the least probability"
        if test.kind == "classification"
        else "those furthest from the mean, in standard deviations"
    )
    return (
        f"<figure><figcaption><h3>Worst mistakes</h3><p>Up to {len(test.inputs)} of the test "
        f'inputs: {rule}.</p></figcaption><div class="tiles {kind.value}">{tiles}</div></figure>'
    )


def _files(test: TestResult) -> list[str]:
    """The name of each file, or nothing."""
    if not test.files:
        return [""] * len(test.inputs)
    return [f'<span class="file" title="{safe(name)}">{safe(name)}</span>' for name in test.files]


def _mistake(test: TestResult, row: int) -> str:
    if test.kind == "classification":
        guess = int(test.predictions[row])
        return (
            f"<b>{safe(test.classes[int(test.labels[row])])}</b> "
            f"<span>taken for {safe(test.classes[guess])}</span> "
            f'<span class="p">{_sure(float(test.uncertainty[row, guess]))}</span>'
        )
    truth, mean = test.labels[row, 0], test.predictions[row, 0]
    deviation = test.uncertainty[row, 0]
    return f"<b>{short(truth)}</b> <span>taken for {short(mean)} ± {short(deviation)}</span>"


def _sure(probability: float) -> str:
    """Never all the way, by rounding alone."""
    return (percent(probability, 0) if probability < 0.995 else "&gt;99" + PERCENT) + " sure"


def _regression(test: TestResult) -> str:
    outputs = min(test.labels.shape[1], MAX_OUTPUTS)
    figures = "".join(_scatter(test, output) for output in range(outputs))
    left = test.labels.shape[1] - outputs
    more = f'<p class="missing">{left} more outputs are not drawn.</p>' if left else ""
    return f'<div class="pair">{figures}{_intervals(test)}</div>{more}'


def _scatter(test: TestResult, output: int) -> str:
    name = f" of output {output + 1}" if test.labels.shape[1] > 1 else ""
    every = -(-len(test.labels) // MAX_DOTS)
    thinned = f" Every {every}th input is drawn." if every > 1 else ""
    drawing = scatter_chart(
        test.labels[::every, output],
        test.predictions[::every, output],
        test.uncertainty[::every, output],
    )
    return (
        f"<figure><figcaption><h3>Predictions{name}</h3><p>Predicted mean over true value; bars "
        f"are 95 % intervals.{thinned}</p></figcaption><div>{drawing}</div></figure>"
    )


def scatter_chart(truth: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> str:
    """Each prediction over its target, with the diagonal where both are the same."""
    both = [*truth.tolist(), *means.tolist()]
    x, y = axis_of(both, "true value"), axis_of(both, "predicted value")
    if x is None or y is None:
        return '<p class="missing">No prediction is finite.</p>'
    rows = list(zip(truth.tolist(), means.tolist(), (1.96 * deviations).tolist(), strict=True))
    whiskers = "".join(
        straight((t, max(m - s, y.low)), (t, min(m + s, y.high)), x, y, colour="whisker")
        for t, m, s in rows
    )
    points = [(t, m) for t, m, _ in rows]
    diagonal = straight((x.low, y.low), (x.high, y.high), x, y)
    marks = diagonal + whiskers + dots(points, x, y, radius=2.5)
    label = f"Predicted over true values of {len(points)} test inputs"
    return plot(x, y, label=label, shape="square", marks=marks)


def _intervals(test: TestResult) -> str:
    surprise = np.abs((test.labels - test.predictions) / test.uncertainty)
    return (
        "<figure><figcaption><h3>Calibration of intervals</h3><p>How many targets lie in intervals "
        "that promise to hold so many. Below the diagonal they are too narrow.</p></figcaption>"
        f"<div>{interval_chart(surprise)}</div></figure>"
    )


def interval_chart(surprise: np.ndarray) -> str:
    """Observed over promised coverage, from errors in standard deviations."""
    x, y = fractions("promised (%)"), fractions("observed (%)")
    points = [
        (level, float((surprise <= NormalDist().inv_cdf(0.5 + level / 2)).mean()))
        for level in LEVELS
    ]
    marks = straight((0, 0), (1, 1), x, y) + dots(points, x, y)
    curves = curve(points, x, y)
    label = "Observed over promised coverage of intervals"
    return plot(x, y, label=label, shape="square", curves=curves, marks=marks)
