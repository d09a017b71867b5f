"""A whole stochastic fit: start, train, solve for q(u), bound, calibrate."""

import copy
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.callbacks.base import Callback
from orbitgp.distributed.group import ALONE, Group
from orbitgp.fit.checkpoint import Checkpoint
from orbitgp.fit.checks import warn_of_copies
from orbitgp.fit.run import Outcome
from orbitgp.hyperparameters.calibration import calibrate
from orbitgp.inference.passes import Examples, Resident
from orbitgp.likelihoods.local import LocalLikelihood
from orbitgp.likelihoods.recognition import Recognition
from orbitgp.model import InvariantGP
from orbitgp.orbit_model import OrbitModel
from orbitgp.orbits.base import FiniteOrbit
from orbitgp.posterior.inducing import InducingPosterior
from orbitgp.stochastic.natural import NaturalParameters
from orbitgp.stochastic.passes import best_q, bound_of_all, left_out
from orbitgp.stochastic.placement import kmeans_points
from orbitgp.stochastic.settings import StochasticSettings
from orbitgp.stochastic.training import Training


@dataclass(frozen=True)
class Seeds:
    """Seeds of everything random in a fit, so that any step can be repeated by itself."""

    training: int
    solving: int
    bounding: int
    predicting: int

    @staticmethod
    def drawn(generator: torch.Generator) -> "Seeds":
        """Four seeds of one generator."""
        return Seeds(*torch.randint(2**40, (4,), generator=generator).tolist())


def fit_stochastic(
    model: OrbitModel,
    examples: Examples,
    settings: StochasticSettings,
    *,
    num_inducing: int,
    generator: torch.Generator,
    group: Group,
    callback: Callback,
    checkpoint: Checkpoint,
) -> Outcome:
    """Train from the hyperparameters of this model on, then solve for q(u) with all data."""
    seeds, start = Seeds.drawn(generator), starting_rows(examples, settings, generator)
    fitted = with_points(model, examples, start, num_inducing, generator=generator)
    callback.announced(describe(fitted, examples, settings))
    natural = starting_q(fitted, examples, start, settings, generator=generator)
    training = Training(fitted, natural, examples, settings, seed=seeds.training, group=group)
    checkpoint.restore(training)
    training.finish(callback, checkpoint)
    callback.announced(f"solving for q(u) with all {examples.num_data:,} inputs, and its bound")
    sizes = {"group": group, "num_draws": settings.last_draws}
    q = best_q(fitted, examples, seed=seeds.solving, **sizes).gaussian()
    fitted.posterior.assign(q)
    sizes = {"group": group, "num_draws": settings.num_draws, "group_size": settings.group_size}
    evidence, error = bound_of_all(fitted, q, examples, seed=seeds.bounding, **sizes)
    noise = prediction_noise(fitted, settings.prediction_draws, seeds.predicting)
    x, y = examples.x[start], examples.y[start]
    calibrate(fitted.likelihood, left_out(fitted, q, x, y, noise), y)
    warn_of_copies(examples.x, callback)
    return Outcome(
        model=fitted,
        evidence=evidence,
        evidence_error=error,
        kind="bound",
        sizes={
            "num_draws": int(fitted.orbit.size) if noise is None else noise.shape[1],
            "num_inducing": len(fitted.posterior.points),
            "full_mean": False,
        },
        noise=noise,
        curve=training.curve,
        num_steps=training.num_steps,
        stopped=training.stopped,
    )


def with_recognition(
    likelihood: LocalLikelihood, x: Tensor, *, generator: torch.Generator
) -> LocalLikelihood:
    """A copy whose local parameters a network gives, from input and label (section 4.5)."""
    likelihood = copy.deepcopy(likelihood)
    likelihood.recognition = Recognition(
        x[0].numel(), likelihood.num_classes, likelihood.num_local, generator=generator
    )
    return likelihood.to(x.device)


def starting_rows(
    examples: Examples, settings: StochasticSettings, generator: torch.Generator
) -> Tensor:
    """Data in memory, in random order, that training starts from."""
    order = torch.randperm(len(examples.x), generator=generator)
    return order[: settings.start_size].to(examples.x.device)


@torch.no_grad()
def with_points(
    model: OrbitModel,
    examples: Examples,
    rows: Tensor,
    num_inducing: int,
    *,
    generator: torch.Generator,
) -> InvariantGP:
    """The model with inducing points at the centres of clusters of its features."""
    features = torch.cat([model.features(part) for part in examples.x[rows].split(256)])
    count = min(num_inducing, len(features))
    likelihood = model.likelihood
    one = likelihood.quadratic_bound(examples.x[rows[:1]], examples.y[rows[:1]])
    posterior = InducingPosterior(
        kmeans_points(features, count, generator=generator),
        one.linear.shape[1],
        shared_covariance=likelihood.num_precisions == 1,
    )
    return InvariantGP(**model.parts(), posterior=posterior.to(examples.x.device))


@torch.no_grad()
def starting_q(
    model: InvariantGP,
    examples: Examples,
    rows: Tensor,
    settings: StochasticSettings,
    *,
    generator: torch.Generator,
) -> NaturalParameters:
    """The best q(u) for some data, as if there were as many of them as of all."""
    few = Resident(examples.x[rows], examples.y[rows])
    seed = int(torch.randint(2**40, (1,), generator=generator))
    found = best_q(model, few, num_draws=settings.num_draws, seed=seed, group=ALONE)
    share = examples.num_data / len(rows)
    identity = torch.eye(found.precision.shape[-1]).to(found.precision)
    return NaturalParameters.optimum(share * (found.precision - identity), share * found.target)


def prediction_noise(
    model: InvariantGP, num_draws: int, seed: int
) -> Float[Tensor, "1 S K"] | None:
    """Noise of the draws that all predictions share; None where a finite orbit is enumerated."""
    orbit = model.orbit
    if isinstance(orbit, FiniteOrbit) and orbit.size <= num_draws:
        return None
    generator = torch.Generator().manual_seed(seed)
    return orbit.shared_noise(orbit.num_shared(num_draws), generator=generator)


def describe(model: InvariantGP, examples: Examples, settings: StochasticSettings) -> str:
    """What will be done, for people who wait."""
    return (
        f"stochastic training: {settings.num_steps:,} steps of {settings.batch_size} of "
        f"{examples.num_data:,} inputs, {len(model.posterior.points):,} inducing points"
    )
