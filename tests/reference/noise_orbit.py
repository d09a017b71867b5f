"""The bound of a Gaussian-noise orbit with an RBF kernel, in closed form.

E k(x + sε, z)        = v (ℓ²/(ℓ² + s²))^{D/2}  exp(−½ |x − z|²/(ℓ² + s²))
E k(x + sε, x + sε')  = v (ℓ²/(ℓ² + 2s²))^{D/2}
"""

import torch

from orbitgp.values import Moments


def blurred(kernel, scale, x, z):
    """k_fu, [N, M]."""
    length = kernel.lengthscale.square()[0, 0]
    wide = length + scale**2
    shrink = (length / wide) ** (x.shape[1] / 2)
    return kernel.variance[0, 0] * shrink * torch.exp(-0.5 * torch.cdist(x, z).square() / wide)


def exact_moments(model, x):
    """μ, μ², σ² of q(f(x)) without any sampling."""
    kernel, scale = model.kernel, model.orbit.scale
    length = kernel.lengthscale.square()[0, 0]
    kfu = blurred(kernel, scale, x, model.posterior.points)
    prior = kernel.variance[0, 0] * (length / (length + 2 * scale**2)) ** (x.shape[1] / 2)
    q, factor = model.posterior.q, model.posterior.prior_factor(kernel)
    v = torch.linalg.solve_triangular(factor, kfu.T, upper=False).T
    mean = v @ q.mean
    nu = q.narrowing
    variance = nu * (prior - v.square().sum(1, keepdim=True))
    variance = variance + torch.stack([(v @ u).square().sum(1) for u in q.scale], 1)
    return Moments(mean, mean**2, variance, (nu - 1 - nu.log()) / 2)
