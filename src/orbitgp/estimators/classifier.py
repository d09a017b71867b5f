"""InvariantGPClassifier."""

from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from orbitgp.errors import InputError
from orbitgp.estimators.base import InvariantGPEstimator, check_dense
from orbitgp.likelihoods.gaussian import OneHotGaussian


class InvariantGPClassifier(ClassifierMixin, InvariantGPEstimator):
    """A Gaussian-process classifier that learns which changes of an input leave its class alone.

    `orbit` is a name ("none", "affine", "rotation", "mirror", "quarter-turns", "dihedral") or an
    orbit. Images come as (n, H, W), (n, C, H, W), or flat with `image_shape`. After `fit`:
    `orbit_.describe()`, `evidence_` ± `evidence_error_` in nats, `evidence_curve_`, `classes_`,
    `n_iter_`. Deterministic for a given `random_state`.

    With `run`, a folder keeps settings, log, checkpoints and the model: the same call with the
    same data goes on where a killed one stood, and `orbitgp.load(run)` reads the model back.
    """

    def fit(self, X: Any, y: Any) -> "InvariantGPClassifier":
        """Learn from inputs and labels of any kind."""
        check_dense(X)
        X, y = validate_data(
            self, X, y, dtype=(np.float64, np.float32), allow_nd=True, ensure_min_samples=2
        )
        try:
            check_classification_targets(y)
            self.classes_, codes = np.unique(y, return_inverse=True)
        except TypeError as error:
            raise InputError(
                f"labels must be all numbers or all strings, so that they can be sorted ({error})"
            ) from None
        if len(self.classes_) < 2:
            raise InputError(
                f"a classifier needs at least 2 classes; got 1 class, {self.classes_[0]!r}"
            )
        likelihood = OneHotGaussian(len(self.classes_), noise=0.05)
        # codes have no noise, so with as many inducing variables as data the evidence would take
        # them for exact values and the noise to 0, which classes are not
        largest = min(len(X), max(1000, len(X) // 2))
        self._fit(X, y, torch.from_numpy(codes), likelihood, variance=0.2, largest=largest)
        return self

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
