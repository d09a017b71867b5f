"""What a fitted estimator found, for people and for programs."""

from dataclasses import asdict
from typing import Any

from orbitgp.cli.schemas import LearnedPart, Metrics, ScoresPart, Task


def task_of(estimator: Any) -> Task:
    """By what it has."""
    return "classification" if hasattr(estimator, "classes_") else "regression"


def learned_part(estimator: Any) -> LearnedPart:
    """The fitted attributes that matter."""
    classes = getattr(estimator, "classes_", None)
    ranges: list[Any] = [asdict(found) for found in estimator.orbit_.learned_ranges()]
    return {
        "task": task_of(estimator),
        "classes": None if classes is None else classes.tolist(),
        "learned": estimator.orbit_.describe(),
        "ranges": ranges,
        "evidence": float(estimator.evidence_),
        "evidence_error": float(estimator.evidence_error_),
        "evidence_kind": estimator.evidence_kind_,
        "num_draws": int(estimator.num_draws_),
        "steps": int(estimator.n_iter_),
        "stopped": str(estimator.stopped_),
        "num_inducing": None
        if estimator.evidence_kind_ == "exact"
        else len(estimator.model_.posterior.points),
        "full_mean": bool(estimator.sizes_["full_mean"]),
    }


def learned_rows(part: LearnedPart) -> dict[str, str]:
    """The same in words."""
    exact = part["num_inducing"] is None
    draws = part["num_draws"]
    shared = f"exact inference with {draws} shared transformation{'s' * (draws != 1)}"
    return {
        "learned": part["learned"],
        "evidence": f"{part['evidence']:,.1f} ± {part['evidence_error']:.1f} nats, "
        + ("exact" if exact else "a lower bound"),
        "model": shared if exact else f"{part['num_inducing']:,} inducing variables",
        "training": f"{part['steps']} steps; {part['stopped']}",
    }


def scores_part(result: Any) -> ScoresPart:
    """Of a TestResult."""
    metrics: Metrics = {name: float(value) for name, value in result.metrics.items()}
    return {"num_data": len(result.labels), "metrics": metrics}


def scores_text(part: ScoresPart) -> str:
    """The metrics on one line."""
    values = ", ".join(_metric(name, value) for name, value in part["metrics"].items())
    return f"{values} ({part['num_data']:,} inputs)"


def _metric(name: str, value: float | None) -> str:
    return f"error {value:.2%}" if name == "error" else f"{name} {value:.4g}"
