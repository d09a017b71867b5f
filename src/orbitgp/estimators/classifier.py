"""InvariantGPClassifier."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from torch import Tensor, nn

from orbitgp.callbacks.base import Callback
from orbitgp.data.recognise import stream_of
from orbitgp.distributed.current import current_group
from orbitgp.errors import InputError
from orbitgp.estimators.base import InvariantGPEstimator, check_dense
from orbitgp.estimators.survey import flat_labels, survey
from orbitgp.estimators.task import Task, Whole
from orbitgp.fit.settings import TrainingSettings
from orbitgp.likelihoods.gaussian import OneHotGaussian
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.likelihoods.polya_gamma import PolyaGamma, StickBreaking
from orbitgp.likelihoods.softmax import Softmax
from orbitgp.orbits.base import Orbit

MAX_RATIO = 300.0
"""Of the kernel's variance to the noise: codes have no noise, so the evidence would take it to 0,
where every wrong label would have to be explained."""

AUTO = "gaussian"
"""What likelihood="auto" stands for: codes, whose evidence and solve are exact.

The rule: of the likelihoods whose recorded errors are within two standard errors of the fewest, the
one that takes the least time. A test holds it against the record.
"""

LIKELIHOODS = ("auto", "gaussian", "polya-gamma", "softmax", "stick-breaking")

ROUNDS = 45.0
"""Passes of N M² operations where every round of a fixed point has precisions of its own."""


class InvariantGPClassifier(ClassifierMixin, InvariantGPEstimator):
    """A Gaussian-process classifier that learns which changes of an input leave its class alone.

    `orbit` is a name ("none", "affine", "rotation", "local", "affine+local", "mirror",
    "quarter-turns", "dihedral") or an orbit. Images come as (n, H, W), (n, C, H, W), or flat with
    `image_shape`. After `fit`: `orbit_.describe()`, `evidence_` ± `evidence_error_` in nats,
    `evidence_kind_` ("exact" or "bound"), `num_draws_`, `evidence_curve_`, `classes_`, `n_iter_`.
    Deterministic for a given `random_state`.

    `likelihood` says how labels depend on f: "gaussian" (one-hot codes with noise), "softmax",
    "stick-breaking", "polya-gamma" (two classes), or "auto", which is "gaussian".

    `budget_seconds` is roughly for the whole fit. Where it and the memory allow, inference is exact
    (by default up to some 20,000 inputs, as planned). Otherwise, or with `num_inducing`, it decides
    how many inducing variables there are, and whether the mean has one for every datum, which makes
    fewer errors. A `feature_map` is used as it is: its weights are not learned.

    With `run`, a folder keeps settings, log, checkpoints and the model: the same call with the
    same data goes on where a killed one stood, and `orbitgp.load(run)` reads the model back.
    """

    def __init__(
        self,
        orbit: str | Orbit = "none",
        *,
        likelihood: str = "auto",
        image_shape: tuple[int, ...] | None = None,
        feature_map: nn.Module | None = None,
        num_inducing: int | None = None,
        budget_seconds: float = 300.0,
        settings: TrainingSettings | None = None,
        run: str | Path | None = None,
        callbacks: Sequence[Callback] = (),
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            orbit,
            image_shape=image_shape,
            feature_map=feature_map,
            num_inducing=num_inducing,
            budget_seconds=budget_seconds,
            settings=settings,
            run=run,
            callbacks=callbacks,
            random_state=random_state,
            verbose=verbose,
        )
        self.likelihood = likelihood

    def fit(self, X: Any, y: Any) -> "InvariantGPClassifier":
        """Learn from inputs and labels of any kind."""
        X, y = self._validated(X, y)
        try:
            check_classification_targets(y)
            self.classes_ = np.unique(y)
        except TypeError as error:
            raise InputError(
                f"labels must be all numbers or all strings, so that they can be sorted ({error})"
            ) from None
        return self._fit_classes(X, y, None)

    def fit_stream(self, source: Any) -> "InvariantGPClassifier":
        """Learn from more examples than memory holds, read in a few passes of batches.

        `source` is a PyTorch Dataset or DataLoader, a Hugging Face data set, a `Stream` of
        `orbitgp.data`, or any iterable of (x, y) that can be gone through again. Scales and ranges
        are learned from an even sample, the posterior and the evidence from every example.
        """
        stream = stream_of(source)
        found = survey(stream, current_group(), classify=True)
        X, y = self._validated(found.x, found.y)
        check_classification_targets(y)
        self.classes_ = found.labels
        return self._fit_classes(
            X, y, Whole(stream, found.num_data, found.largest or 1.0, self._codes)
        )

    def _validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        check_dense(X)
        X, y = validate_data(
            self, X, y, dtype=(np.float64, np.float32), allow_nd=True, ensure_min_samples=2
        )
        return X, y

    def _fit_classes(
        self, X: np.ndarray, y: np.ndarray, whole: Whole | None
    ) -> "InvariantGPClassifier":
        num_classes = len(self.classes_)
        if num_classes < 2:
            raise InputError(
                f"a classifier needs at least 2 classes; got 1 class, {self.classes_[0]!r}"
            )
        self._fit(X, y, self._codes(y), self._task(num_classes, whole), whole)
        return self

    def _task(self, num_classes: int, whole: Whole | None) -> Task:
        """The likelihood that was asked for, and the sizes that suit it."""
        kind = self.likelihood
        if kind not in LIKELIHOODS:
            raise InputError(f"likelihood must be one of {', '.join(LIKELIHOODS)}; got {kind!r}")
        if kind == "auto":
            kind = AUTO
        codes = Task(OneHotGaussian(num_classes, noise=0.05), MAX_RATIO, whole is None)
        if kind == "gaussian":
            return codes
        if whole is not None:
            raise InputError(
                f"a stream needs likelihood='gaussian', whose solve is one pass; got {kind!r}"
            )
        final = local_likelihood(kind, num_classes)
        num_grams = 2.0 if final.has_constant_precision else ROUNDS * final.num_outputs
        return replace(codes, final=final, num_grams=num_grams)

    def _codes(self, labels: np.ndarray) -> Tensor:
        """The number of each label among the classes."""
        labels = flat_labels(labels)
        codes = np.searchsorted(self.classes_, labels).clip(max=len(self.classes_) - 1)
        unknown = self.classes_[codes] != labels
        if unknown.any():
            raise InputError(
                f"the label {labels[unknown][0]!r} was not there in the first pass; a stream must "
                "give the same examples in every pass"
            )
        return torch.from_numpy(codes)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, in the order of `classes_`."""
        prediction = self._predict(X)
        likelihood = self.model_.likelihood
        assert isinstance(likelihood, OneHotGaussian | LocalLikelihood)
        return likelihood.class_probabilities(prediction).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(1)]


def local_likelihood(kind: str, num_classes: int) -> LocalLikelihood:
    """The likelihood of this name."""
    if kind == "polya-gamma":
        if num_classes != 2:
            raise InputError(
                f"likelihood='polya-gamma' is for 2 classes; got {num_classes}: use 'softmax' or "
                "'stick-breaking'"
            )
        return PolyaGamma()
    return Softmax(num_classes) if kind == "softmax" else StickBreaking(num_classes)
