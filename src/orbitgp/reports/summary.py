"""The head of a report: what was learned, in words and a few numbers."""

from collections.abc import Sequence

from orbitgp.orbits.base import Identity
from orbitgp.reports.pictures import Kind
from orbitgp.reports.record import Fitted, Record
from orbitgp.reports.words import (
    duration,
    listed,
    number,
    percent,
    phrases,
    safe,
    short,
    wilson,
)
from orbitgp.scores import TestResult

MAX_CLASSES = 12
"""That are named with their counts."""


def head(record: Record) -> str:
    """Title, the finding in words, numbers, warnings."""
    task = "classification" if record.classifies else "regression"
    return (
        f'<header><p class="eyebrow">orbitgp report · {task}</p>'
        f"<h1>{safe(title(record))}</h1>"
        f'<p class="lead">{_finding(record)}</p>{_data(record)}{_figures(record)}</header>'
        f'<section class="prose" aria-label="Summary">{_warnings(record)}{_unfinished(record)}'
        f"{_meaning(record)}</section>"
    )


def title(record: Record) -> str:
    """The name of the folder."""
    return record.folder.resolve().name or "run"


def _finding(record: Record) -> str:
    subject = ("a " if record.kind is Kind.SERIES else "an ") + record.kind.value
    label = "class" if record.classifies else "value"
    given = (
        f" It assumes a symmetry, which was given: {record.symmetry}." if record.symmetry else ""
    )
    unknown = record.unidentified
    known = {name: ends for name, ends in record.ranges.items() if name not in unknown}
    if known:
        who = "The model" if record.fitted else "So far the model"
        told = "has learned" if record.is_learned else "was told"
        rest = (
            f" Not identified, since each is worth less than 2 nats of evidence: {_names(unknown)}."
            if unknown
            else ""
        )
        return safe(
            f"{who} {told} that {subject} keeps its {label} when it is {phrases(known)}."
            f"{given}{rest}"
        )
    if record.ranges:
        return safe(
            f"The data do not say how far {subject} may be changed: each range is worth less than "
            f"2 nats of evidence ({_names(unknown)}).{given}"
        )
    if record.learned == Identity().describe():
        return (
            "No invariance was asked for. This is an ordinary Gaussian process: the one to compare "
            "others with."
        )
    if record.learned:
        return safe(
            f"This model assumes that {subject} keeps its {label} under a symmetry: "
            f"{record.learned}. Whether that is right has not been tested here: compare its "
            "evidence with that of a fit without the symmetry."
        )
    return "Nothing has been learned yet."


def _names(ranges: Sequence[str]) -> str:
    """Without their units."""
    return listed([name.split(" (")[0] for name in ranges])


def _data(record: Record) -> str:
    """The data in one line: their name, number, shape and classes."""
    about = record.about
    if about is None:
        return ""
    nouns = {Kind.IMAGE: "images", Kind.SERIES: "series", Kind.OTHER: "inputs"}
    unit = " pixels" if record.kind is Kind.IMAGE else ""
    shape = " × ".join(str(length) for length in about.shape)
    parts = [f"{about.num_inputs:,} {nouns[record.kind]} of {shape}{unit}"]
    if about.source:
        parts.insert(0, f"Data: {about.source}")
    if about.classes:
        counts = [f"{name} ({count:,})" for name, count in about.classes.items()]
        more = f" and {len(counts) - MAX_CLASSES} more" if len(counts) > MAX_CLASSES else ""
        parts.append(f"{len(counts)} classes: {', '.join(counts[:MAX_CLASSES])}{more}")
    return f'<p class="data">{safe(" · ".join(parts))}</p>'


def _figures(record: Record) -> str:
    figures: list[tuple[str, str, str]] = []
    fitted, test = record.fitted, record.test
    if fitted is not None:
        error = f"{plus_minus(fitted.evidence_error)} nats, {_kind(fitted)}".strip()
        figures.append(("Evidence", number(fitted.evidence, 1), error))
    elif record.best is not None:
        error = f"{plus_minus(record.best.standard_error)} nats, so far".strip()
        figures.append(("Evidence", number(record.best.elbo, 1), error))
    if test is not None and test.kind == "classification":
        wrong = int((test.predictions != test.labels).sum())
        figures.append(
            ("Test error", percent(wrong / len(test.labels)), f"{wrong:,} of {len(test.labels):,}")
        )
    elif test is not None:
        figures.append(("Test RMSE", short(test.metrics["rmse"]), "in the unit of the target"))
    if fitted is not None:
        if fitted.kind == "exact":
            figures.append(("Training inputs", number(fitted.num_points), "all of them are used"))
            figures.append(("Transformations", number(fitted.num_draws), "shared by all inputs"))
        else:
            figures.append(("Inducing variables", number(fitted.num_points), "summarise the data"))
        figures.append(("Steps", number(fitted.num_steps), "of training"))
    figures.append(
        ("Time", duration(record.history.seconds), "from start to end" if fitted else "so far")
    )
    rows = "".join(
        f"<div><dt>{name}</dt><dd><b>{value}</b> <span>{rest}</span></dd></div>"
        for name, value, rest in figures
    )
    return f'<dl class="figures">{rows}</dl>'


def _warnings(record: Record) -> str:
    if not record.history.warnings:
        return ""
    items = "".join(f"<li>{safe(warning)}</li>" for warning in record.history.warnings)
    return f'<aside class="callout warn"><h2>Warnings of the run</h2><ul>{items}</ul></aside>'


def _unfinished(record: Record) -> str:
    if record.fitted is not None:
        return ""
    return (
        '<aside class="callout"><h2>This run is not finished</h2><p>The folder has no model yet, '
        "so this is its state so far. The same call of <code>fit</code>, or "
        "<code>orbitgp resume</code>, goes on where it stands.</p></aside>"
    )


def _meaning(record: Record) -> str:
    parts = []
    if any(name != "scale of noise" for name in record.ranges):
        free = (
            " The ends were not set by hand, and no test data were used: they are those with the "
            "most evidence."
        )
        parts.append(
            "<p><strong>How to read this.</strong> Every change up to these ends is taken to be "
            "equally likely, and a prediction is the mean over all of them."
            f"{free * (record.is_learned and record.fitted is not None)}</p>"
        )
    if record.fitted is not None:
        parts.append(_evidence(record.fitted, record.kind))
    parts.append(_test(record.test) if record.test is not None else _no_test(record))
    return "".join(parts)


def plus_minus(error: float) -> str:
    """An error, if there is one: the bound of an orbit that is enumerated is exact."""
    return f"± {number(error, 1)}" if error else ""


def _evidence(fitted: Fitted, kind: Kind) -> str:
    other = "orbit “none”"
    if isinstance(fitted.orbit, Identity):
        other = "an orbit such as “affine”" if kind is Kind.IMAGE else "an orbit"
    return (
        f"<p><strong>The evidence is {number(fitted.evidence, 1)} "
        f"{plus_minus(fitted.evidence_error)} nats.</strong> It is the logarithm of the "
        f"probability that the model gives to the training labels. {_quality(fitted)} Alone it "
        f"means little: fit the same data with {other}, and the model with more evidence is the "
        "one that explains them better. Compare models of the same data, the same features and "
        "the same kind of evidence only, and take no difference within twice the errors for one. "
        "Labels are modelled as numbers with Gaussian noise, which they are not, so a difference "
        "ranks models; it is not the odds that one of them is true.</p>"
        f"<p><strong>Training took {number(fitted.num_steps)} steps</strong> and ended because "
        f"{safe(_because(fitted.stopped))}.{_hint(fitted.stopped)}</p>"
    )


def _kind(fitted: Fitted) -> str:
    return "exact" if fitted.kind == "exact" else "a lower bound"


def _quality(fitted: Fitted) -> str:
    """What the number is, and what its error stands for."""
    if fitted.kind == "exact":
        draws = (
            f" for these {number(fitted.num_draws)} transformations; ± is how much it differs "
            "between sets of them"
        )
        return f"The number is exact{draws * bool(fitted.evidence_error)}."
    error = ", and ± is the standard error of its estimate" * bool(fitted.evidence_error)
    return (
        f"The number is a lower bound{error}. How far below the evidence it lies depends on the "
        "number of inducing variables and on the orbit, so small differences between orbits must "
        "not be interpreted."
    )


def _because(reason: str) -> str:
    return f"it was {reason}" if reason.startswith("interrupted") else reason


def _hint(reason: str) -> str:
    if "largest number of steps" not in reason:
        return ""
    return " If the evidence below still rises at the end, more steps may find more."


def _test(test: TestResult) -> str:
    total, metrics = len(test.labels), test.metrics
    if test.kind == "classification":
        wrong = int((test.predictions != test.labels).sum())
        low, high = wilson(wrong, total)
        return (
            f"<p><strong>Of {total:,} test inputs {wrong:,} were put into the wrong class:"
            f"</strong> an error of {percent(wrong / total)}, with a 95 % interval of "
            f"{percent(low)} to {percent(high)}. The confidence that it states is off by "
            f"{percent(metrics['ece'])} on average.</p>"
        )
    return (
        f"<p><strong>On {total:,} test inputs the root mean squared error is "
        f"{short(metrics['rmse'])}</strong>, in the unit of the target. Of the targets "
        f"{percent(metrics['coverage95'])} lie in the intervals that should hold 95 %.</p>"
    )


def _no_test(record: Record) -> str:
    if record.fitted is None:
        return ""
    return (
        f'<p class="missing">How well it predicts is not known yet: run '
        f"<code>orbitgp evaluate {safe(title(record))} --data …</code> with inputs that it has not "
        "seen, then write this report again.</p>"
    )
