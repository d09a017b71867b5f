"""The bound by its definition: one input, one pair of samples, one output at a time."""

import itertools
import math

import torch

from orbitgp.kernels import covariance


def unwhitened(posterior, kernel):
    """Kuu, m and S_u (one for each output) of q(u)."""
    factor = posterior.prior_factor(kernel)
    q = posterior.q
    scales = q.scale.expand(q.mean.shape[1], -1, -1)
    return (
        factor @ factor.T,
        factor @ q.mean,
        [factor @ scale @ scale.T @ factor.T for scale in scales],
    )


def double_mean(weights, samples, function):
    """Σ_st w_st r(x_s, x_t)."""
    total = 0.0
    for s, t in itertools.product(range(len(samples)), repeat=2):
        same = s // weights.group_size == t // weights.group_size
        total = total + (weights.within if same else weights.across) * function(
            samples[s], samples[t]
        )
    return total


def slow_moments(model, points, weights):
    """μ, μ², σ² of the estimate, [N, C] each, from points [N, S, D]."""
    kernel, z = model.kernel, model.posterior.points
    kuu, m, covariances = unwhitened(model.posterior, kernel)
    inverse, nu = torch.linalg.inv(kuu), model.posterior.q.narrowing

    def k(x):
        return covariance(kernel, x[None], z)[0]

    means, squares, variances = [], [], []
    for samples in points:
        average = sum(k(x) for x in samples) / len(samples)
        outer = double_mean(weights, samples, lambda a, b: torch.outer(k(a), k(b)))
        prior = double_mean(
            weights, samples, lambda a, b: covariance(kernel, a[None], b[None])[0, 0]
        )
        means.append(average @ inverse @ m)
        squares.append(
            torch.stack([(inverse @ c.outer(c) @ inverse * outer).sum() for c in m.unbind(1)])
        )
        variances.append(
            torch.stack(
                [
                    nu * (prior - (inverse * outer).sum()) + (inverse @ s @ inverse * outer).sum()
                    for s in covariances
                ]
            )
        )
    return torch.stack(means), torch.stack(squares), torch.stack(variances)


def slow_gaussian_elbo(model, targets, moments):
    """Σ_n Σ_c −½ log 2πσ² − (y² − 2 y μ + μ² + v) / 2σ², minus the KL by its textbook formula."""
    noise = model.likelihood.noise
    mean, square, variance = moments
    errors = targets**2 - 2 * targets * mean + square + variance
    fit = (-0.5 * torch.log(2 * math.pi * noise) - errors / (2 * noise)).sum()
    nu = model.posterior.q.narrowing
    conditional = torch.distributions.kl_divergence(
        torch.distributions.Normal(0.0, nu.sqrt()), torch.distributions.Normal(0.0, 1.0)
    )
    return fit - slow_kl(model) - errors.numel() * conditional


def slow_kl(model):
    """KL[N(m, S_u) ‖ N(0, Kuu)] for each output."""
    kuu, m, covariances = unwhitened(model.posterior, model.kernel)
    prior = torch.distributions.MultivariateNormal(torch.zeros(len(kuu)).to(kuu), kuu)
    total = 0.0
    for mean, spread in zip(m.unbind(1), covariances, strict=True):
        q = torch.distributions.MultivariateNormal(mean, (spread + spread.T) / 2)
        total = total + torch.distributions.kl_divergence(q, prior)
    return total
