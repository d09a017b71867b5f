"""Does a feature network that is trained through the evidence predict better?

python -m experiments.feature_network

Three layers of convolutions before an RBF kernel, without an invariance. Their weights, the
lengthscale, variance and noise maximise log N(Y | 0, K + σ²I), the exact evidence of the one-hot
labels of 500 of 1,000 images at a time. Then the network is frozen and given to the estimator as
`feature_map=`. It is compared with the same network with random weights, and with the default
features. The test images are looked at once, at the end of each fit.
"""

import argparse
import functools
import math
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from experiments.policies import DATA, Images, images_of
from experiments.record import RESULTS, record_once
from orbitgp import InvariantGPClassifier
from orbitgp.scores import classification_metrics

FEATURES = ("default", "random", "trained")
STEPS, BATCH, RATE = 300, 500, 2e-3
WIDTHS = (32, 64, 64)


class Network(nn.Module):
    """Images [B, H, W] or [B, C, H, W] to 576 numbers."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        before = (channels, *WIDTHS)
        self.layers = nn.Sequential(
            *(
                layer
                for wide, width, stride in zip(before, WIDTHS, (2, 2, 1), strict=False)
                for layer in (nn.Conv2d(wide, width, 3, stride, 1), nn.ReLU())
            ),
            nn.AdaptiveAvgPool2d(3),
            nn.Flatten(),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Averages of the last maps over 3 × 3 cells."""
        return self.layers(x if x.ndim == 4 else x.unsqueeze(1))


def evidence(features: Tensor, targets: Tensor, scales: Tensor) -> Tensor:
    """log N(Y | 0, K + σ²I) in nats, for log ℓ, log v and log σ."""
    lengthscale, variance, noise = scales.exp()
    squares = torch.cdist(features, features).square().double()
    covariance = variance * (-squares / (2 * lengthscale**2)).exp()
    size, outputs = targets.shape
    # K + σ²I = LLᵀ
    factor = torch.linalg.cholesky(covariance + noise**2 * torch.eye(size, dtype=torch.float64))
    fit = torch.linalg.solve_triangular(factor, targets, upper=False).square().sum()
    volume = 2 * factor.diagonal().log().sum() + size * math.log(2 * math.pi)
    return -0.5 * (outputs * volume + fit)


def trained(network: Network, x: Tensor, y: Tensor) -> list[float]:
    """Changes the network; returns the evidence per image of each step."""
    targets = one_hot(y).double() - 1 / (int(y.max()) + 1)
    with torch.no_grad():
        typical = torch.pdist(network(x)).mean().log().item()
    scales = torch.tensor([typical, 0.0, math.log(0.1)], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([*network.parameters(), scales], RATE)
    course = []
    for _ in range(STEPS):
        rows = torch.randperm(len(x))[:BATCH]
        value = evidence(network(x[rows]), targets[rows], scales) / BATCH
        optimizer.zero_grad()
        (-value).backward()
        optimizer.step()
        course.append(value.item())
    return course


def feature_map(features: str, data: Images, seed: int) -> tuple[Any, dict[str, Any]]:
    """What the estimator is given."""
    if features == "default":
        return "auto", {}
    torch.manual_seed(seed)
    network, course = Network(data.x.shape[1]), []
    if features == "trained":
        course = trained(network, data.x, data.y)
    about = {"evidence_per_image": [round(value, 3) for value in course[:: STEPS // 10]]}
    return network.eval().requires_grad_(False), about


def run(name: str, features: str, seed: int) -> dict[str, Any]:
    """One cell of the table."""
    data, start = images_of(name, seed), time.perf_counter()
    given, about = feature_map(features, data, seed)
    x, x_test = (part.squeeze(1).numpy() for part in (data.x, data.x_test))
    model = InvariantGPClassifier("none", feature_map=given, random_state=seed).fit(x, data.y)
    seconds = time.perf_counter() - start
    metrics = classification_metrics(model.predict_proba(x_test), data.y_test.numpy())
    return {
        "data": name,
        "features": features,
        "evidence": round(model.evidence_, 1),
        "test_error": metrics["error"],
        "test_nll": metrics["nll"],
        "seconds": round(seconds, 1),
        **about,
    }


def main() -> None:
    """All cells that were chosen, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=list(DATA))
    parser.add_argument("--features", nargs="*", default=list(FEATURES))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    for seed in given.seeds:
        for name in given.data:
            for features in given.features:
                command = (
                    f"python -m experiments.feature_network --data {name} --features {features}"
                )
                fit = functools.partial(run, name, features, seed)
                record_once(given.out, f"feature-{name}-{features}", command, seed, fit)


if __name__ == "__main__":
    main()
