"""The evidence of data under a fitted estimator, as a function of its hyperparameters."""

import copy
from typing import Any

import numpy as np
import torch

from orbitgp.distributed.group import ALONE
from orbitgp.errors import InputError
from orbitgp.estimators import InvariantGPClassifier, InvariantGPRegressor
from orbitgp.fit.checks import NUM_EXAMINED
from orbitgp.fit.problem import NUM_DRAW_SETS, Problem, Sampling
from orbitgp.hyperparameters.learn import Landscape
from orbitgp.hyperparameters.parameters import Parameters
from orbitgp.inference.passes import Resident
from orbitgp.orbit_model import OrbitModel

ESTIMATORS = (InvariantGPClassifier, InvariantGPRegressor)


class FittedEvidence:
    """Exact evidence of the first n data of a random order, with one of several sets of draws.

    Rows, draws and their number depend on the generator, N and the orbit's kind alone, so that
    two estimators that were fitted to the same data are compared on the same of all. Variance and
    noise take their best values wherever the other hyperparameters z are moved to; targets are in
    their own units. It works on a copy of the model.
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

    def at(self, num_data: int, place: int = 0, z: np.ndarray | None = None) -> float:
        """The same in nats for targets in their own units, at the z of the fit if none is given."""
        landscape = self.landscape(num_data, place)
        found = landscape.at(self.z if z is None else z).evidence
        return found - landscape.size * self.log_scale

    def by_draws(self) -> tuple[float, ...]:
        """The evidence of some data with each set of draws; one number for a whole orbit."""
        places = range(1 if self.sampling.enumerated else NUM_DRAW_SETS)
        return tuple(self.at(NUM_EXAMINED, place) for place in places)
