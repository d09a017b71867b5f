"""InvariantGPClassifier."""

from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from torch import Tensor

from orbitgp.data.recognise import stream_of
from orbitgp.errors import InputError
from orbitgp.estimators.base import InvariantGPEstimator, check_dense
from orbitgp.estimators.survey import flat_labels, survey
from orbitgp.estimators.task import Task, Whole
from orbitgp.likelihoods.gaussian import OneHotGaussian
from orbitgp.training.current import current_group

MAX_RATIO = 300.0
"""Of the kernel's variance to the noise: codes have no noise, so the evidence would take it to 0,
where every wrong label would have to be explained."""


class InvariantGPClassifier(ClassifierMixin, InvariantGPEstimator):
    """A Gaussian-process classifier that learns which changes of an input leave its class alone.

    `orbit` is a name ("none", "affine", "rotation", "local", "affine+local", "mirror",
    "quarter-turns", "dihedral") or an orbit. Images come as (n, H, W), (n, C, H, W), or flat with
    `image_shape`. After `fit`: `orbit_.describe()`, `evidence_` ± `evidence_error_` in nats,
    `evidence_curve_`, `classes_`, `n_iter_`. Deterministic for a given `random_state`.

    With `run`, a folder keeps settings, log, checkpoints and the model: the same call with the
    same data goes on where a killed one stood, and `orbitgp.load(run)` reads the model back.
    """

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
        # with as many inducing variables as data the bound is exact for a model without invariance
        # and not for one with: the evidence would say more of M than of the orbit
        num_data = len(X) if whole is None else whole.num_data
        largest = min(num_data, max(1000, num_data // 2))
        likelihood = OneHotGaussian(num_classes, noise=0.05)
        task = Task(likelihood, num_classes, 0.2, MAX_RATIO, largest)
        self._fit(X, y, self._codes(y), task, whole)
        return self

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
        assert isinstance(likelihood, OneHotGaussian)
        return likelihood.class_probabilities(prediction).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(1)]
