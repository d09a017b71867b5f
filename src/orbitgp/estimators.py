"""scikit-learn estimators: InvariantGPClassifier and InvariantGPRegressor."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from orbitgp.errors import InputError
from orbitgp.features import Standardize
from orbitgp.likelihoods.base import Likelihood
from orbitgp.likelihoods.gaussian import Gaussian, OneHotGaussian
from orbitgp.orbits.base import FiniteOrbit, Orbit
from orbitgp.orbits.names import starting_orbits
from orbitgp.training.callbacks import Callback, ProgressBar
from orbitgp.training.settings import TrainingSettings
from orbitgp.training.stages import affordable_points, default_memory, fit, initial_model
from orbitgp.values import OrbitSample, Prediction

STAGE_ONE_POINTS = 500
PREDICTION_SAMPLES = 32
LARGEST_ENUMERATED = 64
PREDICTION_BATCH = 256


class _InvariantGPEstimator(BaseEstimator):
    """What classifier and regressor share: inputs, the two stages, prediction noise drawn once."""

    def __init__(
        self,
        orbit: str | Orbit = "none",
        *,
        image_shape: tuple[int, ...] | None = None,
        feature_map: nn.Module | None = None,
        num_inducing: int | None = None,
        budget_seconds: float = 20.0,
        settings: TrainingSettings | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.orbit = orbit
        self.image_shape = image_shape
        self.feature_map = feature_map
        self.num_inducing = num_inducing
        self.budget_seconds = budget_seconds
        self.settings = settings
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _fit(self, X: np.ndarray, y: Tensor, likelihood: Likelihood, variance: float) -> None:
        """Both stages, and all fitted attributes that the two estimators share."""
        num_outputs = y.shape[1] if y.is_floating_point() else int(y.max()) + 1
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        generator = torch.Generator().manual_seed(int(seed))
        settings = self.settings or TrainingSettings()
        self.scale_ = self._scale_of(X)
        x = self._inputs(X)
        features = self.feature_map or (nn.Flatten() if self._has_images(X) else Standardize.of(x))
        starts = starting_orbits(self.orbit)
        largest = len(x) if starts[0].size == 1 else 2 * len(x)
        models = [
            initial_model(
                orbit,
                likelihood,
                x,
                num_outputs=num_outputs,
                num_points=min(STAGE_ONE_POINTS, largest),
                feature_map=features,
                variance=variance,
                generator=generator,
            )
            for orbit in starts
        ]
        outcome = fit(
            models,
            x,
            y,
            settings=settings,
            num_points=min(self._num_points(models[0].posterior.points, x, settings), largest),
            generator=generator,
            callback=ProgressBar() if self.verbose else Callback(),
        )
        self.model_ = outcome.model
        self.orbit_ = outcome.model.orbit
        self.evidence_ = outcome.evidence
        self.evidence_error_ = outcome.evidence_error
        self.evidence_curve_ = outcome.curve
        self.n_iter_ = outcome.num_steps
        self.stopped_ = outcome.stopped
        self.prediction_noise_ = self._prediction_noise(generator)

    def _num_points(self, points: Tensor, x: Tensor, settings: TrainingSettings) -> int:
        if self.num_inducing is not None:
            return self.num_inducing
        return affordable_points(
            len(x),
            points.shape[1],
            settings.fit_samples,
            seconds=self.budget_seconds,
            memory=default_memory(),
        )

    def _prediction_noise(self, generator: torch.Generator) -> Tensor | None:
        """Drawn once, so that a prediction depends on its own input alone; none if enumerated."""
        if isinstance(self.orbit_, FiniteOrbit) and self.orbit_.size <= LARGEST_ENUMERATED:
            return None
        return self.orbit_.noise(1, PREDICTION_SAMPLES, generator=generator)

    def _predict(self, X: Any) -> Prediction:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=(np.float64, np.float32), allow_nd=True)
        return self.model_.predict_from(self._samples(self._inputs(X)))

    def _samples(self, x: Tensor) -> Iterator[OrbitSample]:
        for batch in x.split(PREDICTION_BATCH):
            with torch.no_grad():
                if self.prediction_noise_ is None:
                    assert isinstance(self.orbit_, FiniteOrbit)
                    sample = self.orbit_.enumerate(batch)
                else:
                    noise = self.prediction_noise_.expand(len(batch), -1, -1)
                    sample = OrbitSample(self.orbit_.transform(batch, noise), self.orbit_.size)
                yield sample.map(self.model_.feature_map)

    def _has_images(self, X: np.ndarray) -> bool:
        return self.image_shape is not None or X.ndim > 2

    def _scale_of(self, X: np.ndarray) -> float:
        """One number for all of the data, so that no transformation notices."""
        largest = float(np.abs(X).max())
        return largest if largest > 0 else 1.0

    def _inputs(self, X: np.ndarray) -> Tensor:
        """Tensors of the shape that the orbit acts on: images in float32, vectors in float64."""
        scaled = np.asarray(X, dtype=np.float64) / self.scale_
        if not self._has_images(X):
            return torch.from_numpy(scaled)
        images = torch.from_numpy(scaled.astype(np.float32))
        if self.image_shape is None:
            return images
        if math.prod(self.image_shape) != math.prod(images.shape[1:]):
            raise InputError(
                f"inputs of shape {list(images.shape[1:])} do not hold images of image_shape="
                f"{tuple(self.image_shape)}; they have {math.prod(images.shape[1:])} values each"
            )
        return images.reshape(len(images), *self.image_shape)


class InvariantGPClassifier(ClassifierMixin, _InvariantGPEstimator):
    """A Gaussian-process classifier that learns which changes of an input leave its class alone.

    `orbit` is a name ("none", "affine", "rotation", "mirror", "quarter-turns", "dihedral") or an
    orbit. Images come as (n, H, W), (n, C, H, W), or flat with `image_shape`. After `fit`:
    `orbit_.describe()`, `evidence_` ± `evidence_error_` in nats, `evidence_curve_`, `classes_`,
    `n_iter_`. Deterministic for a given `random_state`.
    """

    def fit(self, X: Any, y: Any) -> "InvariantGPClassifier":
        """Learn from inputs and labels of any kind."""
        X, y = validate_data(
            self, X, y, dtype=(np.float64, np.float32), allow_nd=True, ensure_min_samples=2
        )
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"a classifier needs at least 2 classes; got 1 class, {self.classes_[0]!r}"
            )
        likelihood = OneHotGaussian(len(self.classes_), noise=0.05)
        self._fit(X, torch.from_numpy(codes), likelihood, variance=0.2)
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


class InvariantGPRegressor(RegressorMixin, _InvariantGPEstimator):
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
        self.flat_target_ = np.ndim(y) == 1
        self.target_mean_ = targets.mean(0)
        spread = targets.std(0)
        self.target_scale_ = np.where(spread > 0, spread, 1.0)
        standard = torch.from_numpy((targets - self.target_mean_) / self.target_scale_)
        self._fit(X, standard, Gaussian(noise=0.1), variance=1.0)
        # p(y) dy = p(t) dt for t = (y − mean) / scale
        self.evidence_ -= len(targets) * float(np.log(self.target_scale_).sum())
        return self

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
