"""What a method predicts for the test inputs, and how good that is."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from orbitgp.scores import classification_metrics, regression_metrics

LEAST = 1e-12
"""Probabilities below this count as this, so that one sure mistake costs 28 nats and not ∞."""

NO_PROBABILITIES: dict[str, Any] = {"nll": None, "nll_error": None}


class Prediction(NamedTuple):
    """Classes or means [n], and how sure they are."""

    values: np.ndarray
    uncertainty: np.ndarray | None = None
    """Probabilities of the classes [n, K], standard deviations [n], or None."""
    about: Mapping[str, Any] = {}
    """What else is recorded, such as the orbit that was chosen."""


def of_probabilities(probabilities: np.ndarray, **about: Any) -> Prediction:
    """The most probable classes."""
    return Prediction(probabilities.argmax(1), probabilities, about)


def scores(prediction: Prediction, truth: np.ndarray) -> dict[str, Any]:
    """Scores of classes or, where the truth is no whole number, of means."""
    if truth.dtype.kind == "f":
        return _of_numbers(prediction, truth)
    return _of_classes(prediction, truth)


def _of_classes(prediction: Prediction, labels: np.ndarray) -> dict[str, Any]:
    """Error with its standard error √(e(1 − e)/n), NLL in nats and ECE of 15 bins."""
    error = float((prediction.values != labels).mean())
    found = {"error": error, "error_error": math.sqrt(error * (1 - error) / len(labels))}
    if prediction.uncertainty is None:
        return {**found, **NO_PROBABILITIES, "ece": None}
    probabilities = prediction.uncertainty.astype(np.float64).clip(LEAST, 1)
    nll = -np.log(probabilities[np.arange(len(labels)), labels])
    ece = classification_metrics(probabilities, labels)["ece"]
    return {**found, "nll": float(nll.mean()), "nll_error": standard_error(nll), "ece": ece}


def _of_numbers(prediction: Prediction, targets: np.ndarray) -> dict[str, Any]:
    """RMSE, MAE with its standard error, NLL in nats, and what 95 % intervals hold."""
    gaps = np.abs(targets - prediction.values)
    found = {
        "rmse": float(np.sqrt((gaps**2).mean())),
        "mae": float(gaps.mean()),
        "error_error": standard_error(gaps),
    }
    deviations = prediction.uncertainty
    if deviations is None:
        return {**found, **NO_PROBABILITIES, "coverage": None}
    metrics = regression_metrics(prediction.values, deviations, targets)
    nll = 0.5 * (gaps / deviations) ** 2 + np.log(deviations)  # up to a constant
    spread = {"nll_error": standard_error(nll)}
    return {**found, "nll": metrics["nll"], **spread, "coverage": metrics["coverage95"]}


def standard_error(values: np.ndarray) -> float:
    """Of their mean."""
    return float(values.std(ddof=1) / math.sqrt(len(values)))
