"""A recognition network is taught where bounds should touch: they are raised by its weights alone.

With q(f_n) given, each step climbs Σ_n E_q[bound(f_n; network(x_n, y_n))] of some data. Steps that
suit ranges and scales are far too large for the many weights of a network, and far too few.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.values import Moments

NUM_STEPS = 1000
BATCH_SIZE = 250
LEARNING_RATE = 5e-3


def teach(
    likelihood: LocalLikelihood,
    x: Float[Tensor, "N *event"],
    labels: Int[Tensor, "N"],
    moments: Moments,
    *,
    generator: torch.Generator,
) -> None:
    """Some steps from where the network is; it sees these moments, and so no later draw."""
    network = likelihood.recognition
    assert network is not None
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    if not weights:
        return
    optimizer = torch.optim.Adam(weights, LEARNING_RATE)
    rates = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, NUM_STEPS)
    size = (NUM_STEPS, min(BATCH_SIZE, len(x)))
    batches = torch.randint(len(x), size, generator=generator, device=generator.device)
    for rows in batches.to(x.device):
        optimizer.zero_grad()
        local = network(x[rows], labels[rows]).double()
        bounds = likelihood.bound_at(labels[rows], local).expectation(moments.at(rows))
        (-bounds.mean()).backward()
        optimizer.step()
        rates.step()
