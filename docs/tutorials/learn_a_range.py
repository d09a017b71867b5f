"""Learn how far digits may be turned, stretched and shifted before they become other digits.

Two models see 2,000 USPS digits: an ordinary GP, and one whose affine ranges start small. The
recipe is short: fit q(u) in closed form, take a few gradient steps in kernel, noise and ranges,
again and again. Run it from the root of the repository; it takes some ten seconds on 2 cores.
"""

import os
from pathlib import Path

import numpy as np
import torch

import orbitgp

# The data: [N, 16, 16] images in 0 … 1 and integer labels.
folder = Path(os.environ.get("ORBITGP_DATA", "../shared/data"))
data = np.load(folder / "usps" / "usps.npz")
x, y = torch.tensor(data["x_train"][:2000]), torch.tensor(data["y_train"][:2000]).long()
x_test, y_test = torch.tensor(data["x_test"]), torch.tensor(data["y_test"]).long()


def fit(orbit: orbitgp.Orbit, generator: torch.Generator) -> orbitgp.InvariantGP:
    """Learn kernel, noise and ranges by the evidence bound."""
    # Inducing points summarise the data; they live where the kernel does, among flat images. The
    # lengthscale starts at a typical distance between them: far below it nothing is learned.
    points = orbitgp.kmeans_points(x.flatten(1), 300, generator=generator)
    model = orbitgp.InvariantGP(
        orbit=orbit,
        kernel=orbitgp.RBF(variance=0.3, lengthscale=torch.pdist(points).median().item()),
        posterior=orbitgp.InducingPosterior(points, num_outputs=10),
        likelihood=orbitgp.OneHotGaussian(num_classes=10, noise=0.05),
    )
    # q(u) is solved, not climbed, and the inducing points stay: only the rest goes to Adam. q(u) is
    # fitted on many orbit samples (few would bias it, and drive the ranges too wide); gradients
    # are taken on few.
    parts = (model.orbit, model.kernel, model.likelihood)
    learned = [parameter for part in parts for parameter in part.parameters()]
    best_q = orbitgp.NaturalUpdate(model, len(x), num_samples=16, generator=generator)
    climb = orbitgp.GradientUpdate(
        model,
        torch.optim.Adam(learned, lr=0.05),
        num_data=len(x),
        num_samples=8,
        generator=generator,
        group_size=4,  # two groups of four: less work than all pairs, nearly their precision
    )
    for step in range(60):
        if step % 5 == 0:
            best_q.step(x, y)
        batch = torch.randint(len(x), (256,), generator=generator)
        climb.step(x[batch], y[batch])
    best_q.step(x, y)
    return model


for orbit in (orbitgp.Identity(), orbitgp.Affine(-0.05, 0.05)):
    generator = torch.Generator().manual_seed(0)
    model = fit(orbit, generator)
    # One step's bound is noisy. Compare models by the bound of all data, over several fresh draws.
    with torch.no_grad():
        bounds = torch.stack(
            [
                orbitgp.elbo(
                    model, x, y, num_data=len(x), num_samples=16, generator=generator, group_size=8
                ).value
                for _ in range(4)
            ]
        )
    prediction = model.predict(x_test, num_samples=32, generator=generator)
    error = (prediction.mean.argmax(1) != y_test).double().mean().item()
    print(f"learned: {orbit.describe()}")
    print(f"  evidence at least {bounds.mean():.0f} ± {bounds.std() / 2:.0f} nats")
    print(f"  test error {100 * error:.1f} %")
