"""Figure 2 of the paper: a symmetric function of two inputs, learned with and without its symmetry.

Both models fit the training data; only the evidence, never a test set, tells which one generalises.

    python -m experiments.symmetric --seed 0
"""

import argparse
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

import orbitgp
from experiments.record import RESULTS, record
from orbitgp.kernels import covariance

NUM_TRAIN, NUM_TEST, NUM_POINTS, NOISE, STEPS = 50, 2000, 100, 0.05, 100


@dataclass(frozen=True)
class Fit:
    """What the figure says of one model; evidence and ELBO in nats of the training data."""

    train_rmse: float
    test_rmse: float
    log_evidence: float
    elbo: float


def truth(x: Tensor) -> Tensor:
    """A smooth function with truth(a, b) = truth(b, a)."""
    a, b = x.unbind(-1)
    return torch.sin(2 * a) * torch.sin(2 * b) + torch.cos(a + b)


def draw(num_data: int, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Inputs uniform on [−2, 2]² and noisy values."""
    x = 4 * torch.rand(num_data, 2, generator=generator, dtype=torch.float64) - 2
    noise = torch.randn(num_data, generator=generator, dtype=torch.float64)
    return x, truth(x) + NOISE * noise


def fit(orbit: orbitgp.FiniteOrbit, x: Tensor, y: Tensor) -> orbitgp.InvariantGP:
    """Kernel and noise by gradients of the bound, with the closed-form q(u) at every step."""
    kernel = orbitgp.RBF(variance=1.0, lengthscale=1.0).double()
    candidates = orbit.enumerate(x).points.flatten(0, 1)
    points = orbitgp.greedy_points(candidates, min(NUM_POINTS, len(candidates)), kernel)
    model = orbitgp.InvariantGP(
        orbit=orbit,
        kernel=kernel,
        posterior=orbitgp.InducingPosterior(points, num_outputs=1),
        likelihood=orbitgp.Gaussian(noise=0.1),
    )
    parameters = [*model.kernel.parameters(), *model.likelihood.parameters()]
    adam = torch.optim.Adam(parameters, lr=0.1)
    for _ in range(STEPS):
        take_best_q(model, x, y)
        adam.zero_grad()
        bound = orbitgp.elbo(model, x, y, num_data=len(x), num_samples=None, generator=None)
        (-bound.value / len(x)).backward()
        adam.step()
    take_best_q(model, x, y)
    return model


@torch.no_grad()
def take_best_q(model: orbitgp.InvariantGP, x: Tensor, y: Tensor) -> None:
    """Give the model the q(u) with the highest bound, in closed form."""
    whole = {"num_samples": None, "generator": None, "pairs": orbitgp.mean_pairs}
    found = orbitgp.statistics(model, x, y, **whole)
    covariance = model.posterior.prior_covariance(model.kernel)
    model.posterior.assign(orbitgp.solve(found, covariance))


def evaluate(model: orbitgp.InvariantGP, train: tuple[Tensor, Tensor], test: Tensor) -> Fit:
    """Errors, the exact evidence of the learned model, and its bound."""
    x, y = train

    def rmse(inputs: Tensor, targets: Tensor) -> float:
        error = model.predict(inputs).mean[:, 0] - targets
        return math.sqrt(error.square().mean().item())

    with torch.no_grad():
        kernel = orbitgp.InvariantKernel(model.kernel, model.orbit)
        assert isinstance(model.likelihood, orbitgp.Gaussian)
        kff = covariance(kernel, x, x) + model.likelihood.noise * torch.eye(len(x), dtype=x.dtype)
        evidence = torch.distributions.MultivariateNormal(torch.zeros_like(y), kff).log_prob(y)
        bound = orbitgp.elbo(model, x, y, num_data=len(x), num_samples=None, generator=None)
    return Fit(rmse(x, y), rmse(test, truth(test)), evidence.item(), bound.value.item())


def run(seed: int) -> tuple[dict[str, Fit], dict[str, orbitgp.InvariantGP], tuple[Tensor, Tensor]]:
    """Both models on the data of one seed."""
    generator = torch.Generator().manual_seed(seed)
    train = draw(NUM_TRAIN, generator=generator)
    test = 4 * torch.rand(NUM_TEST, 2, generator=generator, dtype=torch.float64) - 2
    orbits = {"invariant": orbitgp.coordinate_swap(0, 1, 2), "non-invariant": orbitgp.Identity()}
    models = {name: fit(orbit, *train) for name, orbit in orbits.items()}
    fits = {name: evaluate(model, train, test) for name, model in models.items()}
    return fits, models, train


def draw_panels(
    models: dict[str, orbitgp.InvariantGP], train: tuple[Tensor, Tensor], path: Path
) -> None:
    """The function, and what each model made of the data."""
    import matplotlib.pyplot as plt
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    axis = torch.linspace(-2, 2, 81, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    panels = {"symmetric function and data": truth(grid)}
    for name, model in models.items():
        panels[f"{name} GP"] = model.predict(grid).mean[:, 0]
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), sharey=True, layout="constrained")
    colours = Normalize(truth(grid).min().item(), truth(grid).max().item())
    x, y = train
    for ax, (title, values) in zip(axes, panels.items(), strict=True):
        image = values.reshape(81, 81).T.numpy()
        ax.imshow(image, origin="lower", extent=(-2, 2, -2, 2), norm=colours)
        ax.scatter(*x.T.numpy(), c=y.numpy(), edgecolors="white", s=28, norm=colours)
        ax.plot([-2, 2], [-2, 2], color="white", linewidth=0.8, linestyle="--")
        ax.set(title=title, xlabel="first input")
    axes[0].set_ylabel("second input")
    figure.colorbar(ScalarMappable(norm=colours), ax=axes, shrink=0.85)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Fit, print, write results and picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    fits, models, train = run(arguments.seed)
    print(f"{'':14}{'train RMSE':>12}{'test RMSE':>12}{'log evidence':>14}{'ELBO':>12}")
    for name, f in fits.items():
        print(
            f"{name:14}{f.train_rmse:12.4f}{f.test_rmse:12.4f}{f.log_evidence:14.3f}{f.elbo:12.3f}"
        )
    values = {"experiment": "symmetric", **{name: asdict(f) for name, f in fits.items()}}
    command = "python -m experiments.symmetric"
    path = record(arguments.out, "symmetric", command, arguments.seed, values)
    draw_panels(models, train, path.with_suffix(".png"))


if __name__ == "__main__":
    main()
