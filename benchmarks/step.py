"""One training step against the torch operations it cannot avoid, and against GPyTorch's SVGP.

M = 1000, 256 images of 28×28, S = 8 affine orbit samples, 10 outputs: `python -m benchmarks.step`
"""

import gpytorch
import torch
from torch import Tensor
from torch.nn.functional import grid_sample

import orbitgp
from benchmarks.timing import interleaved, report
from orbitgp.distributed.group import ALONE
from orbitgp.inference.passes import Resident
from orbitgp.stochastic.natural import NaturalParameters
from orbitgp.stochastic.training import Training

M, N, S, C, SIDE, GROUP = 1000, 256, 8, 10, 28, 4
D = SIDE * SIDE


def orbitgp_step(images: Tensor, labels: Tensor, points: Tensor):
    """A step of stochastic training: ranges, kernel, noise and Z by gradients, q(u) naturally."""
    model = orbitgp.InvariantGP(
        orbit=orbitgp.Affine(-0.1, 0.1),
        kernel=orbitgp.RBF(1.0, 5.0),
        posterior=orbitgp.InducingPosterior(points, C, jitter=1e-4),
        likelihood=orbitgp.OneHotGaussian(C),
    )
    settings = orbitgp.StochasticSettings(
        batch_size=N, num_draws=S, group_size=GROUP, rate=1e-4, point_rate=1e-4
    )
    zero = model.posterior
    prior = NaturalParameters.optimum(torch.zeros_like(zero.scale), torch.zeros_like(zero.mean))
    data = Resident(images, labels)
    training = Training(model, prior, data, settings, seed=0, group=ALONE)
    return training.step


def bare_step(images: Tensor, points: Tensor, generator: torch.Generator):
    """What nobody can avoid: warp, kernel products, exp, float64 Gram, Cholesky, with gradients."""
    grid = (2 * torch.rand(N, S * SIDE, SIDE, 2, generator=generator) - 1).requires_grad_()
    stacked = images.unsqueeze(1)
    upstream = torch.randn(N, 1, S * SIDE, SIDE, generator=generator)
    samples = torch.rand(N * S, D, generator=generator)
    slopes = torch.rand(N * S, M, generator=generator)
    groups = torch.rand(N * S // GROUP, M, generator=generator, dtype=torch.float64)
    square = torch.rand(M, M, generator=generator, dtype=torch.float64)
    kuu = (square @ square.T + M * torch.eye(M)).requires_grad_()

    def run() -> None:
        torch.autograd.grad(grid_sample(stacked, grid, align_corners=False), grid, upstream)
        torch.exp(torch.matmul(samples, points.T))
        torch.matmul(slopes, points)  # the gradient reaching the samples …
        torch.matmul(slopes.T, samples)  # … and the inducing points
        torch.matmul(groups.T, groups)
        torch.autograd.grad(torch.linalg.cholesky(kuu), kuu, square)

    return run


class Svgp(gpytorch.models.ApproximateGP):
    """What a user of GPyTorch writes for C outputs: shared Z and kernel, q(u) of each output."""

    def __init__(self, points: Tensor) -> None:
        q = gpytorch.variational.CholeskyVariationalDistribution(M, batch_shape=torch.Size([C]))
        strategy = gpytorch.variational.VariationalStrategy(self, points, q)
        super().__init__(
            gpytorch.variational.IndependentMultitaskVariationalStrategy(strategy, num_tasks=C)
        )
        rbf = gpytorch.kernels.RBFKernel().initialize(lengthscale=5.0)
        self.kernel = gpytorch.kernels.ScaleKernel(rbf)

    def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
        """The prior of g."""
        return gpytorch.distributions.MultivariateNormal(x.new_zeros(x.shape[:-1]), self.kernel(x))


def gpytorch_step(samples: Tensor, labels: Tensor, points: Tensor):
    """The same number of points, already transformed, as an ordinary batch."""
    model = Svgp(points)
    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(C, has_task_noise=False)
    mll = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=60_000)
    parameters = [*model.parameters(), *likelihood.parameters()]
    optimizer = torch.optim.Adam(parameters, 1e-4, fused=True)
    targets = torch.nn.functional.one_hot(labels, C).float().repeat_interleave(S, 0)

    def run() -> None:
        optimizer.zero_grad()
        torch.as_tensor(-1 * mll(model(samples), targets)).backward()  # pyright: ignore
        optimizer.step()

    return run


def main(repeats: int = 15) -> None:
    """Measure and report."""
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(N, SIDE, SIDE, generator=generator)
    labels = torch.randint(C, (N,), generator=generator)
    points = torch.rand(M, D, generator=generator)
    samples = torch.rand(N * S, D, generator=generator)
    contenders = {
        "bare": bare_step(images, points, generator),
        "orbitgp": orbitgp_step(images, labels, points),
        "gpytorch": gpytorch_step(samples, labels, points),
    }
    settings = {"M": M, "batch": N, "S": S, "C": C, "side": SIDE, "group_size": GROUP, "seed": 0}
    report("step", interleaved(contenders, repeats), settings, "python -m benchmarks.step")


if __name__ == "__main__":
    main()
