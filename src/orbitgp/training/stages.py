"""Two stages: learn the invariance at modest M, then solve once at large M."""

import copy
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from orbitgp.kernels import RBF
from orbitgp.likelihoods.base import Likelihood
from orbitgp.likelihoods.gaussian import NOISE_FLOOR, Gaussian
from orbitgp.model import InvariantGP, mean_pairs, unbiased_pairs
from orbitgp.objective import stream_pointwise_bound, stream_statistics
from orbitgp.orbits.base import Orbit
from orbitgp.posterior.closed_form import expected_log_likelihood, solve
from orbitgp.posterior.inducing import InducingPosterior, kl
from orbitgp.training.callbacks import Callback, Evaluation
from orbitgp.training.loop import Training, train
from orbitgp.training.settings import TrainingSettings
from orbitgp.values import SufficientStatistics, WhitenedGaussian

SCREEN_STEPS = 40
NOISE_FACTORS = (0.7, 0.5, 0.35, 0.25, 0.18, 0.12)
JITTER = 1e-5
"""Relative; float32 covariances with u are exact to about 1e-6."""

FLOPS = {"float32": 60e9, "float64": 30e9}
"""Operations a second of one thread, on the low side, to turn a time budget into a size."""


@dataclass(frozen=True)
class Outcome:
    """What the two stages made of the data."""

    model: InvariantGP
    evidence: float
    evidence_error: float
    curve: list[Evaluation]
    num_steps: int
    stopped: str


def candidates(
    orbit: Orbit, feature_map: nn.Module, x: Tensor, size: int, generator: torch.Generator
) -> Tensor:
    """Orbit samples of random inputs behind the feature map, among which inducing points go."""
    repeats = math.ceil(size / len(x))
    order = torch.cat([torch.randperm(len(x), generator=generator) for _ in range(repeats)])
    chosen = x[order[:size].to(x.device)]
    with torch.no_grad():
        return orbit.sample(chosen, 1, generator=generator).map(feature_map).points[:, 0]


def initial_model(
    orbit: Orbit,
    likelihood: Likelihood,
    x: Tensor,
    *,
    num_outputs: int,
    num_points: int,
    feature_map: nn.Module,
    variance: float,
    generator: torch.Generator,
) -> InvariantGP:
    """A model whose lengthscale is a typical distance, with inducing points on orbit samples.

    It learns in copies of likelihood and feature map, so that one start leaves the next untouched.
    """
    likelihood, feature_map = copy.deepcopy(likelihood), copy.deepcopy(feature_map)
    points = candidates(orbit, feature_map, x, num_points, generator)
    kernel = RBF(variance, _typical_distance(points)).to(points)
    posterior = InducingPosterior(points, num_outputs, jitter=JITTER)
    return InvariantGP(
        orbit=orbit,
        kernel=kernel,
        posterior=posterior,
        likelihood=likelihood,
        feature_map=feature_map,
    )


def _typical_distance(points: Tensor) -> float:
    """The median distance between points, or 1 where they all coincide."""
    distances = torch.pdist(points[:500].double())
    positive = distances[distances > 0]
    return positive.median().item() if len(positive) else 1.0


def screen(
    models: Sequence[InvariantGP],
    x: Tensor,
    y: Tensor,
    settings: TrainingSettings,
    generator: torch.Generator,
) -> InvariantGP:
    """The start with the most evidence after a few steps; ranges can be slow to grow."""
    if len(models) == 1:
        return models[0]
    short = replace(settings, max_steps=SCREEN_STEPS)
    scores = []
    for model in models:
        training = Training(model, x, y, settings=short, generator=generator)
        train(training, Callback())
        scores.append(max(evaluation.elbo for evaluation in training.curve))
    return models[max(range(len(models)), key=scores.__getitem__)]


def affordable_points(
    num_data: int, num_features: int, num_samples: int, *, seconds: float, memory: float
) -> int:
    """The largest M whose pass and solve fit into the budget, by counting operations.

    time ≈ 2 N S M D / f32 + (2 N M² + 5 M³) / f64,    memory ≈ 6 · 8 M²
    """
    threads = torch.get_num_threads()
    single, double = (FLOPS[name] * threads for name in ("float32", "float64"))

    def fits(m: int) -> bool:
        kernel = 2 * num_data * num_samples * m * num_features / single
        algebra = (2 * num_data * m**2 + 5 * m**3) / double
        return kernel + algebra <= seconds and 48 * m**2 <= memory

    low, high = 1, 1 << 16
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def default_memory() -> float:
    """An eighth of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 8


def solve_large(
    model: InvariantGP,
    x: Tensor,
    y: Tensor,
    *,
    num_points: int,
    num_samples: int,
    generator: torch.Generator,
) -> InvariantGP:
    """Stage two: the same kernel, noise and ranges with many inducing points and the best q(u)."""
    points = candidates(model.orbit, model.feature_map, x, num_points, generator)
    num_outputs = model.posterior.mean.shape[1]
    shared = len(model.posterior.scale) == 1
    large = InvariantGP(
        orbit=model.orbit,
        kernel=model.kernel,
        posterior=InducingPosterior(
            points, num_outputs, shared_covariance=shared, jitter=model.posterior.jitter
        ),
        likelihood=model.likelihood,
        feature_map=model.feature_map,
    )
    draws = {"num_samples": num_samples, "generator": generator}
    fitting = stream_statistics(large, [(x, y)], weigh=mean_pairs, **draws)
    with torch.no_grad():
        factor = large.posterior.prior_factor(large.kernel)
    if isinstance(large.likelihood, Gaussian):
        weigh = unbiased_pairs(num_samples // 2)
        fresh = stream_statistics(large, [(x, y)], weigh=weigh, **draws)
        large.posterior.assign(settle_noise(large.likelihood, fitting, fresh, y, factor))
    else:
        large.posterior.assign(solve(fitting, factor))
    return large


@torch.no_grad()
def settle_noise(
    likelihood: Gaussian,
    fitting: SufficientStatistics,
    fresh: SufficientStatistics,
    y: Tensor,
    prior_factor: Tensor,
) -> WhitenedGaussian:
    """Set the noise with the most evidence at this M, without another pass; returns its q(u).

    What few inducing points could not explain stage one took for noise. Both statistics are
    proportional to 1/σ², the fresh ones tell how good a q(u) is that was fitted on the others.
    """
    noise, kept = likelihood.noise.clone(), likelihood.raw_noise.clone()
    q = solve(fitting, prior_factor)
    best = expected_log_likelihood(fresh, q, prior_factor) - kl(q)
    for factor in NOISE_FACTORS:
        if (factor * noise <= 2 * NOISE_FLOOR).any():
            break
        likelihood.assign_noise(factor * noise)
        lower = solve(_at_noise(fitting, likelihood, y, factor), prior_factor)
        bound = _at_noise(fresh, likelihood, y, factor)
        value = expected_log_likelihood(bound, lower, prior_factor) - kl(lower)
        if value <= best:
            break
        q, best, kept = lower, value, likelihood.raw_noise.clone()
    likelihood.raw_noise.copy_(kept)
    return q


def _at_noise(
    statistics: SufficientStatistics, likelihood: Gaussian, y: Tensor, factor: float
) -> SufficientStatistics:
    """Statistics as they would be with `factor` times the noise they were taken with."""
    return SufficientStatistics(
        constant=likelihood.quadratic_bound(y, y).constant.sum(),
        linear=statistics.linear / factor,
        gram=statistics.gram / factor,
        variance=statistics.variance / factor,
        num_data=statistics.num_data,
    )


def evidence(
    model: InvariantGP, x: Tensor, y: Tensor, *, num_samples: int, generator: torch.Generator
) -> tuple[float, float]:
    """The bound of all data on fresh draws, and its standard error from two independent sets."""
    passes = 1 if model.orbit.size <= num_samples else 2  # whole orbits leave nothing to repeat
    values = [
        stream_pointwise_bound(
            model,
            [(x, y)],
            num_samples=num_samples,
            generator=generator,
            group_size=num_samples // 2,
        )
        for _ in range(passes)
    ]
    first, second = values[0], values[-1]
    value = 0.5 * (first + second).sum() - kl(model.posterior.q)
    # Var[(a + b)/2] = E[(a − b)²]/4, added up over independent inputs
    error = 0.5 * (first - second).square().sum().sqrt()
    return value.item(), error.item()


def fit(
    models: Sequence[InvariantGP],
    x: Tensor,
    y: Tensor,
    *,
    settings: TrainingSettings,
    num_points: int,
    generator: torch.Generator,
    callback: Callback,
) -> Outcome:
    """Screen the starts, train the best of them, solve at large M, and weigh the evidence."""
    model = screen(models, x, y, settings, generator)
    training = Training(model, x, y, settings=settings, generator=generator)
    stopped = train(training, callback)
    num_samples = settings.fit_samples
    if num_points > len(model.posterior.points):
        model = solve_large(
            model, x, y, num_points=num_points, num_samples=num_samples, generator=generator
        )
    value, error = evidence(model, x, y, num_samples=num_samples, generator=generator)
    return Outcome(model, value, error, training.curve, training.step, stopped)
