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
from orbitgp.errors import InputError
from orbitgp.estimators.base import InvariantGPEstimator
from orbitgp.estimators.inputs import check_alike, check_dense, explained
from orbitgp.estimators.survey import flat_labels, survey
from orbitgp.estimators.task import Task, Whole
from orbitgp.fit.settings import TrainingSettings
from orbitgp.kernels import Kernel
from orbitgp.likelihoods.gaussian import OneHotGaussian
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.likelihoods.polya_gamma import PolyaGamma
from orbitgp.likelihoods.softmax import Softmax
from orbitgp.orbits.base import Orbit
from orbitgp.stochastic.settings import StochasticSettings

MAX_RATIO = 300.0
"""Of the kernel's variance to the noise: one-hot targets have no noise, so the evidence would drive
it to 0, where every wrong label would have to be explained."""

AUTO = "gaussian"
"""What likelihood="auto" stands for: one-hot regression, the only one whose evidence is exact."""

LIKELIHOODS = ("auto", "gaussian", "polya-gamma", "softmax")

ROUNDS = 45.0
"""Passes of N M² operations where every round of a fixed point has precisions of its own."""


class InvariantGPClassifier(ClassifierMixin, InvariantGPEstimator):
    """Gaussian-process classifier that learns which transformations leave the class unchanged.

    Parameters
    ----------
    orbit : str or Orbit, default="none"
        The transformations to learn from: an orbit, such as `FunctionOrbit` for a transformation of
        your own, or a name. Ranges are learned of "rotation", "affine", "local", "crop" and
        "colour" of images, "time-shift", "cyclic-shift", "time-warp", "window", "magnitude" and
        "drift" of series, "rotation-3d" and "translation-3d" of points in space; "mirror",
        "quarter-turns" and "dihedral" of images are fixed groups. Names that are joined by +, as in
        "mirror+affine", are composed in this order.
    likelihood : str, default="auto"
        How labels depend on the latent functions: "gaussian" (least squares on one-hot targets),
        "softmax", "polya-gamma" (two classes), or "auto", which is "gaussian",
        the only one with exact inference.
    image_shape : tuple of int, optional
        (H, W) or (C, H, W), if images come as flat rows.
    feature_map : str or torch.nn.Module, default="auto"
        What the kernel compares of transformed inputs. "auto" takes what has the most evidence
        without an orbit (`feature_evidence_`): of images with sides of 12 pixels or more pixels,
        oriented edges or patches, of series and rows with 24 columns or more values or patches;
        other inputs are compared as they are. "oriented" and "patches" are names, too, `None`
        means pixels or values as they are, with columns of rows scaled alike, and a module is used
        as it is: its weights are not learned.
    kernel : str or gpytorch.kernels.Kernel, optional
        Base kernel of the features: "rbf", which is what None means, "matern-1/2", "matern-3/2",
        "matern-5/2", each also with a lengthscale for each feature as in "rbf-ard", or a kernel of
        GPyTorch. Lengthscales start at a typical distance between features, and are learned.
    inference : str, default="auto"
        How the posterior is computed. "exact" and "inducing" learn hyperparameters by the exact
        evidence of subsets, and then solve for all data exactly or with inducing variables; "auto"
        chooses between both. "stochastic" is the paper's own method: hyperparameters, inducing
        points and posterior are learned together from minibatches.
    num_inducing : int, optional
        Number of inducing variables. With None, inference is exact up to 20,000 inputs in memory;
        more inputs have a number of inducing variables that depends on theirs alone (`settings`).
    budget_seconds : float, optional
        The time that inference may take, roughly, on this machine. With None, all sizes depend on
        the data and on `settings` alone, so that every machine learns the same model. A budget lets
        this machine's speed and memory choose them; `sizes_` records the choice. Learning comes on
        top: seconds to minutes, which smaller `settings` make shorter.
    settings : TrainingSettings or StochasticSettings, optional
        Sizes of the fit; with `inference="stochastic"`,
        steps and rates of training.
    run : str or pathlib.Path, optional
        Folder for settings, log, checkpoints and model. The same call with the same data continues
        an interrupted fit, and `orbitgp.load(run)` reads the model back.
    callbacks : sequence of Callback, default=()
        Receive the progress of a fit.
    device : str or torch.device, default="auto"
        Where the model is computed: "cpu", or a device such as "cuda:1"; "auto" is a GPU if there
        is one, of several processes that of the local rank. Random numbers are always drawn on the
        CPU, so that a seed means the same everywhere.
    random_state : int or numpy.random.RandomState, optional
        Seed of all random draws; an int makes a fit reproducible.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    orbit_ : Orbit
        The learned transformations: `orbit_.describe()` in words, `orbit_.learned_ranges()` as
        numbers.
    evidence_ : float
        Log marginal likelihood of the training data in nats, or a lower bound on it.
    evidence_error_ : float
        Standard error of `evidence_`, in nats: how it varies with the draws from the orbit.
    evidence_kind_ : str
        "exact" or "bound". Compare values of the same kind, for the same data, only.
    feature_evidence_ : dict
        Evidence in nats of each kind of features, on up to 500 inputs and without an orbit, if
        several were compared; the highest was taken.
    device_ : str
        The device that `device` stood for.
    num_draws_ : int
        Transformations that all inputs share.
    sizes_ : dict
        "num_draws", "num_inducing" (0 if inference was exact) and "full_mean" of this fit;
        ``TrainingSettings(**model.sizes_)`` gives the same sizes on any machine.
    evidence_curve_ : list of Evaluation
        Evidence and ranges after each step of learning.
    n_iter_ : int
        Steps of learning.
    stopped_ : str
        Why learning ended.
    model_ : ExactInvariantGP or InvariantGP
        The Gaussian process that predicts.
    n_features_in_ : int
        Number of columns of the inputs.

    See Also
    --------
    InvariantGPRegressor : The same for numbers instead of classes.

    References
    ----------
    M. van der Wilk, M. Bauer, S. T. John and J. Hensman (2018). Learning Invariances using the
    Marginal Likelihood. NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orbitgp import InvariantGPClassifier
    >>> digits = load_digits()
    >>> X, y = digits.images, digits.target
    >>> model = InvariantGPClassifier("rotation", random_state=0).fit(X[:100], y[:100])
    >>> model.predict(X[100:103])
    array([4, 0, 5])
    >>> model.evidence_kind_
    'exact'
    """

    def __init__(
        self,
        orbit: str | Orbit = "none",
        *,
        likelihood: str = "auto",
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
        super().__init__(
            orbit,
            image_shape=image_shape,
            feature_map=feature_map,
            kernel=kernel,
            inference=inference,
            num_inducing=num_inducing,
            budget_seconds=budget_seconds,
            settings=settings,
            run=run,
            callbacks=callbacks,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.likelihood = likelihood

    def fit(self, X: Any, y: Any) -> "InvariantGPClassifier":
        """Learn ranges and kernel from the data, then the posterior.

        Parameters
        ----------
        X : array-like of shape (n, H, W), (n, C, H, W) or (n, n_features)
            Images, or rows of numbers.
        y : array-like of shape (n,)
            Labels: numbers or strings.

        Returns
        -------
        InvariantGPClassifier
            The fitted estimator itself.

        Raises
        ------
        InputError
            If inputs or labels cannot be used; it is a `ValueError`.
        """
        X, y = self._validated(X, y)
        with explained():
            try:
                check_classification_targets(y)
                self.classes_ = np.unique(y)
            except TypeError as error:
                raise InputError(
                    "labels must be all numbers or all strings, so that they can be sorted "
                    f"({error})"
                ) from None
        return self._fit_classes(X, y, None)

    def fit_stream(self, source: Any) -> "InvariantGPClassifier":
        """Learn from more examples than memory holds, read in a few passes of batches.

        Ranges and kernel are learned from a random sample, the posterior and the bound on the
        evidence from every example.

        Parameters
        ----------
        source : iterable of (x, y)
            A PyTorch Dataset or DataLoader, a Hugging Face data set, a `Stream` of `orbitgp.data`,
            or any iterable of batches that can be read several times.

        Returns
        -------
        InvariantGPClassifier
            The fitted estimator itself.

        Raises
        ------
        InputError
            If examples cannot be used, or differ from one pass to the next.
        """
        stream, begun = stream_of(source), self._begun()
        found = survey(stream, begun[0].group, classify=True, seed=begun[1])
        X, y = self._validated(found.x, found.y)
        check_classification_targets(y)
        self.classes_ = found.labels
        scale = found.largest or 1.0
        whole = Whole(stream, found.num_data, scale, self._class_numbers, begun)
        return self._fit_classes(X, y, whole)

    def training_data(self, X: Any, y: Any) -> tuple[Tensor, Tensor, Task]:
        """Inputs and numbers of classes as the fitted model has them, and how they are modelled."""
        check_alike(X, tuple(self.input_shape_.tolist()), self.scale_)
        X, y = self._validated(X, y, reset=False)
        task = self._task(len(self.classes_), None)
        return self._inputs(X).to(self.device_), self._class_numbers(y).to(self.device_), task

    def _validated(self, X: Any, y: Any, *, reset: bool = True) -> tuple[np.ndarray, np.ndarray]:
        check_dense(X)
        with explained():
            X, y = validate_data(
                self,
                X,
                y,
                reset=reset,
                dtype=(np.float64, np.float32),
                allow_nd=True,
                ensure_min_samples=2,
            )
        return X, y

    def _fit_classes(
        self, X: np.ndarray, y: np.ndarray, whole: Whole | None
    ) -> "InvariantGPClassifier":
        num_classes = len(self.classes_)
        if num_classes < 2:
            raise InputError(
                f"a classifier needs at least 2 classes; got 1 class, {self.classes_[0]!s:.40}"
            )
        self._fit(X, y, self._class_numbers(y), self._task(num_classes, whole), whole)
        return self

    def _task(self, num_classes: int, whole: Whole | None) -> Task:
        """The likelihood that was asked for, and the sizes that suit it."""
        kind = self.likelihood
        if kind not in LIKELIHOODS:
            raise InputError(f"likelihood must be one of {', '.join(LIKELIHOODS)}; got {kind!r}")
        if kind == "auto":
            kind = AUTO
        one_hot = Task(OneHotGaussian(num_classes, noise=0.05), MAX_RATIO, whole is None)
        if kind == "gaussian":
            return one_hot
        if whole is not None and self.inference != "stochastic":
            raise InputError(
                f"a stream needs likelihood='gaussian', or inference='stochastic'; got {kind!r}"
            )
        final = local_likelihood(kind, num_classes)
        num_grams = 2.0 if final.has_constant_precision else ROUNDS * final.num_outputs
        return replace(one_hot, final=final, num_grams=num_grams)

    def _class_numbers(self, labels: np.ndarray) -> Tensor:
        """The number of each label among the classes."""
        labels = flat_labels(labels)
        places = np.searchsorted(self.classes_, labels).clip(max=len(self.classes_) - 1)
        unknown = self.classes_[places] != labels
        if unknown.any():
            raise InputError(
                f"the label {labels[unknown][0]!r} was not there in the first pass, or in the data "
                "that were fitted; give the same examples every time"
            )
        return torch.from_numpy(places)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n, H, W), (n, C, H, W) or (n, n_features)
            Inputs like those of `fit`.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Probabilities, in the order of `classes_`.
        """
        prediction = self._predict(X)
        likelihood = self.model_.likelihood
        assert isinstance(likelihood, OneHotGaussian | LocalLikelihood)
        return likelihood.class_probabilities(prediction).cpu().numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class.

        Parameters
        ----------
        X : array-like of shape (n, H, W), (n, C, H, W) or (n, n_features)
            Inputs like those of `fit`.

        Returns
        -------
        ndarray of shape (n,)
            Labels.
        """
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(1)]


def local_likelihood(kind: str, num_classes: int) -> LocalLikelihood:
    """The likelihood of this name."""
    if kind == "polya-gamma":
        if num_classes != 2:
            raise InputError(
                f"likelihood='polya-gamma' is for 2 classes; got {num_classes}: use 'softmax'"
            )
        return PolyaGamma()
    return Softmax(num_classes)
