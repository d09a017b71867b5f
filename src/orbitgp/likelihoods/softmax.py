"""Softmax with Böhning's bound of its curvature: one M×M matrix for any number of classes.

p(y = k | f) = softmax_k(V f) for C − 1 outputs f, with the columns of V an orthonormal basis of all
that sums to 0 over the classes: adding a constant to all of them changes nothing. The Hessian of
lse(V f) is at most ½ I (Böhning 1992), so for any ψ, with s = softmax(V ψ),

    log p(y | f) ≥ (Vᵀe_y)·f − lse(Vψ) − (Vᵀs)·(f − ψ) − ¼ |f − ψ|²,

which touches at f = ψ: its expectation is highest at ψ = E f. The curvature of a confident datum is
far below ½, so the evidence is a loose bound, though the mean of q(u) is that of the exact mode.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from orbitgp.filters import rows_of
from orbitgp.likelihoods.base import MAX_ENTRIES
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.values import Moments, Prediction, QuadraticBound

CURVATURE = 0.5
NUM_DRAWS = 256
"""Even draws of f, and as many mirrored ones, for class probabilities."""


class Softmax(LocalLikelihood):
    """Several classes by a softmax of C − 1 contrasts between them, with Böhning's bound.

    Parameters
    ----------
    num_classes : int
        C, at least 2.
    recognition : torch.nn.Module, optional
        Network that gives the local parameters of the bound from input and label.

    Raises
    ------
    InputError
        If there are fewer than 2 classes.

    References
    ----------
    D. Böhning (1992). Multinomial logistic regression algorithm. Annals of the Institute of
    Statistical Mathematics.

    Examples
    --------
    >>> from orbitgp import Softmax
    >>> Softmax(3).num_outputs
    2
    """

    noise: Float[Tensor, "S C1"]

    def __init__(self, num_classes: int, *, recognition: nn.Module | None = None) -> None:
        sizes = {"num_outputs": num_classes - 1, "num_local": num_classes - 1}
        super().__init__(num_classes, **sizes, recognition=recognition)
        noise = even_normals(num_classes - 1, NUM_DRAWS)
        self.register_buffer("noise", noise, persistent=False)

    @property
    def num_precisions(self) -> int:
        """½ for all."""
        return 1

    @property
    def has_constant_precision(self) -> bool:
        """λ = ½."""
        return True

    def bound_at(self, labels: Int[Tensor, "N"], local: Float[Tensor, "N K"]) -> QuadraticBound:
        """Tight at f = ψ; λ = ½ for every datum."""
        scores = from_contrasts(local)
        s = torch.softmax(scores, 1)
        # lse(Vψ) = (Vψ)_k − log s_k for any k; the largest s_k is at least 1/C
        lse = scores.amax(1) - s.amax(1).log()
        # (Vᵀs)·ψ = s·(Vψ)
        constant = torch.linalg.vecdot(s, scores) - lse
        constant = constant - 0.5 * CURVATURE * torch.linalg.vecdot(local, local)
        errors = -s
        errors[torch.arange(len(labels), device=s.device), labels] += 1  # e_y − s
        return QuadraticBound(
            constant=constant,
            linear=torch.add(to_contrasts(errors), local, alpha=CURVATURE),
            precision=torch.full_like(local[:, :1], CURVATURE),
        )

    def best_local(self, moments: Moments) -> Float[Tensor, "N K"]:
        """ψ = E f."""
        return moments.mean

    def log_probabilities(self, f: Float[Tensor, "*B C1"]) -> Float[Tensor, "*B C"]:
        """log softmax(V f)."""
        return torch.log_softmax(from_contrasts(f), -1)

    @torch.no_grad()
    def mean_probabilities(self, prediction: Prediction) -> Float[Tensor, "N C"]:
        """E softmax(V f) over even draws of f, the same for every input."""
        noise, parts = self.noise.to(prediction.mean), (prediction.mean, prediction.variance)
        rows = max(1, MAX_ENTRIES // (2 * NUM_DRAWS * self.num_classes))
        pieces = zip(*(rows_of(part, rows) for part in parts), strict=True)
        found = []
        for mean, variance in pieces:
            f = mean.unsqueeze(1) + variance.sqrt().unsqueeze(1) * noise
            found.append(self.log_probabilities(f).exp().mean(1))
        return torch.cat(found)


def from_contrasts(f: Float[Tensor, "*B C1"]) -> Float[Tensor, "*B C"]:
    """V f: the reflection that takes e_1 to 1/√C, without its first column, in C operations.

    With t = Σ_j f_j its entries are t/√C, then f_j − t/(C − √C).
    """
    total, size = f.sum(-1, keepdim=True), f.shape[-1] + 1
    return torch.cat([total / math.sqrt(size), f - total / (size - math.sqrt(size))], -1)


def to_contrasts(values: Float[Tensor, "*B C"]) -> Float[Tensor, "*B C1"]:
    """Vᵀ s: with t = Σ_j s_j its entries are s_j + s_1/(√C − 1) − t/(C − √C)."""
    size = values.shape[-1]
    first, total = values[..., :1], values.sum(-1, keepdim=True)
    root = math.sqrt(size)
    return values[..., 1:] + (first / (root - 1) - total / (size - root))


def even_normals(num_columns: int, num_draws: int) -> Float[Tensor, "S K"]:
    """Sobol points as standard normals, and their mirror images: always the same."""
    engine = torch.quasirandom.SobolEngine(num_columns, scramble=True, seed=0)
    uniform = engine.draw(num_draws, dtype=torch.float64).clamp(1e-9, 1 - 1e-9)
    normals = torch.special.ndtri(uniform)
    return torch.cat([normals, -normals])
