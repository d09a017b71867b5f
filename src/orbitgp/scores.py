"""How well a fitted estimator does on inputs that it has not seen, and a file that keeps it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import norm

from orbitgp.errors import FileError, InputError
from orbitgp.estimators import InvariantGPClassifier, InvariantGPRegressor
from orbitgp.sealed import MALFORMED, read_sealed, write_sealed

FORM = "orbitgp test"
BINS = 15
MAX_WORST = 24
MAX_CLASSES = 4096
CLASSIFICATION = ("error", "nll", "brier", "ece")
REGRESSION = ("rmse", "nll", "coverage95")


@dataclass(frozen=True)
class TestResult:
    """Metrics, and all that a report draws of a test.

    Classes are numbered in the order of `classes`, names that are empty for a regression. `worst`
    are the rows of the gravest mistakes, gravest first, and `inputs` their inputs.
    """

    kind: str
    metrics: dict[str, float]
    classes: tuple[str, ...]
    labels: np.ndarray
    """Numbers of classes [N], or targets [N, D]."""
    predictions: np.ndarray
    """Numbers of classes [N], or means [N, D]."""
    uncertainty: np.ndarray
    """Probabilities of the classes [N, C], or standard deviations [N, D]."""
    worst: np.ndarray
    inputs: np.ndarray
    files: tuple[str, ...] = ()
    """The files of these inputs, if they come from files."""


def evaluate(estimator: Any, X: Any, y: Any, *, files: Sequence[str] = ()) -> TestResult:
    """Predict each input and compare with its label; `files` are those of the inputs."""
    if not isinstance(estimator, InvariantGPClassifier | InvariantGPRegressor):
        raise InputError(
            "only a fitted InvariantGPClassifier or InvariantGPRegressor can be evaluated; got "
            f"{type(estimator).__name__}"
        )
    y = np.asarray(y)
    if not len(X) or len(X) != len(y):
        raise InputError(
            f"a test needs as many labels as inputs, and at least one; got {len(X)} inputs and "
            f"{len(y)} labels"
        )
    if files and len(files) != len(y):
        raise InputError(f"{len(files)} files for {len(y)} inputs; give one for each, or none")
    classifies = isinstance(estimator, InvariantGPClassifier)
    result = _classification(estimator, X, y) if classifies else _regression(estimator, X, y)
    return replace(result, files=tuple(files[row] for row in result.worst.tolist() if files))


def classification_metrics(probabilities: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Of probabilities [N, C] for labels 0 … C − 1.

    error: the fraction that is wrong; nll: −log p(label); brier: Σ_c (p_c − 1[c = label])², 0 … 2,
    both averaged; ece: see `calibration_error`.
    """
    right = probabilities.argmax(1) == labels
    one_hot = np.eye(probabilities.shape[1])[labels]
    with np.errstate(divide="ignore"):  # a label with no probability at all costs ∞
        nll = -np.log(probabilities[np.arange(len(labels)), labels])
    return {
        "error": float(1 - right.mean()),
        "nll": float(nll.mean()),
        "brier": float(((probabilities - one_hot) ** 2).sum(1).mean()),
        "ece": calibration_error(probabilities, right),
    }


def regression_metrics(
    means: np.ndarray, deviations: np.ndarray, targets: np.ndarray
) -> dict[str, float]:
    """Of Gaussian predictions [N, D], averaged over inputs and outputs.

    rmse in the unit of the targets; nll: −log N(target; mean, deviation²); coverage95: the fraction
    of targets in mean ± 1.96 deviations.
    """
    errors = targets - means
    return {
        "rmse": float(np.sqrt((errors**2).mean())),
        "nll": float(-norm.logpdf(targets, means, deviations).mean()),
        "coverage95": float((np.abs(errors) <= norm.ppf(0.975) * deviations).mean()),
    }


def calibration_bins(
    confidence: np.ndarray, right: np.ndarray, bins: int = BINS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return counts, sums of confidences and numbers of right predictions, each [bins].

    The bins have equal widths on [0, 1].
    """
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    count, sure, hits = (np.bincount(place, w, bins) for w in (None, confidence, right))
    return count, sure, hits


def calibration_error(probabilities: np.ndarray, right: np.ndarray, bins: int = BINS) -> float:
    """ECE: how far confidence and frequency of being right lie apart, averaged over bins."""
    count, sure, hits = calibration_bins(probabilities.max(1), right, bins)
    return float(np.abs(sure - hits).sum() / count.sum())


def write_test(result: TestResult, path: str | Path) -> None:
    """Keep a result as a sealed file, atomically; equal results give equal bytes."""
    arrays = {
        "labels": result.labels,
        "predictions": result.predictions,
        "uncertainty": result.uncertainty,
        "worst": result.worst,
        "inputs": result.inputs,
    }
    tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items() if array.size}
    config = {"kind": result.kind, "metrics": result.metrics, "classes": list(result.classes)}
    if result.files:
        config["files"] = list(result.files)
    write_sealed(Path(path), FORM, tensors, config)


def read_test(path: str | Path) -> TestResult:
    """Read what `write_test` wrote."""
    _, tensors, config = read_sealed(Path(path), FORM)
    try:
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        nothing = {"worst": np.zeros(0, np.int64), "inputs": np.zeros((0, 0), np.float32)}
        metrics = {str(name): float(value) for name, value in config["metrics"].items()}
        classes = tuple(str(name) for name in config["classes"])
        files = tuple(str(name) for name in config.get("files", ()))
        kept = {**nothing, **arrays}
        result = TestResult(str(config["kind"]), metrics, classes, **kept, files=files)
        _check(result)
    except MALFORMED as error:
        raise FileError(
            f"{path} does not hold the result of a test ({type(error).__name__}: {error}); "
            "evaluate the run again"
        ) from None
    return result


def _classification(estimator: InvariantGPClassifier, X: Any, y: np.ndarray) -> TestResult:
    place = {label: code for code, label in enumerate(estimator.classes_.tolist())}
    unknown = sorted({str(label) for label in y.tolist() if label not in place})
    if unknown:
        known = ", ".join(str(label) for label in place)
        raise InputError(
            f"the model knows the classes {known:.200}; got labels {', '.join(unknown):.200} in "
            "the test, which it cannot predict: leave them out, or name them as in training"
        )
    labels = np.array([place[label] for label in y.tolist()])
    probabilities = estimator.predict_proba(X)
    predictions = probabilities.argmax(1)
    wrong = np.flatnonzero(predictions != labels)
    worst = _first(wrong, probabilities[wrong, labels[wrong]])
    return TestResult(
        "classification",
        classification_metrics(probabilities, labels),
        tuple(str(label) for label in place),
        labels,
        predictions,
        probabilities,
        worst,
        _shown(estimator, np.asarray(X)[worst]),
    )


def _regression(estimator: InvariantGPRegressor, X: Any, y: np.ndarray) -> TestResult:
    means, deviations = estimator.predict(X, return_std=True)
    if means.shape != y.shape:
        raise InputError(f"the model predicts {list(means.shape)}; got targets {list(y.shape)}")
    shape = (len(y), -1)
    means, deviations = means.reshape(shape), deviations.reshape(shape)
    targets = y.astype(np.float64).reshape(shape)
    if not np.isfinite(targets).all():
        raise InputError("targets must be finite; leave out those that are NaN or infinite")
    surprise = np.abs((targets - means) / deviations).max(1)
    worst = _first(np.arange(len(y)), -surprise)
    return TestResult(
        "regression",
        regression_metrics(means, deviations, targets),
        (),
        targets,
        means,
        deviations,
        worst,
        _shown(estimator, np.asarray(X)[worst]),
    )


def _first(rows: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The rows that come first by these numbers, in that order."""
    return rows[np.argsort(order, kind="stable")[:MAX_WORST]]


def _shown(estimator: Any, X: np.ndarray) -> np.ndarray:
    """Inputs in the shape that the orbit acts on, small enough to keep."""
    shape = X.shape[1:] if estimator.image_shape is None else estimator.image_shape
    return X.astype(np.float32).reshape(len(X), *shape)


def _check(result: TestResult) -> None:
    """Refuse arrays that do not belong together."""
    many, classifies = len(result.labels), result.kind == "classification"
    if result.kind not in ("classification", "regression") or classifies != bool(result.classes):
        raise ValueError(f"a result of kind {result.kind!r:.40}")
    needed = CLASSIFICATION if classifies else REGRESSION
    if result.metrics.keys() != set(needed):
        raise ValueError(f"metrics {', '.join(result.metrics):.80}; needed are {needed}")
    width = len(result.classes) if classifies else result.labels.shape[1]
    shape = (many,) if classifies else (many, width)
    dtype = np.int64 if classifies else np.float64
    for array in (result.labels, result.predictions):
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(f"{array.dtype} {array.shape} where {dtype} {shape} is needed")
        if classifies and not (array.min() >= 0 and array.max() < width):
            raise ValueError("classes without a name")
    known = result.uncertainty.dtype == np.float64 and np.isfinite(result.uncertainty).all()
    if result.uncertainty.shape != (many, width) or not known:
        raise ValueError(f"an uncertainty of shape {result.uncertainty.shape}")
    numbers = (result.uncertainty, result.predictions, result.labels)
    if not all(np.isfinite(array).all() for array in numbers) or result.uncertainty.min() < 0:
        raise ValueError("values that are not finite, or below 0")
    if classifies and (result.uncertainty.max() > 1 + 1e-6 or width > MAX_CLASSES):
        raise ValueError(f"probabilities above 1, or {width} classes")
    if len(result.inputs) > MAX_WORST or len(result.files) not in (0, len(result.inputs)):
        raise ValueError(f"{len(result.inputs)} inputs from {len(result.files)} files")
    if result.worst.shape != (len(result.inputs),) or result.worst.dtype != np.int64:
        raise ValueError(f"{result.worst.shape} mistakes with {len(result.inputs)} inputs")
    if result.worst.size and not (result.worst.min() >= 0 and result.worst.max() < many):
        raise ValueError("mistakes that were not tested")
