"""InvariantGPRegressor."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from orbitgp.estimators.base import InvariantGPEstimator, check_dense
from orbitgp.likelihoods.gaussian import Gaussian
from orbitgp.training.run import Outcome


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
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        self.num_data_ = len(targets)
        self.flat_target_ = np.ndim(y) == 1
        largest = max(float(np.abs(targets).max()), np.finfo(np.float64).tiny)
        # squares of very large or small targets would leave the range of numbers
        self.target_mean_ = largest * (targets / largest).mean(0)
        spread = largest * (targets / largest).std(0)
        self.target_scale_ = np.where(spread > 0, spread, 1.0)
        standard = torch.from_numpy((targets - self.target_mean_) / self.target_scale_)
        self._fit(X, targets, standard, Gaussian(noise=0.1), variance=1.0, largest=len(X))
        return self

    def _take(self, outcome: Outcome, generator: torch.Generator) -> None:
        super()._take(outcome, generator)
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
