"""What classifier and regressor share: inputs, runs, and prediction noise that is drawn once."""

import math
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from orbitgp.errors import InputError
from orbitgp.estimators.archive import read_fitted
from orbitgp.estimators.display import learned_html
from orbitgp.estimators.folder import NoFolder, RunFolder, digest_of
from orbitgp.estimators.sizes import STAGE_ONE_POINTS, affordable_sizes
from orbitgp.estimators.task import Task, Whole
from orbitgp.exact_model import ExactInvariantGP
from orbitgp.features import Standardize
from orbitgp.fit.exact import ExactFit, Problem
from orbitgp.fit.initial import exact_start
from orbitgp.fit.plan import exact_plan
from orbitgp.orbits.base import FiniteOrbit, Orbit
from orbitgp.orbits.names import starting_orbits
from orbitgp.training.callbacks import Callback, ProgressBar, Several
from orbitgp.training.current import current_group
from orbitgp.training.group import Group
from orbitgp.training.passes import Examples, Resident, Streamed
from orbitgp.training.run import Outcome, Plan, Run
from orbitgp.training.settings import TrainingSettings
from orbitgp.training.solving import default_memory
from orbitgp.training.starts import initial_model, with_orbit
from orbitgp.values import OrbitSample, Prediction

PREDICTION_SAMPLES = 32
LARGEST_ENUMERATED = 64
PREDICTION_BATCH = 256
SOLVE_SHARE = 0.2
"""Of the budget, for the last solve of approximate inference."""


@torch.no_grad()
def _num_features(feature_map: nn.Module, x: Tensor) -> int:
    """D, from one input."""
    return feature_map(x[:1]).shape[-1]


def _is_or_none(value: object, kind: type) -> bool:
    return value is None or isinstance(value, kind)


def check_dense(X: object) -> None:
    """scikit-learn's own refusal of sparse inputs is a TypeError; ours says what to do."""
    if hasattr(X, "tocsr"):
        raise InputError("sparse inputs are not supported; pass a dense array, as in X.toarray()")


def _scale_of(X: np.ndarray) -> float:
    """One number for all of the data, so that no transformation notices."""
    return float(np.abs(X).max()) or 1.0


def _check_same_data(digest: str, first: str, group: Group) -> None:
    """Refused by all processes at once, or those with the same data would wait for ever."""
    different = torch.tensor(float(digest != first))
    group.add_(different)
    if different:
        raise InputError(
            f"{different.item():.0f} of {group.size} processes were given other data than the "
            "first; all must call fit with the same X and y, and each takes its part of the "
            "work: to fit them apart, leave the process group first"
        )


class Warn(Callback):
    """What a guard had to do, as a warning of Python's: never silent."""

    def warned(self, message: str) -> None:
        """Said once."""
        warnings.warn(message, ConvergenceWarning, stacklevel=2)


class InvariantGPEstimator(BaseEstimator):
    """Parameters, training and prediction of both estimators."""

    def __init__(
        self,
        orbit: str | Orbit = "none",
        *,
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
        self.orbit = orbit
        self.image_shape = image_shape
        self.feature_map = feature_map
        self.num_inducing = num_inducing
        self.budget_seconds = budget_seconds
        self.settings = settings
        self.run = run
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _fit(
        self, X: np.ndarray, raw: np.ndarray, y: Tensor, task: Task, whole: Whole | None = None
    ) -> None:
        """Both stages, and all fitted attributes that the two estimators share.

        A run that was interrupted goes on where it stood; one that was finished is read back.
        """
        self._check_parameters()
        # what cannot be used is refused before a folder is made for it
        starts = starting_orbits(self.orbit)
        examples = self._examples(X, y, whole)
        group = current_group()
        folder = NoFolder() if self.run is None else RunFolder(Path(self.run), group)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        digest = digest_of(X, raw, *([] if whole is None else [np.array(whole.num_data)]))
        seed, first = group.from_first(lambda: [folder.open(self, digest, seed), digest])
        _check_same_data(digest, first, group)
        data = folder.model()
        if data is not None:
            read_fitted(self, data, Path(str(self.run)))
            return
        generator = torch.Generator().manual_seed(seed)
        told = (Warn(), folder.log, *self.callbacks, *[ProgressBar()] * bool(self.verbose))
        callback = Several(told if group.rank == 0 else ())
        run = self._run(starts, examples, task, generator, group)
        outcome = run.finish(callback, folder.checkpoint)
        self._take(outcome, generator)
        folder.finish(self, examples.x, y, raw)

    def _examples(self, X: np.ndarray, y: Tensor, whole: Whole | None) -> Examples:
        """The data as the model sees them: these, or a stream of which they are a sample."""
        self.scale_ = _scale_of(X) if whole is None else whole.scale
        x = self._inputs(X)
        if whole is None:
            return Resident(x, y)
        return Streamed(
            whole.stream,
            lambda batch_x, batch_y: (self._inputs(batch_x), whole.encode(batch_y)),
            whole.num_data,
            (x, y),
        )

    def _run(
        self,
        starts: Sequence[Orbit],
        examples: Examples,
        task: Task,
        generator: torch.Generator,
        group: Group,
    ) -> Run | ExactFit:
        """The run that these data and parameters ask for, at its beginning."""
        x = examples.x
        features = self.feature_map or (nn.Flatten() if x.ndim > 2 else Standardize.of(x))
        orbit, others = starts[0], starts[1:]
        simple = task.final is None and self.num_inducing is None and group.size == 1
        if simple and isinstance(examples, Resident):
            plan = exact_plan(
                orbit,
                num_data=len(x),
                num_features=_num_features(features, x),
                seconds=float(self.budget_seconds),
                memory=2 * default_memory(),
            )
            if plan is not None:
                model = exact_start(orbit, task.likelihood, x, features, generator=generator)
                problem = Problem(model, x, examples.y, task.max_ratio)
                settings = self.settings or TrainingSettings()
                return ExactFit(problem, plan, settings, generator=generator)
        first = initial_model(
            orbit,
            task.likelihood,
            x,
            num_outputs=task.num_outputs,
            num_points=min(STAGE_ONE_POINTS, len(x) if orbit.size == 1 else 2 * len(x)),
            feature_map=features,
            variance=task.variance,
            generator=generator,
        )
        models = [first, *(with_orbit(first, other) for other in others)]
        # threads and memory may differ from one machine to the next: the first process decides
        num_points, num_averaged, mean_samples = group.from_first(
            lambda: affordable_sizes(
                models[0],
                task,
                num_data=examples.num_data,
                num_resident=len(x),
                num_processes=group.size,
                seconds=SOLVE_SHARE * float(self.budget_seconds),
                num_inducing=None if self.num_inducing is None else int(self.num_inducing),
            )
        )
        return Run(
            models,
            examples,
            settings=self.settings or TrainingSettings(),
            plan=Plan(num_points, num_averaged, task.max_ratio, task.final, mean_samples),
            generator=generator,
            group=group,
        )

    def _take(self, outcome: Outcome, generator: torch.Generator) -> None:
        self.model_ = outcome.model
        self.orbit_ = outcome.model.orbit
        self.evidence_kind_ = outcome.kind
        self.evidence_ = outcome.evidence
        self.evidence_error_ = outcome.evidence_error
        self.evidence_curve_ = outcome.curve
        self.n_iter_ = outcome.num_steps
        self.stopped_ = outcome.stopped
        self.num_draws_ = outcome.num_draws
        self.prediction_noise_: Tensor | None = (
            outcome.model.posterior.noise
            if isinstance(outcome.model, ExactInvariantGP)
            else self._prediction_noise(generator)
        )

    def _check_parameters(self) -> None:
        """Refuse what no run could use before any work is done."""
        count, shape = self.num_inducing, self.image_shape
        whole = count is None or (isinstance(count, int | np.integer) and count >= 1)
        sized = shape is None or (
            isinstance(shape, Sequence)
            and 2 <= len(shape) <= 3
            and all(isinstance(length, int | np.integer) and length >= 1 for length in shape)
        )
        number = isinstance(self.budget_seconds, int | float | np.number)
        right = {
            "orbit": (isinstance(self.orbit, str | Orbit), "a name or an orbit"),
            "num_inducing": (whole, "a whole number from 1 on, or None"),
            "budget_seconds": (number and 0 < self.budget_seconds < math.inf, "positive"),
            "image_shape": (sized, "(H, W) or (C, H, W), or None"),
            "settings": (
                _is_or_none(self.settings, TrainingSettings),
                "a TrainingSettings, or None",
            ),
            "feature_map": (_is_or_none(self.feature_map, nn.Module), "a torch module, or None"),
            "callbacks": (
                isinstance(self.callbacks, Sequence)
                and all(isinstance(callback, Callback) for callback in self.callbacks),
                "a sequence of orbitgp.Callback",
            ),
        }
        for name, (is_right, expected) in right.items():
            if not is_right:
                raise InputError(f"{name} must be {expected}; got {getattr(self, name)!r:.80}")

    def _prediction_noise(self, generator: torch.Generator) -> Tensor | None:
        """Drawn once, so that a prediction depends on its own input alone; none if enumerated."""
        if isinstance(self.orbit_, FiniteOrbit) and self.orbit_.size <= LARGEST_ENUMERATED:
            return None
        draws = {"generator": generator, "group_size": PREDICTION_SAMPLES}
        return self.orbit_.noise(1, PREDICTION_SAMPLES, **draws)

    def _predict(self, X: Any) -> Prediction:
        check_is_fitted(self)
        check_dense(X)
        X = validate_data(self, X, reset=False, dtype=(np.float64, np.float32), allow_nd=True)
        return self.model_.predict_from(self._samples(self._inputs(X)))

    def _samples(self, x: Tensor) -> Iterator[OrbitSample]:
        for batch in x.split(PREDICTION_BATCH):
            with torch.no_grad():
                yield self.model_.sample_orbit_at(batch, self.prediction_noise_)

    def _repr_html_inner(self) -> str:
        """scikit-learn's diagram, and under it what was learned."""
        diagram = super()._repr_html_inner()
        return diagram + learned_html(self) if hasattr(self, "model_") else diagram

    def _has_images(self, X: np.ndarray) -> bool:
        return self.image_shape is not None or X.ndim > 2

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
