"""The mean of f with every datum for a variable of its own, by conjugate gradients.

Given S orbit points of each datum, averages of g over them have covariance K [N, N], and the mean
of a process that was fitted to all of them is k̄(x)·a with (K + σ²I) a = y. Half of K fits into
memory where N is some ten thousands. Some columns make the preconditioner (Rudi et al. 2017)

    P = K_nm K_mm⁻¹ K_mn + σ²I,    P⁻¹ = (I − K_nm (σ²K_mm + K_mn K_nm)⁻¹ K_mn) / σ².

Where f is a log-odds the mean is the mode, f = K a with a = ∇ log p(y | f). A bound with the
largest curvature λ that there is makes of it the same equations with σ² = 1/λ, again and again. The
same P serves them all.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.kernels import Kernel, slices
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.model import InvariantGP
from orbitgp.posterior.algebra import add_jitter, cholesky
from orbitgp.posterior.inducing import sums_with_u
from orbitgp.posterior.mean_basis import MeanBasis
from orbitgp.training.fixed_point import quickened
from orbitgp.training.passes import CHUNK, Resident
from orbitgp.training.solving import ENTRIES, FLOPS
from orbitgp.training.starts import JITTER, orbit_points
from orbitgp.values import Moments, OrbitSample

NUM_SAMPLES = (64, 32, 16, 8, 4)
"""Orbit points of each datum, as many of these as time allows."""

BLOCK = 2048
NUM_COLUMNS = 3000
MAX_ROUNDS = 60
USUAL_ROUNDS = 15
"""For codes; log-odds take nearly all that they may."""

TOLERANCE = 0.03
"""What may remain of |y|: predictions rest long before equations are solved."""

GIVEN_UP = 0.5
"""If more of |y| remains than this, the mean of q(u) is better than such an answer."""

ROUND = 2.6e-9
"""Seconds of one thread for an entry of K in a round."""

REST = 0.003
"""Root mean square change of a log-odds at which rounds end."""

NUM_POWERS = 6
SPARE = 1.1

Operator = Callable[[Float[Tensor, "N C"]], Float[Tensor, "N C"]]


def affordable_samples(
    num_data: int,
    num_features: int,
    *,
    orbit_size: float,
    seconds: float,
    memory: float,
    num_rounds: int = USUAL_ROUNDS,
) -> tuple[int, float]:
    """The most orbit points of each datum that fit into the budget, and their seconds.

    None if not even the fewest fit, or if half of K is too large.
    """
    threads, entries = torch.get_num_threads(), num_data**2 / 2
    columns = min(NUM_COLUMNS, num_data)
    for wanted in NUM_SAMPLES:
        count = int(min(wanted, orbit_size))
        kernel = count**2 * (1 / ENTRIES + 2 * num_features / FLOPS["kernel"])
        solve = num_data * columns**2 / FLOPS["float64"]
        total = (entries * (kernel + num_rounds * ROUND) + solve) / threads
        if total <= seconds and 4 * entries <= memory:
            return count, total
    return 0, 0.0


@dataclass(frozen=True)
class HalfMatrix:
    """A symmetric matrix by the blocks of its lower half, in the dtype of the kernel."""

    blocks: list[tuple[slice, slice, Tensor]]

    def __matmul__(self, columns: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        product, rounded = torch.zeros_like(columns), columns.to(self.blocks[0][2])
        for rows, others, block in self.blocks:
            product[rows] += block @ rounded[others]
            if rows != others:
                product[others] += block.mT @ rounded[rows]
        return product


@torch.no_grad()
def mean_of_all(
    model: InvariantGP, examples: Resident, *, num_samples: int, generator: torch.Generator
) -> MeanBasis | None:
    """a, and the orbit points that it belongs to; none where no a was found."""
    x, y, likelihood = examples.x, examples.y, model.likelihood
    draws = {"num_averaged": num_samples, "generator": generator}
    points = torch.cat([orbit_points(model, part, **draws) for part in x.split(CHUNK)])
    bound = likelihood.quadratic_bound(x, y)
    local = isinstance(likelihood, LocalLikelihood)
    noise = 1 / (likelihood.max_precision if local else bound.precision.mean().item())
    matrix = half_covariance(model.kernel, points)
    order = torch.randperm(len(x), generator=generator)[:NUM_COLUMNS].to(x.device)
    columns = points[order]
    parts = [averages(model.kernel, part, columns) for part in points.split(BLOCK)]
    precondition = preconditioner(torch.cat(parts), order, noise)

    def multiply(columns: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        return (matrix @ columns).add_(columns, alpha=noise)

    if local:
        start = precondition(noise * bound.linear)
        length = noise / largest_ratio(multiply, precondition, start)
        labels = likelihood.labels_of(y)
        return MeanBasis(points, likeliest(likelihood, labels, matrix, precondition, length, start))
    weights, remains = conjugate_gradients(multiply, bound.targets, precondition)
    return MeanBasis(points, weights) if remains <= GIVEN_UP else None


def averages(
    kernel: Kernel, left: Float[Tensor, "N S D"], right: Float[Tensor, "M S D"]
) -> Float[Tensor, "N M"]:
    """mean_st k_g(x_ns, z_mt), in the dtype of the points."""
    num_samples = left.shape[1]
    sums = sums_with_u(kernel, OrbitSample(left), right, num_samples)
    return (sums[:, 0] / num_samples).to(left.dtype)


def half_covariance(kernel: Kernel, points: Float[Tensor, "N S D"]) -> HalfMatrix:
    """The covariance of the averages of g over the points of each datum."""
    pairs = itertools.combinations_with_replacement(slices(len(points), BLOCK), 2)
    return HalfMatrix([(b, a, averages(kernel, points[b], points[a])) for a, b in pairs])


def preconditioner(cross: Float[Tensor, "N M"], rows: Tensor, noise: float) -> Operator:
    """P⁻¹ for K_nm and the rows of it that K_mm is."""
    cross = cross.double()  # as what is left of a difference is divided by σ²
    own = cross[rows]
    total = add_jitter(noise * 0.5 * (own + own.mT), JITTER)
    for part in cross.split(BLOCK):
        total.addmm_(part.mT, part)
    factor = cholesky(total, "σ²K_mm + K_mn K_nm")

    def apply(columns: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        inner = torch.cholesky_solve(cross.mT @ columns, factor)
        return (columns - cross @ inner) / noise

    return apply


def conjugate_gradients(
    multiply: Operator, targets: Float[Tensor, "N C"], precondition: Operator
) -> tuple[Float[Tensor, "N C"], float]:
    """A⁻¹ y for each column of y, from the preconditioner's own answer on, and what remains of |y|.

    Rounding can make it stray, so the best answer is the one that is returned.
    """
    solution = precondition(targets)
    residual = targets - multiply(solution)
    direction = ahead = precondition(residual)
    slope, size = _inner(residual, ahead), targets.norm().item() or 1.0
    best = residual.norm().item() / size, solution
    for _ in range(MAX_ROUNDS):
        if best[0] <= TOLERANCE:
            break
        product = multiply(direction)
        length = slope / _inner(direction, product)
        solution = solution + length * direction
        residual = residual - length * product
        best = min(best, (residual.norm().item() / size, solution), key=lambda pair: pair[0])
        ahead = precondition(residual)
        before, slope = slope, _inner(residual, ahead)
        direction = ahead + slope / before * direction
    return best[1], best[0]


def likeliest(
    likelihood: LocalLikelihood,
    labels: Int[Tensor, "N"],
    matrix: HalfMatrix,
    precondition: Operator,
    length: float,
    start: Float[Tensor, "N C"],
) -> Float[Tensor, "N C"]:
    """The a with the highest log p(y | f = K a) − ½ aᵀK a.

    Its slope in f is ∇ log p − a and log p bends by at most 1/σ², so a step of
    (K + σ²I)⁻¹ σ² (∇ log p − a) climbs; P is smaller than K + σ²I by at most the factor ρ, which
    makes steps of P⁻¹ `length`, σ²/ρ, safe. Nesterov's way, begun anew where it would turn back.
    """
    a, f = start, matrix @ start
    ahead, local, speed = a, f, 1.0
    best = _log_joint(likelihood, labels, a, f), a
    for _ in range(MAX_ROUNDS):
        touching = likelihood.best_local(Moments(local, local.square(), torch.zeros_like(local)))
        bound = likelihood.bound_at(labels, touching)
        slope = bound.linear - bound.precision * local - ahead
        before, a = (a, f), ahead + length * precondition(slope)
        f = matrix @ a
        best = max(best, (_log_joint(likelihood, labels, a, f), a), key=lambda pair: pair[0])
        step = f - before[1]
        if step.square().mean().sqrt() < REST:
            break
        speed, momentum = quickened(speed, turns_back=bool(((local - f) * step).sum() > 0))
        ahead, local = a + momentum * (a - before[0]), f + momentum * step
    return best[1]


def largest_ratio(multiply: Operator, precondition: Operator, start: Float[Tensor, "N C"]) -> float:
    """ρ, the largest eigenvalue of P⁻¹(K + σ²I), by some powers of it, with a little to spare."""
    columns, ratio = start / start.norm(), 1.0
    for _ in range(NUM_POWERS):
        columns = precondition(multiply(columns))
        ratio = columns.norm().item()
        columns = columns / ratio
    return SPARE * max(ratio, 1.0)


def _log_joint(likelihood: LocalLikelihood, labels: Tensor, a: Tensor, f: Tensor) -> float:
    """Σ log p(y | f) − ½ aᵀf."""
    own = likelihood.log_probabilities(f).gather(1, labels.unsqueeze(1)).sum()
    return (own - 0.5 * (a * f).sum()).item()


def _inner(a: Float[Tensor, "N C"], b: Float[Tensor, "N C"]) -> Float[Tensor, "C"]:
    """Column by column; a column that is solved must not divide 0 by 0."""
    return (a * b).sum(0).clamp(min=torch.finfo(a.dtype).tiny)
