"""Softmax with Böhning's bound of its curvature: one M×M matrix for any number of classes.

p(y = k | f) = softmax_k(V f) for C − 1 outputs f, with the columns of V an orthonormal basis of all
that sums to 0 over the classes: adding a constant to all of them changes nothing. The Hessian of
lse(V f) is at most ½ I (Böhning 1992), so for any ψ, with s = softmax(V ψ),

    log p(y | f) ≥ (Vᵀe_y)·f − lse(Vψ) − (Vᵀs)·(f − ψ) − ¼ |f − ψ|²,

which touches at f = ψ: its expectation is highest at ψ = E f. The curvature of a confident datum is
far below ½, so the evidence is a loose bound, though the mean of q(u) is that of the exact mode.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import one_hot

from orbitgp.likelihoods.base import MAX_ENTRIES
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.values import Moments, Prediction, QuadraticBound

NUM_DRAWS = 256
"""Even draws of f, and as many mirrored ones, for class probabilities."""


class Softmax(LocalLikelihood):
    """Classes 0 … C − 1 by C − 1 contrasts between them; C − 1 local parameters ψ."""

    contrasts: Float[Tensor, "C C1"]

    def __init__(self, num_classes: int, *, recognition: nn.Module | None = None) -> None:
        sizes = {"num_outputs": num_classes - 1, "num_local": num_classes - 1}
        super().__init__(num_classes, **sizes, recognition=recognition)
        self.register_buffer("contrasts", contrasts(num_classes), persistent=False)

    @property
    def num_precisions(self) -> int:
        """½ for all."""
        return 1

    def bound_at(self, labels: Int[Tensor, "N"], local: Float[Tensor, "N K"]) -> QuadraticBound:
        """Tight at f = ψ; λ = ½ for every datum."""
        basis = self.contrasts.to(local)
        scores = local @ basis.mT
        codes = one_hot(labels, self.num_classes).to(local)
        slope = torch.softmax(scores, 1) @ basis
        constant = (slope * local).sum(1) - torch.logsumexp(scores, 1)
        return QuadraticBound(
            constant=constant - 0.25 * local.square().sum(1),
            linear=codes @ basis - slope + 0.5 * local,
            precision=torch.full_like(local[:, :1], 0.5),
        )

    def best_local(self, moments: Moments) -> Float[Tensor, "N K"]:
        """ψ = E f."""
        return moments.mean

    def log_probabilities(self, f: Float[Tensor, "*B C1"]) -> Float[Tensor, "*B C"]:
        """log softmax(V f)."""
        return torch.log_softmax(f @ self.contrasts.to(f).mT, -1)

    @torch.no_grad()
    def class_probabilities(self, prediction: Prediction) -> Float[Tensor, "N C"]:
        """E softmax(V f) over even draws of f, the same for every input."""
        noise = even_normals(self.num_outputs, NUM_DRAWS).to(prediction.mean)
        rows = max(1, MAX_ENTRIES // (2 * NUM_DRAWS * self.num_classes))
        pieces = zip(prediction.mean.split(rows), prediction.variance.split(rows), strict=True)
        found = []
        for mean, variance in pieces:
            f = mean.unsqueeze(1) + variance.sqrt().unsqueeze(1) * noise
            found.append(self.log_probabilities(f).exp().mean(1))
        return torch.cat(found)


def contrasts(num_classes: int) -> Float[Tensor, "C C1"]:
    """An orthonormal basis of the vectors that sum to 0 (Helmert's), in float64."""
    rows = torch.arange(num_classes, dtype=torch.float64)
    places = torch.arange(1, num_classes, dtype=torch.float64)
    # column j: j ones, then −j, over √(j (j + 1))
    ones = (rows.unsqueeze(1) < places).double()
    last = torch.where(rows.unsqueeze(1) == places, -places, ones)
    return last / (places * (places + 1)).sqrt()


def even_normals(num_columns: int, num_draws: int) -> Float[Tensor, "S K"]:
    """Sobol points as standard normals, and their mirror images: always the same."""
    engine = torch.quasirandom.SobolEngine(num_columns, scramble=True, seed=0)
    uniform = engine.draw(num_draws, dtype=torch.float64).clamp(1e-9, 1 - 1e-9)
    normals = torch.special.ndtri(uniform)
    return torch.cat([normals, -normals])
