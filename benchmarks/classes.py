"""One closed-form pass with softmax, of ten and of a thousand classes.

N = 20,000 inputs, M = 1,000, S = 8 samples of a noise orbit: `python -m benchmarks.classes`

λ is ½ for every class, so there is one M×M matrix whatever their number. What must grow with it,
the products Σ k̄_n l_nᵀ [M, C] and F⁻ᵀF⁻¹P [M, C], is measured by itself and taken off.
"""

import statistics
import sys

import torch

import orbitgp
from benchmarks.timing import RESULTS, interleaved, machine, write_result
from orbitgp.inference.coordinate_ascent import coefficients
from orbitgp.likelihoods.softmax import Softmax

N, M, S, D = 20_000, 1_000, 8, 16
CHUNK = 500
CLASSES = (10, 1_000)


def softmax_pass(x: torch.Tensor, labels: torch.Tensor, num_classes: int):
    """Statistics of all inputs at given local parameters, then the best q(u)."""
    likelihood = Softmax(num_classes)
    model = orbitgp.InvariantGP(
        orbit=orbitgp.GaussianNoise(0.1, event_shape=(D,)),
        kernel=orbitgp.RBF(1.0, 4.0),
        posterior=orbitgp.InducingPosterior(x[:M], num_classes - 1, jitter=1e-4),
        likelihood=likelihood,
    )
    generator = torch.Generator().manual_seed(1)
    local = torch.randn(N, num_classes - 1, generator=generator, dtype=torch.float64)
    targets = likelihood.with_local(labels, local)
    batches = list(zip(x.split(CHUNK), targets.split(CHUNK), strict=True))

    def run() -> None:
        with torch.no_grad():
            total = orbitgp.stream_statistics(
                model, batches, num_samples=S, generator=generator, pairs=orbitgp.mean_pairs
            )
            orbitgp.solve(total, model.posterior.prior_covariance(model.kernel))

    return run


def products(num_classes: int):
    """The M×C work alone, in buffers made once: P, α, and the whitened mean L⁻¹m."""
    generator = torch.Generator().manual_seed(1)
    draws = {"generator": generator, "dtype": torch.float64}
    means, linear = torch.rand(CHUNK, M, **draws), torch.rand(CHUNK, num_classes - 1, **draws)
    factor = torch.linalg.cholesky(torch.eye(M, dtype=torch.float64) + means.mT @ means)
    total = torch.zeros(M, num_classes - 1, dtype=torch.float64)

    def run() -> None:
        total.zero_()
        for _ in range(N // CHUNK):
            total.addmm_(means.mT, linear)
        alpha = coefficients(factor.unsqueeze(0), total)
        torch.matmul(factor.mT, alpha)

    return run


def main(repeats: int = 5) -> None:
    """Measure and report."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, D, generator=generator)
    contenders = {}
    for count in CLASSES:
        labels = torch.randint(count, (N,), generator=generator)
        contenders[f"pass of {count}"] = softmax_pass(x, labels, count)
        contenders[f"products of {count}"] = products(count)
    seconds = interleaved(contenders, repeats)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    apart = [medians[f"pass of {count}"] - medians[f"products of {count}"] for count in CLASSES]
    result = {
        "benchmark": "classes",
        "ratio_apart_from_products": round(apart[1] / apart[0], 3),
        "ratio": round(medians["pass of 1000"] / medians["pass of 10"], 3),
        "seconds": {name: round(value, 3) for name, value in medians.items()},
        "settings": {"N": N, "M": M, "S": S, "D": D, "classes": CLASSES, "seed": 0},
        "command": "python -m benchmarks.classes",
        "machine": machine(),
    }
    write_result(RESULTS / "classes.json", result)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
