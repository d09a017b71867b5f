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
from orbitgp.errors import InputError
from orbitgp.estimators.base import InvariantGPEstimator
from orbitgp.estimators.inputs import check_alike, check_dense, explained
from orbitgp.estimators.survey import survey
from orbitgp.estimators.task import Task, Whole
from orbitgp.fit.run import Outcome
from orbitgp.likelihoods.gaussian import Gaussian


class InvariantGPRegressor(RegressorMixin, InvariantGPEstimator):
    """Gaussian-process regressor that learns which transformations leave the value unchanged.

    Parameters
    ----------
    orbit : str or Orbit, default="none"
        The transformations to learn from: an orbit, such as `FunctionOrbit` for a transformation of
        your own, or a name. Ranges are learned of "rotation", "affine", "local", "crop" and
        "colour" of images, "time-shift", "cyclic-shift", "time-warp", "window", "magnitude" and
        "drift" of series, "rotation-3d" and "translation-3d" of points in space; "mirror",
        "quarter-turns" and "dihedral" of images are fixed groups. Names that are joined by +, as in
        "mirror+affine", are composed in this order.
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
    orbit_ : Orbit
        The learned transformations: `orbit_.describe()` in words, `orbit_.learned_ranges()` as
        numbers.
    evidence_ : float
        Log marginal likelihood of the training targets, in their own units, in nats; or a lower
        bound on it.
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
    InvariantGPClassifier : The same for classes.

    References
    ----------
    M. van der Wilk, M. Bauer, S. T. John and J. Hensman (2018). Learning Invariances using the
    Marginal Likelihood. NeurIPS.

    Examples
    --------
    A function that does not depend on the order of its two arguments:

    >>> import numpy as np
    >>> from orbitgp import InvariantGPRegressor, coordinate_swap
    >>> X = np.random.default_rng(0).uniform(-2, 2, (60, 2))
    >>> y = np.cos(X.sum(1)) + np.sin(X).prod(1)
    >>> plain = InvariantGPRegressor("none", random_state=0).fit(X, y)
    >>> symmetric = InvariantGPRegressor(coordinate_swap(0, 1, 2), random_state=0).fit(X, y)
    >>> bool(symmetric.evidence_ > plain.evidence_)
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> "InvariantGPRegressor":
        """Learn ranges, kernel and noise from the data, then the posterior.

        Parameters
        ----------
        X : array-like of shape (n, H, W), (n, C, H, W) or (n, n_features)
            Images, or rows of numbers.
        y : array-like of shape (n,) or (n, n_outputs)
            Targets.

        Returns
        -------
        InvariantGPRegressor
            The fitted estimator itself.

        Raises
        ------
        InputError
            If inputs or targets cannot be used; it is a `ValueError`.
        """
        X, y = self._validated(X, y)
        with explained():
            targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        self.num_data_ = len(targets)
        largest = max(float(np.abs(targets).max()), np.finfo(np.float64).tiny)
        # squares of very large or small targets would leave the range of numbers
        self.target_mean_ = largest * (targets / largest).mean(0)
        spread = largest * (targets / largest).std(0)
        return self._fit_targets(X, y, spread, None)

    def fit_stream(self, source: Any) -> "InvariantGPRegressor":
        """Learn from more examples than memory holds, read in a few passes of batches.

        Ranges, kernel and noise are learned from a random sample, the posterior and the bound on
        the evidence from every example.

        Parameters
        ----------
        source : iterable of (x, y)
            A PyTorch Dataset or DataLoader, a Hugging Face data set, a `Stream` of `orbitgp.data`,
            or any iterable of batches that can be read several times.

        Returns
        -------
        InvariantGPRegressor
            The fitted estimator itself.

        Raises
        ------
        InputError
            If examples cannot be used, or differ from one pass to the next.
        """
        stream, begun = stream_of(source), self._begun()
        found = survey(stream, begun[0].group, classify=False, seed=begun[1])
        X, y = self._validated(found.x, found.y)
        if not np.isfinite(found.squares).all():
            raise InputError("squared targets overflow float64; rescale y")
        self.num_data_, self.target_mean_ = found.num_data, found.mean
        whole = Whole(stream, found.num_data, found.largest or 1.0, self._standard, begun)
        return self._fit_targets(X, y, np.sqrt(found.squares / found.num_data), whole)

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
        self._fit(X, targets, self._standard(y), _task(whole is None), whole)
        return self

    def training_data(self, X: Any, y: Any) -> tuple[Tensor, Tensor, Task]:
        """Inputs and targets as the fitted model has them, and how they are modelled."""
        check_alike(X, tuple(self.input_shape_.tolist()), self.scale_)
        X, y = self._validated(X, y, reset=False)
        x, targets = self._inputs(X).to(self.device_), self._standard(y).to(self.device_)
        return x, targets, _task(in_memory=True)

    @property
    def log_target_scale(self) -> float:
        """Σ log of the units of the targets: p(y) dy = p(t) dt for t = (y − mean) / scale."""
        return float(np.log(self.target_scale_).sum())

    def _standard(self, y: np.ndarray) -> Tensor:
        """Targets with mean 0 and deviation 1."""
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return torch.from_numpy((targets - self.target_mean_) / self.target_scale_)

    def _take(self, outcome: Outcome) -> None:
        super()._take(outcome)
        scale = self.log_target_scale
        self.evidence_ -= self.num_data_ * scale
        self.evidence_curve_ = [
            replace(point, evidence=point.evidence - point.num_data * scale)
            for point in outcome.curve
        ]

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the mean of y, and on request its standard deviation.

        Parameters
        ----------
        X : array-like of shape (n, H, W), (n, C, H, W) or (n, n_features)
            Inputs like those of `fit`.
        return_std : bool, default=False
            Whether to return standard deviations, which include the noise.

        Returns
        -------
        ndarray of shape (n,) or (n, n_outputs), or a tuple of two of them
            Means; with `return_std` means and standard deviations, in the units of y.
        """
        prediction = self._predict(X)
        mean = prediction.mean.cpu().numpy() * self.target_scale_ + self.target_mean_
        mean = mean[:, 0] if self.flat_target_ else mean
        if not return_std:
            return mean
        likelihood = self.model_.likelihood
        assert isinstance(likelihood, Gaussian)
        with torch.no_grad():
            variance = (prediction.variance + likelihood.noise).cpu().numpy()
        deviation = np.sqrt(variance) * self.target_scale_
        return mean, deviation[:, 0] if self.flat_target_ else deviation


def _task(in_memory: bool) -> Task:
    """A Gaussian of targets with deviation 1, as little noise as the evidence wants."""
    return Task(Gaussian(noise=0.1), math.inf, in_memory)
