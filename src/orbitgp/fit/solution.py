"""What inference makes of learned hyperparameters: a model that predicts, and its evidence."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from orbitgp.callbacks.base import Callback
from orbitgp.exact_model import ExactInvariantGP
from orbitgp.fit.learning import Learning
from orbitgp.model import InvariantGP
from orbitgp.values import Prediction


@dataclass(frozen=True)
class Solution:
    """A model that predicts, and its evidence in nats with the standard error of its estimate."""

    model: InvariantGP | ExactInvariantGP
    evidence: float
    error: float
    left_out: Prediction
    """f at some of the data, each predicted without itself."""
    rows: Int[Tensor, "T"]
    """Those data, among the ones in memory."""


Inference = Callable[[Learning, Callback], Solution]
"""One way from hyperparameters to a posterior of all data and its evidence; chosen once for a fit:
`solve_exact`, `solve_with_inducing`, or `solve_log_odds` with a likelihood."""
