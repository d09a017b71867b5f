"""The evidence of parts of the data under a fitted estimator."""

import copy
from typing import Any

import torch

from orbitgp.distributed.group import ALONE
from orbitgp.errors import InputError
from orbitgp.estimators import InvariantGPClassifier, InvariantGPRegressor
from orbitgp.fit.checks import NUM_EXAMINED
from orbitgp.fit.log_odds import bound_of_subset
from orbitgp.fit.problem import NUM_DRAW_SETS, Problem, Sampling
from orbitgp.hyperparameters.learn import Landscape
from orbitgp.hyperparameters.parameters import Parameters
from orbitgp.inference.passes import Resident
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.orbit_model import OrbitModel

ESTIMATORS = (InvariantGPClassifier, InvariantGPRegressor)


class FittedEvidence:
    """The evidence of the first n data of a random order, with one of several sets of draws.

    Rows, draws and their number depend on the generator, N and the orbit's kind alone, so two
    estimators of the same data are compared on the same rows and draws. `at` has the evidence of
    the likelihood of the fit: exact for a Gaussian, and a bound for all others. `landscape` is
    always the exact evidence of numbers or one-hot labels with Gaussian noise, by which ranges are
    learned; there, variance and noise take their best values wherever z is moved to. It works on
    copies of the model.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, *, generator: torch.Generator) -> None:
        if not isinstance(estimator, ESTIMATORS) or not hasattr(estimator, "model_"):
            raise InputError(
                "the evidence is asked of a fitted InvariantGPClassifier or InvariantGPRegressor; "
                f"got {estimator!r:.80}: call fit first"
            )
        x, labels, task = estimator.training_data(X, y)
        parts = estimator.model_.parts(likelihood=task.likelihood)
        self.model = OrbitModel(**copy.deepcopy(parts)).to(x.device)
        self.fitted = OrbitModel(**copy.deepcopy(estimator.model_.parts())).to(x.device)
        self.num_data, self.num_draws = len(x), int(estimator.num_draws_)
        problem = Problem(self.model, Resident(x, labels), task.max_ratio, ALONE)
        self.sampling = Sampling(problem, estimator.prediction_noise_ is None, generator)
        self.parameters = Parameters(self.model)
        self.z = self.parameters.vector()
        self.log_scale = estimator.log_target_scale

    def draws(self) -> torch.Generator:
        """The generator of the first set of draws, at its start."""
        return torch.Generator().manual_seed(self.sampling.seeds[0])

    def landscape(self, num_data: int, place: int = 0) -> Landscape:
        """The evidence of the first data, with one of the sets of draws, as a function of z."""
        return self.sampling.landscape(self.parameters, num_data, self.num_draws, place)

    @property
    def kind(self) -> str:
        """What `at` returns: "exact" evidence, or a "bound"."""
        return "bound" if isinstance(self.fitted.likelihood, LocalLikelihood) else "exact"

    def at(self, num_data: int, place: int = 0) -> float:
        """Return the evidence in nats, for targets in their own units."""
        if self.kind == "bound":
            return bound_of_subset(self.fitted, self.sampling, num_data, self.num_draws, place)
        landscape = self.landscape(num_data, place)
        return landscape.at(self.z).evidence - landscape.size * self.log_scale

    def by_draws(self) -> tuple[float, ...]:
        """Return the evidence of some data with each set of draws; one number for a whole orbit."""
        places = range(1 if self.sampling.enumerated else NUM_DRAW_SETS)
        return tuple(self.at(NUM_EXAMINED, place) for place in places)
