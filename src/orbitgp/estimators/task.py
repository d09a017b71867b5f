"""What an estimator asks of a run: the data, and the model that suits their targets."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from orbitgp.data.stream import Stream
from orbitgp.estimators.folder import NoFolder
from orbitgp.likelihoods.base import Likelihood
from orbitgp.likelihoods.local import LocalLikelihood


@dataclass(frozen=True)
class Task:
    """How targets are modelled.

    `max_ratio` bounds the mean of the kernel's variance over the noise, and `num_grams` counts the
    passes of N M² operations that the last solve takes. With `final`, hyperparameters are learned
    with `likelihood`, and the last solve is for `final`. A stream is not `in_memory`, even where
    its sample is all of it.
    """

    likelihood: Likelihood
    max_ratio: float
    in_memory: bool
    num_grams: float = 1.0
    final: LocalLikelihood | None = None


@dataclass(frozen=True)
class Whole:
    """All the data of a stream, of which a sample is in memory."""

    stream: Stream
    num_data: int
    scale: float
    encode: Callable[[np.ndarray], Tensor]
    begun: tuple[NoFolder, int]
    """The folder of the run, and the seed that the sample was drawn with."""
