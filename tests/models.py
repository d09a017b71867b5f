"""Small models for tests, with nothing at its default: a wrong formula has nowhere to hide."""

import torch

from orbitgp import RBF, Gaussian, InducingPosterior, InvariantGP, mean_pairs, solve, statistics
from orbitgp.values import WhitenedGaussian


def random_model(orbit, generator, *, points, num_outputs=2, likelihood=None, jitter=1e-8):
    """A model with random q(u), in float64."""
    likelihood = likelihood or Gaussian(0.3)
    shared = len(likelihood.noise) == 1
    posterior = InducingPosterior(points, num_outputs, shared_covariance=shared, jitter=jitter)
    posterior.assign(random_q(generator, len(points), num_outputs, len(likelihood.noise)))
    return InvariantGP(
        orbit=orbit,
        kernel=RBF(variance=1.7, lengthscale=0.8).double(),
        posterior=posterior,
        likelihood=likelihood,
    )


def random_q(generator, num_points, num_outputs, num_scales=1):
    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    scale = 0.2 * draw(num_scales, num_points, num_points) + 0.5 * torch.eye(num_points)
    narrowing = torch.tensor(0.6, dtype=torch.float64)
    return WhitenedGaussian(draw(num_points, num_outputs), scale.triu(), narrowing)


@torch.no_grad()
def take_best_q(model, x, y, *, num_samples=None, generator=None):
    """Give the model the best q(u) for these data."""
    draws = {"num_samples": num_samples, "generator": generator, "pairs": mean_pairs}
    found = statistics(model, x, y, **draws)
    model.posterior.assign(solve(found, model.posterior.prior_covariance(model.kernel)))
