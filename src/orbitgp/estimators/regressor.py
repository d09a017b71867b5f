"""InvariantGPRegressor."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data
from torch import Tensor

from orbitgp.data.recognise import stream_of
from orbitgp.distributed.current import current_group
from orbitgp.errors import InputError
from orbitgp.estimators.base import InvariantGPEstimator, check_dense
from orbitgp.estimators.survey import survey
from orbitgp.estimators.task import Task, Whole
from orbitgp.fit.run import Outcome
from orbitgp.likelihoods.gaussian import Gaussian


class InvariantGPRegressor(RegressorMixin, InvariantGPEstimator):
    """A Gaussian-process regressor that learns which changes of an input leave its value alone.

    Takes one or many outputs; parameters and fitted attributes are those of the classifier. The
    evidence is that of the targets in their own units.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> "InvariantGPRegressor":
        """Learn from inputs and targets (n,) or (n, outputs)."""
        X, y = self._validated(X, y)
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        self.num_data_ = len(targets)
        largest = max(float(np.abs(targets).max()), np.finfo(np.float64).tiny)
        # squares of very large or small targets would leave the range of numbers
        self.target_mean_ = largest * (targets / largest).mean(0)
        spread = largest * (targets / largest).std(0)
        return self._fit_targets(X, y, spread, None)

    def fit_stream(self, source: Any) -> "InvariantGPRegressor":
        """Learn from more examples than memory holds; see `InvariantGPClassifier.fit_stream`."""
        stream = stream_of(source)
        found = survey(stream, current_group(), classify=False)
        X, y = self._validated(found.x, found.y)
        if not np.isfinite(found.squares).all():
            raise InputError("the squares of the targets are no numbers any more; rescale them")
        self.num_data_, self.target_mean_ = found.num_data, found.mean
        whole = Whole(stream, found.num_data, found.largest or 1.0, self._standard)
        return self._fit_targets(X, y, np.sqrt(found.squares / found.num_data), whole)

    def _validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        check_dense(X)
        X, y = validate_data(
            self,
            X,
            y,
            dtype=(np.float64, np.float32),
            allow_nd=True,
            ensure_min_samples=2,
            multi_output=True,
            y_numeric=True,
        )
        return X, y

    def _fit_targets(
        self, X: np.ndarray, y: np.ndarray, spread: np.ndarray, whole: Whole | None
    ) -> "InvariantGPRegressor":
        self.flat_target_ = np.ndim(y) == 1
        self.target_scale_ = np.where(spread > 0, spread, 1.0)
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        task = Task(Gaussian(noise=0.1), math.inf, whole is None)
        self._fit(X, targets, self._standard(y), task, whole)
        return self

    def _standard(self, y: np.ndarray) -> Tensor:
        """Targets with mean 0 and deviation 1."""
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return torch.from_numpy((targets - self.target_mean_) / self.target_scale_)

    def _take(self, outcome: Outcome) -> None:
        super()._take(outcome)
        # p(y) dy = p(t) dt for t = (y − mean) / scale
        shift = self.num_data_ * float(np.log(self.target_scale_).sum())
        self.evidence_ -= shift
        self.evidence_curve_ = [replace(e, elbo=e.elbo - shift) for e in outcome.curve]

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of y at each input and, if asked, its standard deviation, noise included."""
        prediction = self._predict(X)
        mean = prediction.mean.numpy() * self.target_scale_ + self.target_mean_
        mean = mean[:, 0] if self.flat_target_ else mean
        if not return_std:
            return mean
        likelihood = self.model_.likelihood
        assert isinstance(likelihood, Gaussian)
        with torch.no_grad():
            variance = (prediction.variance + likelihood.noise).numpy()
        deviation = np.sqrt(variance) * self.target_scale_
        return mean, deviation[:, 0] if self.flat_target_ else deviation
