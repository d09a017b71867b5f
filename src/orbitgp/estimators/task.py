"""What an estimator asks of a run: the data, and the model that suits their targets."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from orbitgp.data.stream import Stream
from orbitgp.likelihoods.base import Likelihood
from orbitgp.likelihoods.local import LocalLikelihood


@dataclass(frozen=True)
class Task:
    """How targets are modelled.

    `max_ratio` bounds the kernel's variance over the noise, `largest` is the M beyond which more
    would do harm, and `num_grams` the passes of N M² operations that the last solve takes. With
    `final`, ranges are learned with `likelihood`, and the last solve is for `final`. A mean
    with a variable for every datum takes `mean_rounds`; 0 if none is wanted.
    """

    likelihood: Likelihood
    num_outputs: int
    variance: float
    max_ratio: float
    largest: int
    num_grams: float = 1.0
    final: LocalLikelihood | None = None
    mean_rounds: int = 0


@dataclass(frozen=True)
class Whole:
    """All the data of a stream, of which a sample is in memory."""

    stream: Stream
    num_data: int
    scale: float
    encode: Callable[[np.ndarray], Tensor]
