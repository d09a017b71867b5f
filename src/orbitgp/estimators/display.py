"""What an estimator learned, for people who look at it in a notebook."""

from html import escape
from typing import Any

WIDTH, HEIGHT = 260, 56


def learned_html(estimator: Any) -> str:
    """The invariance in words, the evidence, and its curve as a small drawing."""
    rows = {
        "learned": estimator.orbit_.describe(),
        "evidence": f"{estimator.evidence_:,.1f} ± {estimator.evidence_error_:.1f} nats "
        f"({estimator.evidence_kind_})",
        **_size(estimator),
        "steps": f"{estimator.n_iter_} ({estimator.stopped_})",
    }
    cells = "".join(
        f"<tr><th style='text-align:left;padding-right:1em'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in rows.items()
    )
    return (
        "<div class='orbitgp-learned' style='font-family:sans-serif;font-size:0.9em;margin:0.5em'>"
        f"<table>{cells}</table>{_curve_svg(estimator.evidence_curve_)}</div>"
    )


def _size(estimator: Any) -> dict[str, str]:
    """What the posterior rests on."""
    count = f"{len(estimator.model_.posterior.points):,}"
    if estimator.evidence_kind_ != "exact":
        return {"inducing variables": count}
    return {"exact inference": f"{count} inputs × {estimator.num_draws_} shared transformations"}


def _curve_svg(curve: list[Any]) -> str:
    """Return the evidence per input over the steps, as a drawing."""
    values = [point.per_input for point in curve if abs(point.per_input) < float("inf")]
    if len(values) < 2 or min(values) == max(values):
        return ""
    low, high = min(values), max(values)
    places = [
        f"{place * WIDTH / (len(values) - 1):.1f},{HEIGHT * (high - value) / (high - low):.1f}"
        for place, value in enumerate(values)
    ]
    return (
        f"<svg role='img' aria-label='evidence per input, {low:.2f} to {high:.2f} nats' "
        f"width='{WIDTH}' height='{HEIGHT + 4}' viewBox='0 -2 {WIDTH} {HEIGHT + 4}'>"
        f"<polyline points='{' '.join(places)}' fill='none' stroke='currentColor' "
        "stroke-width='2'/></svg>"
    )
