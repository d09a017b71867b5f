"""A whole fit: learn hyperparameters, solve for the posterior, calibrate, and check."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.callbacks.base import Callback, Evaluation
from orbitgp.exact_model import ExactInvariantGP
from orbitgp.fit.checkpoint import Checkpoint
from orbitgp.fit.checks import mark_identified, spread_over_draws, warn
from orbitgp.fit.forecast import expected_seconds
from orbitgp.fit.learning import Learning
from orbitgp.fit.solution import Inference
from orbitgp.hyperparameters.calibration import calibrate
from orbitgp.model import InvariantGP


@dataclass(frozen=True)
class Outcome:
    """What a fit made of the data."""

    model: InvariantGP | ExactInvariantGP
    evidence: float
    evidence_error: float
    kind: str
    """What the evidence is: "exact", or a lower "bound"."""
    sizes: dict[str, Any]
    """The fields of `TrainingSettings` that give the same model on another machine."""
    noise: Float[Tensor, "1 S K"] | None
    """Of the draws that all inputs share; None where a finite orbit is enumerated."""
    curve: list[Evaluation]
    num_steps: int
    stopped: str


def run_fit(
    learning: Learning, inference: Inference, callback: Callback, checkpoint: Checkpoint
) -> Outcome:
    """All phases, from the checkpoint on if there is one.

    Of several processes the first learns, and all share the passes over the data.
    """
    device = str(learning.problem.examples.x.device)
    callback.announced(learning.plan.describe(expected_seconds(learning), device))
    checkpoint.restore(learning)

    def learn() -> list[Any]:
        learning.finish(callback, checkpoint)
        config, tensors = learning.state()
        return [config, tensors["z"].tolist()]

    config, z = learning.problem.group.from_first(learn)
    learning.restore(config, {"z": torch.tensor(z, dtype=torch.float64)})
    callback.announced(f"step 5 of 5: solving for all {learning.plan.num_data:,} inputs, checking")
    solution = inference(learning, callback)
    mark_identified(learning)
    labels = learning.problem.examples.y[solution.rows]
    calibrate(solution.model.likelihood, solution.left_out, labels)
    error = math.hypot(solution.error, spread_over_draws(learning, solution.model))
    warn(learning, solution, error, callback)
    return Outcome(
        solution.model,
        solution.evidence,
        error,
        learning.plan.kind,
        learning.plan.sizes,
        learning.noise,
        learning.curve,
        learning.num_steps,
        learning.stopped,
    )
