"""Local parameters of a bound from orbit draws of their own, carried along with the labels."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP, mean_pairs
from orbitgp.objective import stream_covariances
from orbitgp.posterior.algebra import solve_rows
from orbitgp.posterior.inducing import moments


def carries(model: InvariantGP) -> bool:
    """Whether its bound has local parameters that no network gives."""
    likelihood = model.likelihood
    return isinstance(likelihood, LocalLikelihood) and likelihood.recognition is None


@torch.no_grad()
def carried(
    model: InvariantGP,
    x: Float[Tensor, "N *event"],
    y: Shaped[Tensor, "N *targets"],
    *,
    num_samples: int,
    generator: torch.Generator,
    prior_factor: Float[Tensor, "M M"] | None = None,
) -> Shaped[Tensor, "N *carried"]:
    """Targets with the best local parameters for q(f) as these draws see it.

    Whatever is drawn after them is independent of them, so bounds estimated there are unbiased.
    Targets of a likelihood that needs no such parameters are returned as they are.
    """
    likelihood = model.likelihood
    if not carries(model) or y.ndim == 2:
        return y
    assert isinstance(likelihood, LocalLikelihood)
    if prior_factor is None:
        prior_factor = model.posterior.prior_factor(model.kernel)
    q, found = model.posterior.q, []
    draws = {"num_samples": num_samples, "weigh": mean_pairs}
    for covariances, _ in stream_covariances(model, [(x, y, generator)], **draws):
        whitened = solve_rows(prior_factor, covariances.groups.flatten(0, 1))
        found.append(likelihood.best_local(moments(covariances, q, whitened)))
    return likelihood.carry(y, torch.cat(found))
