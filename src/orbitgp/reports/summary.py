"""The head of a report: what was learned, in words and a few numbers."""

from dataclasses import dataclass

from orbitgp.orbits.base import Identity
from orbitgp.reports.pictures import Kind
from orbitgp.reports.record import About, Record
from orbitgp.reports.words import listed, phrases

MAX_CLASSES = 12
"""That are named with their counts."""

NOUNS = {Kind.IMAGE: "images", Kind.SERIES: "series", Kind.OTHER: "inputs"}


@dataclass(frozen=True)
class Summary:
    """Sentences on what was learned and from what; `rival` is the orbit to compare it with."""

    finding: str
    data: str
    rival: str
    explains_ranges: bool


def summary(record: Record) -> Summary:
    """Of a run as it stands."""
    orbit = record.fitted and record.fitted.orbit
    affine = "such as “affine”" if record.kind is Kind.IMAGE else ""
    return Summary(
        finding=_finding(record),
        data=_data(record.about, record.kind) if record.about else "",
        rival=f"an orbit {affine}".strip() if isinstance(orbit, Identity) else "orbit “none”",
        explains_ranges=any(found.name != "scale of noise" for found in record.ranges),
    )


def _finding(record: Record) -> str:
    subject = ("a " if record.kind is Kind.SERIES else "an ") + record.kind.value
    label = "class" if record.classifies else "value"
    given = (
        f" It assumes a symmetry, which was given: {record.symmetry}." if record.symmetry else ""
    )
    unknown = [found.words for found in record.ranges if not found.identified]
    known = [found for found in record.ranges if found.identified]
    if known:
        who = "The model" if record.fitted else "So far the model"
        told = "has learned" if record.is_learned else "was told"
        rest = (
            f" Not identified, since each is worth less than 2 nats of evidence: {listed(unknown)}."
            if unknown
            else ""
        )
        when = f"{subject} keeps its {label} when it is {phrases(known)}"
        return f"{who} {told} that {when}.{given}{rest}"
    if record.ranges:
        return (
            f"The data do not say how far {subject} may be changed: each range is worth less than "
            f"2 nats of evidence ({listed(unknown)}).{given}"
        )
    if record.learned == Identity().describe():
        return (
            "No invariance was asked for. This is an ordinary Gaussian process: the one to compare "
            "others with."
        )
    if record.learned:
        return (
            f"This model assumes that {subject} keeps its {label} under a symmetry: "
            f"{record.learned}. Whether that is right has not been tested here: compare its "
            "evidence with that of a fit without the symmetry."
        )
    return "Nothing has been learned yet."


def _data(about: About, kind: Kind) -> str:
    """The data in one line: their name, number, shape and classes."""
    unit = " pixels" if kind is Kind.IMAGE else ""
    shape = " × ".join(str(length) for length in about.shape)
    parts = [f"Data: {about.source}"] if about.source else []
    parts += [f"{about.num_inputs:,} {NOUNS[kind]} of {shape}{unit}"]
    if about.classes:
        counts = [f"{name} ({count:,})" for name, count in about.classes.items()]
        more = f" and {len(counts) - MAX_CLASSES} more" if len(counts) > MAX_CLASSES else ""
        parts.append(f"{len(counts)} classes: {', '.join(counts[:MAX_CLASSES])}{more}")
    return " · ".join(parts)
