"""Where inducing points go, chosen among candidates: orbit samples behind the feature map."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.kernels import Kernel, covariance, variance


def random_points(
    candidates: Shaped[Tensor, "K *D"], num_points: int, *, generator: torch.Generator
) -> Float[Tensor, "M D"]:
    """Choose different candidates at random.

    Parameters
    ----------
    candidates : Tensor of shape (K, D)
        Features to choose from.
    num_points : int
        M.
    generator : torch.Generator
        Source of randomness.

    Returns
    -------
    Tensor of shape (M, D)
        Inducing points.

    Raises
    ------
    InputError
        If there are fewer candidates than points.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import random_points
    >>> generator = torch.Generator().manual_seed(0)
    >>> random_points(torch.rand(100, 3), 10, generator=generator).shape
    torch.Size([10, 3])
    """
    _check(candidates, num_points)
    order = torch.randperm(len(candidates), generator=generator, device=generator.device)
    return candidates[order[:num_points].to(candidates.device)]


def kmeans_points(
    candidates: Shaped[Tensor, "K *D"],
    num_points: int,
    *,
    generator: torch.Generator,
    num_iterations: int = 20,
) -> Float[Tensor, "M D"]:
    """Take the centres of clusters, by Lloyd's iteration from random candidates.

    Parameters
    ----------
    candidates : Tensor of shape (K, D)
        Features to cluster.
    num_points : int
        M, the number of clusters.
    generator : torch.Generator
        Source of randomness.
    num_iterations : int, default=20
        Iterations.

    Returns
    -------
    Tensor of shape (M, D)
        Inducing points.

    Raises
    ------
    InputError
        If there are fewer candidates than points.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import kmeans_points
    >>> generator = torch.Generator().manual_seed(0)
    >>> kmeans_points(torch.rand(100, 3), 10, generator=generator).shape
    torch.Size([10, 3])
    """
    centres = random_points(candidates, num_points, generator=generator)
    for _ in range(num_iterations):
        nearest = torch.cdist(candidates, centres).argmin(1)
        counts = torch.bincount(nearest, minlength=num_points).unsqueeze(1)
        sums = torch.zeros_like(centres).index_add_(0, nearest, candidates)
        centres = torch.where(counts > 0, sums / counts.clamp(min=1), centres)
    return centres


def greedy_points(
    candidates: Shaped[Tensor, "K *D"], num_points: int, kernel: Kernel
) -> Float[Tensor, "M D"]:
    """Choose one candidate after the other, each where g is least known given those before.

    A pivoted partial Cholesky factorisation, in K M² operations.

    Parameters
    ----------
    candidates : Tensor of shape (K, D)
        Features to choose from.
    num_points : int
        M.
    kernel : gpytorch.kernels.Kernel
        Base kernel, of g.

    Returns
    -------
    Tensor of shape (M, D)
        Inducing points.

    Raises
    ------
    InputError
        If there are fewer candidates than points.

    References
    ----------
    D. Burt, C. E. Rasmussen and M. van der Wilk (2020). Convergence of sparse variational
    inference in Gaussian processes regression. JMLR.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import RBF, greedy_points
    >>> greedy_points(torch.rand(100, 3), 10, RBF()).shape
    torch.Size([10, 3])
    """
    _check(candidates, num_points)
    points = candidates.detach().double()
    with torch.no_grad():
        remaining = variance(kernel, points).clone()
        rows = points.new_zeros(num_points, len(points))
        chosen = torch.empty(num_points, dtype=torch.long, device=points.device)
        for m in range(num_points):
            pivot = remaining.argmax()
            # row_m = (k(x_pivot, ·) − Σ_i row_i[pivot] row_i) / √remaining[pivot]
            covariances = covariance(kernel, points[pivot].unsqueeze(0), points)[0]
            residual = covariances - rows[:m, pivot] @ rows[:m]
            rows[m] = residual / remaining[pivot].clamp(min=1e-12).sqrt()
            chosen[m] = pivot
            remaining = (remaining - rows[m].square()).clamp(min=0)
            remaining[chosen[: m + 1]] = -1.0  # never again, even where duplicates leave nothing
    return candidates[chosen]


def _check(candidates: Tensor, num_points: int) -> None:
    if candidates.ndim != 2 or not candidates.is_floating_point():
        raise InputError(
            f"candidates must be floating point features [K, D]; got {candidates.dtype} "
            f"{list(candidates.shape)}: for images, pass x.float().flatten(1)"
        )
    if not 1 <= num_points <= len(candidates):
        raise InputError(
            f"{num_points} inducing points asked of {len(candidates)} candidates; "
            f"ask for 1 to {len(candidates)}, or draw more orbit samples as candidates"
        )
