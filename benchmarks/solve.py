"""One closed-form pass and its solve against the torch operations that it cannot avoid.

N = 10,000 images of 28×28, M = 4,000, S = 8 affine orbit samples: `python -m benchmarks.solve`
"""

import sys

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

import orbitgp
from benchmarks.timing import interleaved, report

N, M, S, C, SIDE = 10_000, 4_000, 8, 10, 28
D = SIDE * SIDE


def orbitgp_solve(images: Tensor, labels: Tensor, points: Tensor, generator: torch.Generator):
    """Statistics of all images, then the best q(u), in float32 but for the sums and the algebra."""
    model = orbitgp.InvariantGP(
        orbit=orbitgp.Affine(-0.1, 0.1),
        kernel=orbitgp.RBF(1.0, 5.0),
        posterior=orbitgp.InducingPosterior(points, C, jitter=1e-4),
        likelihood=orbitgp.OneHotGaussian(C),
    )

    def run() -> None:
        with torch.no_grad():
            statistics = orbitgp.stream_statistics(
                model,
                [(images, labels)],
                num_samples=S,
                generator=generator,
                pairs=orbitgp.mean_pairs,
            )
            orbitgp.solve(statistics, model.posterior.prior_covariance(model.kernel))

    return run


def bare_solve(images: Tensor, points: Tensor, generator: torch.Generator, block: int = 250):
    """Warp, float32 kernel product, exp, float64 Gram, one Cholesky: in buffers made once."""
    grid = 2 * torch.rand(block, S * SIDE, SIDE, 2, generator=generator) - 1
    values = torch.empty(block * S, M)
    gram = torch.zeros(M, M, dtype=torch.float64)
    identity = M * torch.eye(M, dtype=torch.float64)

    def run() -> None:
        gram.zero_()
        for part in images.split(block):
            samples = grid_sample(part.unsqueeze(1), grid, align_corners=False)
            torch.matmul(samples.reshape(-1, D), points.T, out=values)
            values.exp_()
            mean = values.view(block, S, M).mean(1).double()
            gram.addmm_(mean.T, mean)
        torch.linalg.cholesky(gram.add_(identity))

    return run


def main(repeats: int = 5) -> None:
    """Measure and report."""
    generator = torch.Generator().manual_seed(0)
    images = 0.1 * torch.rand(N, SIDE, SIDE, generator=generator)
    labels = torch.randint(C, (N,), generator=generator)
    points = 0.1 * torch.rand(M, D, generator=generator)
    contenders = {
        "bare": bare_solve(images, points, generator),
        "orbitgp": orbitgp_solve(images, labels, points, generator),
    }
    settings = {"N": N, "M": M, "S": S, "C": C, "side": SIDE, "seed": 0}
    report("solve", interleaved(contenders, repeats), settings, "python -m benchmarks.solve")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
