"""
The paper's algorithm, by hand
==============================

``inference="stochastic"`` trains a model as the paper does. This tutorial shows what one of its
steps does, in ten lines. Digits of scikit-learn are rotated by up to 60°. A model that learns the
angle is compared with one without invariance.
"""

import math

import torch
from sklearn.datasets import load_digits

import orbitgp
from orbitgp.stochastic.natural import NaturalParameters
from orbitgp.stochastic.terms import batch_terms

# %%
# The inputs are images of shape [N, 8, 8] in 0 … 1, each rotated by an angle of its own.

digits = load_digits()
generator = torch.Generator().manual_seed(0)
rotated = orbitgp.Rotation(-math.radians(60), math.radians(60))
images = rotated.sample(torch.tensor(digits.images / 16).float(), 1, generator=generator)
images, labels = images.points[:, 0].detach(), torch.tensor(digits.target).long()
order = torch.randperm(len(images), generator=generator)
x, y = images[order[:1000]], labels[order[:1000]]
x_test, y_test = images[order[1000:]], labels[order[1000:]]

# %%
# Each step estimates the bound from 256 images and eight orbit samples of each image. The gradient
# of this estimate trains ranges, kernel, noise and inducing points. The same samples move q(u)
# along its natural gradient.


def fit(orbit: orbitgp.Orbit, generator: torch.Generator) -> orbitgp.InvariantGP:
    """Learn everything together by the evidence bound."""
    points = orbitgp.kmeans_points(x.flatten(1), 300, generator=generator)
    model = orbitgp.InvariantGP(
        orbit=orbit,
        kernel=orbitgp.RBF(variance=0.3, lengthscale=torch.pdist(points).median().item()),
        posterior=orbitgp.InducingPosterior(points, num_outputs=10),
        likelihood=orbitgp.OneHotGaussian(num_classes=10, noise=0.05),
    )
    learned = [model.posterior.points, *model.orbit.parameters(), *model.kernel.parameters()]
    adam = torch.optim.Adam([*learned, *model.likelihood.parameters()], lr=0.02)
    pairs, share = orbitgp.unbiased_pairs(group_size=4), len(x) / 256
    q = NaturalParameters.optimum(torch.zeros(1, 300, 300).double(), torch.zeros(300, 10).double())
    for _ in range(100):
        rows = torch.randint(len(x), (256,), generator=generator)
        noise = model.orbit_noise(256, 8, generator=generator, group_size=4)
        terms = batch_terms(model, q.gaussian(), x[rows], y[rows], noise, pairs)
        adam.zero_grad()
        (-share * terms.expected / len(x)).backward()
        adam.step()
        best = NaturalParameters.optimum(share * terms.gram, share * terms.linear)
        q = q.toward(best, 0.2)
    model.posterior.assign(q.gaussian())
    return model


# %%
# The bound of one batch varies by hundreds of nats. So models are compared by the bound of all
# data, over several fresh draws, with equal numbers of inducing points.

for orbit in (orbitgp.Identity(), orbitgp.Rotation(-0.1, 0.1)):
    generator = torch.Generator().manual_seed(0)
    model = fit(orbit, generator)
    options = {"num_data": len(x), "num_samples": 16, "group_size": 8, "generator": generator}
    with torch.no_grad():
        bounds = torch.stack([orbitgp.elbo(model, x, y, **options).value for _ in range(4)])
    prediction = model.predict(x_test, num_samples=32, generator=generator)
    error = (prediction.mean.argmax(1) != y_test).double().mean().item()
    print(f"learned: {orbit.describe()}")
    print(f"  evidence at least {bounds.mean():.0f} ± {bounds.std() / 2:.0f} nats")
    print(f"  test error {100 * error:.1f} %")

# %%
# The estimator does the same, with schedules for all rates, checkpoints and calibration.

estimator = orbitgp.InvariantGPClassifier(
    "rotation",
    inference="stochastic",
    feature_map=None,
    settings=orbitgp.StochasticSettings(num_steps=100, num_inducing=300),
    random_state=0,
)
estimator.fit(x.numpy(), y.numpy())
print(f"estimator: {estimator.orbit_.describe()}, {estimator.evidence_:.0f} nats")
print(f"  test error {100 * (1 - estimator.score(x_test.numpy(), y_test.numpy())):.1f} %")
