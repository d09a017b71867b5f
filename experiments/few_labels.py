"""Few labels: what others make of the same MNIST images, beside `experiments.mnist`.

python -m experiments.few_labels --num-data 1000 --seed 0

A small convolutional network without and with augmentation set by hand, GPyTorch's SVGP on
pixels, and a support vector machine whose two constants are cross-validated.
"""

import argparse
import time
from collections.abc import Callable

import gpytorch
import numpy as np
import torch
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from experiments.data import load_named
from experiments.mnist import subset
from experiments.record import RESULTS, record
from orbitgp import Affine

HAND_SET = (0.2, 0.1, 0.1, 0.2, 0.1, 0.1)
"""Half-ranges of rotation (radians), log-scales, shear and shifts (half-widths): usual ones."""

STEPS = 3200
"""Twenty passes over 10,000 images, the most that are asked for."""

SVGP_STEPS = 1200
BATCH = 64


def small_cnn() -> nn.Module:
    """Two convolutions and two dense layers, 225 thousand weights."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(64 * 49, 64),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(64, 10),
    )


def cnn_error(
    x: Tensor, y: Tensor, x_test: Tensor, y_test: Tensor, augment: bool, seed: int
) -> float:
    """Test error after Adam with a cosine schedule."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    orbit = Affine([-width for width in HAND_SET], list(HAND_SET))
    network = small_cnn()
    optimizer = torch.optim.Adam(network.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for _ in range(STEPS):
        chosen = torch.randint(len(x), (BATCH,), generator=generator)
        images = x[chosen]
        if augment:
            with torch.no_grad():
                images = orbit.sample(images, 1, generator=generator).points[:, 0]
        optimizer.zero_grad()
        cross_entropy(network(images.unsqueeze(1)), y[chosen]).backward()
        optimizer.step()
        schedule.step()
    network.eval()
    with torch.no_grad():
        found = torch.cat([network(part.unsqueeze(1)).argmax(1) for part in x_test.split(1000)])
    return (found != y_test).double().mean().item()


class Svgp(gpytorch.models.ApproximateGP):
    """What GPyTorch's own tutorial on classification leads to, for ten classes."""

    def __init__(self, points: Tensor) -> None:
        shape = torch.Size([10])
        q = gpytorch.variational.CholeskyVariationalDistribution(len(points), batch_shape=shape)
        strategy = gpytorch.variational.VariationalStrategy(self, points, q)
        super().__init__(
            gpytorch.variational.IndependentMultitaskVariationalStrategy(strategy, num_tasks=10)
        )
        rbf = gpytorch.kernels.RBFKernel().initialize(lengthscale=5.0)
        self.kernel = gpytorch.kernels.ScaleKernel(rbf)

    def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
        """The prior."""
        return gpytorch.distributions.MultivariateNormal(x.new_zeros(x.shape[:-1]), self.kernel(x))


def svgp_error(x: Tensor, y: Tensor, x_test: Tensor, y_test: Tensor, seed: int) -> float:
    """Test error with up to 300 inducing points on training images, all learned by Adam."""
    generator = torch.Generator().manual_seed(seed)
    x, x_test = x.flatten(1), x_test.flatten(1)
    model = Svgp(x[torch.randperm(len(x), generator=generator)[:300]].clone())
    likelihood = gpytorch.likelihoods.SoftmaxLikelihood(num_classes=10, mixing_weights=False)
    mll = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(x))
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], 0.01)
    for _ in range(SVGP_STEPS):
        chosen = torch.randint(len(x), (256,), generator=generator)
        optimizer.zero_grad()
        torch.as_tensor(-1 * mll(model(x[chosen]), y[chosen])).backward()  # pyright: ignore
        optimizer.step()
    model.eval()
    with torch.no_grad():
        means = [model(part).mean.argmax(1) for part in x_test.split(1000)]
    return (torch.cat(means) != y_test).double().mean().item()


def svm_error(x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray) -> float:
    """Test error of an RBF machine, its cost and width by three-fold cross-validation."""
    grid = {"C": [3.0, 30.0], "gamma": [0.01, 0.02, 0.04]}
    machine = GridSearchCV(SVC(), grid, cv=3).fit(x, y)
    return float((machine.predict(x_test) != y_test).mean())


def run(num_data: int, seed: int) -> dict[str, float]:
    """Test errors in percent, and seconds, of all four."""
    data = load_named("mnist")
    assert data.x_test is not None
    assert data.y_test is not None
    x, y = subset(data, num_data, seed)
    images, labels = torch.from_numpy(x / 255).float(), torch.from_numpy(y).long()
    test_images = torch.from_numpy(data.x_test / 255).float()
    test_labels = torch.from_numpy(data.y_test).long()
    arrays = [part.flatten(1).numpy() for part in (images, test_images)]
    pairs = (images, labels, test_images, test_labels)
    contenders: dict[str, Callable[[], float]] = {
        "cnn": lambda: cnn_error(*pairs, augment=False, seed=seed),
        "cnn_augmented": lambda: cnn_error(*pairs, augment=True, seed=seed),
        "svgp": lambda: svgp_error(*pairs, seed=seed),
        "svm": lambda: svm_error(arrays[0], y, arrays[1], np.asarray(data.y_test)),
    }
    values: dict[str, float] = {}
    for name, contender in contenders.items():
        start = time.monotonic()
        values[f"{name}_test_error"] = round(100 * contender(), 2)
        values[f"{name}_seconds"] = round(time.monotonic() - start, 1)
    return values


def main() -> None:
    """One row of the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-data", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    values = {"num_data": arguments.num_data, **run(arguments.num_data, arguments.seed)}
    print(values)
    command = f"python -m experiments.few_labels --num-data {arguments.num_data}"
    record(RESULTS, f"few-labels-{arguments.num_data}", command, arguments.seed, values)


if __name__ == "__main__":
    main()
