"""What classifier and regressor share: inputs, runs, and prediction noise that is drawn once."""

import copy
import functools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from orbitgp.callbacks.base import Callback, ProgressBar, Several
from orbitgp.devices import chosen_device, memory_of, rates_of
from orbitgp.distributed.current import current_group
from orbitgp.distributed.group import Group
from orbitgp.errors import InputError
from orbitgp.estimators.archive import read_fitted
from orbitgp.estimators.display import learned_html
from orbitgp.estimators.folder import NoFolder, RunFolder, about_data, digest_of
from orbitgp.estimators.inputs import (
    check_alike,
    check_dense,
    check_layout,
    explained,
    scale_of,
)
from orbitgp.estimators.task import Task, Whole
from orbitgp.fit.budget import Resources, affordable
from orbitgp.fit.exact import solve_exact
from orbitgp.fit.feature_choice import NAMES as FEATURES
from orbitgp.fit.feature_choice import compare_features, describe, feature_makers, num_compared
from orbitgp.fit.inducing import solve_with_inducing
from orbitgp.fit.initial import initial_model, max_axes
from orbitgp.fit.learning import Learning
from orbitgp.fit.log_odds import solve_log_odds
from orbitgp.fit.named_kernels import NAMES as KERNELS
from orbitgp.fit.plan import Plan, Work, check_memory, plan_of
from orbitgp.fit.problem import Problem, Sampling
from orbitgp.fit.run import Outcome, run_fit
from orbitgp.fit.settings import TrainingSettings
from orbitgp.fit.solution import Inference
from orbitgp.inference.passes import Examples, Resident, Streamed
from orbitgp.kernels import Kernel
from orbitgp.orbit_model import OrbitModel
from orbitgp.orbits.base import Orbit
from orbitgp.orbits.names import kind_of, starting_orbit
from orbitgp.stochastic.fit import fit_stochastic, with_recognition
from orbitgp.stochastic.settings import StochasticSettings
from orbitgp.values import OrbitSample, Prediction

PREDICTION_BATCH = 256

INFERENCES = ("auto", "exact", "inducing", "stochastic")


@torch.no_grad()
def _num_features(feature_map: nn.Module, x: Tensor) -> int:
    """D, from one input, on which a feature map is tried before anything else is done."""
    try:
        features = feature_map(x[:1])
    except InputError:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        found = f"failed ({type(error).__name__}: {error})"
    else:
        if isinstance(features, Tensor) and features.shape[:-1] == (1,):
            return features.shape[-1]
        kind = list(features.shape) if isinstance(features, Tensor) else type(features).__name__
        found = f"gave {kind}"
    raise InputError(
        f"feature_map {found} for one input {list(x[:1].shape)}; it must map inputs [B, *event] to "
        "features [B, D]: end it with torch.nn.Flatten() if it keeps more axes"
    )


def _is_or_none(value: object, kind: type) -> bool:
    return value is None or isinstance(value, kind)


def _warn_of_training(feature_map: object) -> None:
    """A network that could be trained is used as it is, which its owner may not expect."""
    weights = feature_map.parameters() if isinstance(feature_map, nn.Module) else ()
    if any(part.requires_grad for part in weights):
        warnings.warn(
            "feature_map has weights that could be trained, but fit uses them as they are; train "
            "it before, and pass feature_map.eval().requires_grad_(False)",
            UserWarning,
            stacklevel=4,
        )


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


def _inference(plan: Plan, task: Task) -> Inference:
    """Return the kind of inference that the plan and the likelihood need."""
    if task.final is not None:
        return functools.partial(solve_log_odds, task.final)
    return solve_with_inducing if plan.num_points else solve_exact


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
        feature_map: str | nn.Module | None = "auto",
        kernel: str | Kernel | None = None,
        inference: str = "auto",
        num_inducing: int | None = None,
        budget_seconds: float | None = None,
        settings: TrainingSettings | StochasticSettings | None = None,
        run: str | Path | None = None,
        callbacks: Sequence[Callback] = (),
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.orbit = orbit
        self.image_shape = image_shape
        self.feature_map = feature_map
        self.kernel = kernel
        self.inference = inference
        self.num_inducing = num_inducing
        self.budget_seconds = budget_seconds
        self.settings = settings
        self.run = run
        self.callbacks = callbacks
        self.device = device
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
        # what cannot be used is refused before a folder is made for it
        orbit, device = self.starting_from(X)
        _warn_of_training(self.feature_map)
        self.input_shape_, self.device_ = np.array(X.shape[1:]), str(device)
        examples = self._examples(X, y, whole)
        orbit.measured_in(self.scale_)
        folder, seed = self._begun() if whole is None else whole.begun
        group = folder.group
        digest = digest_of(X, raw, *([] if whole is None else [np.array(whole.num_data)]))
        counted = raw if whole is None and hasattr(self, "classes_") else None
        about = about_data(examples.num_data, X, counted)
        seed, first = group.from_first(lambda: [folder.open(self, digest, about, seed), digest])
        _check_same_data(digest, first, group)
        data = folder.model()
        if data is not None:
            read_fitted(self, data, Path(str(self.run)))
            return
        generator = torch.Generator().manual_seed(seed)
        callbacks = (Warn(), folder.log, *self.callbacks, *[ProgressBar()] * bool(self.verbose))
        callback = Several(callbacks if group.rank == 0 else ())
        parts = orbit, examples, task, generator, folder, callback
        if self.inference == "stochastic":
            self._take(self._fit_stochastic(*parts))
        else:
            self._take(run_fit(*self._learning(*parts), callback, folder.checkpoint))
        folder.finish(self, examples.x.cpu(), y, raw)

    def starting_from(self, X: np.ndarray) -> tuple[Orbit, torch.device]:
        """The orbit and the device of a fit; an `InputError` if these inputs do not suit them."""
        self._check_parameters()
        if self.image_shape is None:
            check_layout(X, kind_of(self.orbit))
        shape = X.shape[1:] if self.image_shape is None else self.image_shape
        return starting_orbit(self.orbit, shape), chosen_device(self.device)

    def _examples(self, X: np.ndarray, y: Tensor, whole: Whole | None) -> Examples:
        """The data as the model sees them: these, or a stream of which they are a sample."""
        self.scale_ = scale_of(X) if whole is None else whole.scale
        x, y = self._inputs(X).to(self.device_), y.to(self.device_)
        if whole is None:
            return Resident(x, y)

        def prepared(batch_x: np.ndarray, batch_y: np.ndarray) -> tuple[Tensor, Tensor]:
            x, y = self._inputs(batch_x), whole.encode(batch_y)
            return x.to(self.device_), y.to(self.device_)

        return Streamed(whole.stream, prepared, whole.num_data, (x, y))

    def _fit_stochastic(
        self,
        orbit: Orbit,
        examples: Examples,
        task: Task,
        generator: torch.Generator,
        folder: NoFolder,
        callback: Callback,
    ) -> Outcome:
        """Train hyperparameters and q(u) together, from minibatches of data and orbit samples."""
        settings = self.settings or StochasticSettings()
        assert isinstance(settings, StochasticSettings)
        x, features = examples.x, self._features(examples, task, folder.group, callback)
        _num_features(copy.deepcopy(features).to(x.device), x)
        model = initial_model(orbit, task.likelihood, x, features, self.kernel, generator=generator)
        if task.final is not None:
            final = with_recognition(task.final, x, generator=generator)
            model = OrbitModel(**model.parts(likelihood=final))
        return fit_stochastic(
            model,
            examples,
            settings,
            num_inducing=int(self.num_inducing or settings.num_inducing),
            generator=generator,
            group=folder.group,
            callback=callback,
            checkpoint=folder.checkpoint,
        )

    def _learning(
        self,
        orbit: Orbit,
        examples: Examples,
        task: Task,
        generator: torch.Generator,
        folder: NoFolder,
        callback: Callback,
    ) -> tuple[Learning, Inference]:
        """What is to be learned, and the kind of inference that the number of data affords."""
        x, group = examples.x, folder.group
        features = self._features(examples, task, group, callback)
        most = max_axes(task.likelihood, self.kernel)
        num_features = int(min(_num_features(copy.deepcopy(features).to(x.device), x), most))
        settings, plan = self._plan(orbit, examples, task, num_features, folder)
        model = initial_model(orbit, task.likelihood, x, features, self.kernel, generator=generator)
        problem = Problem(model, examples, task.max_ratio, group)
        sampling = Sampling(problem, plan.enumerated, generator)
        return Learning(problem, sampling, settings, plan), _inference(plan, task)

    def _features(
        self, examples: Examples, task: Task, group: Group, callback: Callback
    ) -> nn.Module:
        """The features that were given, or those with the most evidence."""
        makers, x = feature_makers(self.feature_map, examples.x), examples.x
        self.feature_evidence_: dict[str, float] = {}
        if len(makers) > 1:
            asked = makers, examples, task.likelihood, self.kernel, task.max_ratio
            self.feature_evidence_ = group.from_first(lambda: compare_features(*asked))
            callback.announced(describe(self.feature_evidence_, num_compared(x)))
        return makers[max(makers, key=lambda name: self.feature_evidence_.get(name, 0.0))]()

    def _plan(
        self, orbit: Orbit, examples: Examples, task: Task, num_features: int, folder: NoFolder
    ) -> tuple[TrainingSettings, Plan]:
        """Return the settings with all sizes, which the first process chooses, and their plan."""
        group, device = folder.group, examples.x.device
        exact = task.final is None and task.in_memory
        work = Work(orbit, examples.num_data, len(examples.x), exact, task.num_grams)
        given = self._settings()

        def choose(begun: Mapping[str, Any]) -> dict[str, Any]:
            settings, memory = replace(given, **begun), memory_of(device, group.size)
            if self.budget_seconds is not None:
                speed = rates_of(device), num_features, group.size
                bought = Resources(float(self.budget_seconds), memory, *speed)
                settings = affordable(work, settings, bought)
            plan = plan_of(work, settings)
            check_memory(plan, memory)
            return plan.sizes

        settings = replace(given, **group.from_first(lambda: folder.sizes(choose)))
        return settings, plan_of(work, settings)

    def _settings(self) -> TrainingSettings:
        """Return the settings with the kind of inference and the inducing variables as given."""
        settings = self.settings or TrainingSettings()
        assert isinstance(settings, TrainingSettings)
        given = None if self.num_inducing is None else int(self.num_inducing)
        if given is not None and settings.num_inducing not in (None, given):
            raise InputError(
                f"num_inducing={given}, but settings have num_inducing={settings.num_inducing}; "
                "give one of them"
            )
        count = settings.num_inducing if given is None else given
        if (self.inference == "exact" and count) or (self.inference == "inducing" and count == 0):
            raise InputError(
                f"inference={self.inference!r} contradicts num_inducing={count}; give one of them"
            )
        if self.inference == "exact":
            count = 0
        most = 0 if self.inference == "inducing" else settings.max_exact
        return replace(settings, num_inducing=count, max_exact=most)

    def _begun(self) -> tuple[NoFolder, int]:
        """Return the folder of the run and the seed of all draws, the same in all processes."""
        group = current_group()
        folder = NoFolder(group) if self.run is None else RunFolder(Path(self.run), group)
        with explained():
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return folder, group.from_first(lambda: folder.first_seed(self, seed))

    def _take(self, outcome: Outcome) -> None:
        self.model_ = outcome.model
        self.orbit_ = outcome.model.orbit
        self.evidence_kind_ = outcome.kind
        self.evidence_ = outcome.evidence
        self.evidence_error_ = outcome.evidence_error
        self.evidence_curve_ = outcome.curve
        self.n_iter_ = outcome.num_steps
        self.stopped_ = outcome.stopped
        self.sizes_ = outcome.sizes
        self.num_draws_ = outcome.sizes["num_draws"]
        self.prediction_noise_: Tensor | None = outcome.noise
        self._prepare()

    @property
    def log_target_scale(self) -> float:
        """Σ log of the units of the targets, by which log p(y) of one input differs: 0 nats."""
        return 0.0

    @property
    def _settings_kind(self) -> type[TrainingSettings] | type[StochasticSettings]:
        return StochasticSettings if self.inference == "stochastic" else TrainingSettings

    def _check_parameters(self) -> None:
        """Refuse what no run could use before any work is done."""
        count, shape = self.num_inducing, self.image_shape
        whole = count is None or (isinstance(count, int | np.integer) and count >= 1)
        sized = shape is None or (
            isinstance(shape, Sequence)
            and 2 <= len(shape) <= 3
            and all(isinstance(length, int | np.integer) and length >= 1 for length in shape)
        )
        budget = self.budget_seconds
        stochastic = self.inference == "stochastic"
        bought = budget is None or (
            isinstance(budget, int | float | np.number) and 0 < budget < math.inf and not stochastic
        )
        right = {
            "orbit": (isinstance(self.orbit, str | Orbit), "a name or an orbit"),
            "num_inducing": (whole, "a whole number from 1 on, or None"),
            "budget_seconds": (
                bought,
                "positive, or None; with inference='stochastic' it must be None, since "
                "StochasticSettings(num_steps=...) says how long training takes",
            ),
            "image_shape": (sized, "(H, W) or (C, H, W), or None"),
            "inference": (self.inference in INFERENCES, f"one of {', '.join(INFERENCES)}"),
            "settings": (
                _is_or_none(self.settings, self._settings_kind),
                f"a {self._settings_kind.__name__} with inference={self.inference!r}, or None",
            ),
            "feature_map": (
                _is_or_none(self.feature_map, nn.Module) or self.feature_map in FEATURES,
                f"a torch module, one of {', '.join(FEATURES)}, or None for inputs as they are",
            ),
            "kernel": (
                _is_or_none(self.kernel, Kernel) or self.kernel in KERNELS,
                f"a GPyTorch kernel, or one of {', '.join(KERNELS)}",
            ),
            "callbacks": (
                isinstance(self.callbacks, Sequence)
                and all(isinstance(callback, Callback) for callback in self.callbacks),
                "a sequence of orbitgp.Callback",
            ),
        }
        for name, (is_right, expected) in right.items():
            if not is_right:
                raise InputError(f"{name} must be {expected}; got {getattr(self, name)!r:.80}")

    def _predict(self, X: Any) -> Prediction:
        samples = self._samples(self._checked(X))
        return Prediction.concatenated(list(map(self._predictor, samples)))

    def as_inputs(self, X: Any) -> Tensor:
        """Inputs as the fitted model sees them, if they are like those of the fit."""
        return self._checked(X).to(self.device_)

    def to(self, device: str | torch.device) -> "InvariantGPEstimator":
        """Move a fitted estimator to another device.

        Parameters
        ----------
        device : str or torch.device
            "auto", "cpu", or one that is there, such as "cuda:1".

        Returns
        -------
        InvariantGPClassifier or InvariantGPRegressor
            The estimator itself; `device_` names the device.

        Raises
        ------
        InputError
            If there is no such device.
        """
        check_is_fitted(self)
        chosen = chosen_device(device)
        self.model_.to(chosen)
        self.device_ = str(chosen)
        self._prepare()
        return self

    def _checked(self, X: Any) -> Tensor:
        check_is_fitted(self)
        check_dense(X)
        check_alike(X, tuple(self.input_shape_.tolist()), self.scale_)
        with explained():
            X = validate_data(self, X, reset=False, dtype=(np.float64, np.float32), allow_nd=True)
        return self._inputs(X)

    @property
    def _predictor(self) -> Callable[[OrbitSample], Prediction]:
        """That of the model, which was made when it was fitted or read."""
        model, predictor = self._prepared
        return predictor if model is self.model_ else self.model_.predictor()

    def _prepare(self) -> None:
        """Compute what every prediction needs, so that the first takes no longer than others."""
        self._prepared = (self.model_, self.model_.predictor())

    def __getstate__(self) -> dict[str, Any]:
        """On the CPU, and without what is prepared for predictions, which can be made again."""
        state: Any = super().__getstate__()
        state = {name: part for name, part in state.items() if name != "_prepared"}
        if state.get("device_", "cpu") != "cpu":
            model = copy.deepcopy(state["model_"]).cpu()
            state |= {"model_": model, "orbit_": model.orbit}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Back to the device it was on, if it is there, and prepare predictions again."""
        super().__setstate__(state)
        if hasattr(self, "model_"):
            self._return()

    def _return(self) -> None:
        """To `device_`; to the CPU, with a warning, if there is no such device here."""
        try:
            self.to(self.device_)
        except InputError:
            warnings.warn(
                f"the model was saved on {self.device_:.40}, which is not here; it is on the CPU "
                "now",
                UserWarning,
                stacklevel=3,
            )
            self.to("cpu")

    def _samples(self, x: Tensor) -> Iterator[OrbitSample]:
        for batch in x.split(PREDICTION_BATCH):
            with torch.no_grad():
                sample = self.model_.sample_orbit_at(batch.to(self.device_), self.prediction_noise_)
            # the draws that all inputs share are the whole orbit of the fitted model
            yield replace(sample, orbit_size=sample.num_samples)

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
