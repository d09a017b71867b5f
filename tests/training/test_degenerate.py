"""A thousand short trainings from starts that no one would choose: no NaN."""

import pytest
import torch

from orbitgp import (
    RBF,
    Affine,
    Gaussian,
    Identity,
    InducingPosterior,
    InvariantGP,
    Mirror,
    NumericalError,
    OneHotGaussian,
    TrainingSettings,
    compose,
)
from orbitgp.training.callbacks import Callback
from orbitgp.training.loop import Training, train
from orbitgp.training.starts import JITTER

STARTS = 500
SETTINGS = TrainingSettings(
    max_steps=2, batch_size=8, num_samples=4, fit_size=16, fit_samples=4, refresh_every=2,
    evaluate_every=2, evaluation_size=16,
)  # fmt: skip


def pick(generator, choices):
    return choices[int(torch.randint(len(choices), (1,), generator=generator))]


def start(seed, dtype):
    """A model and data with some of the degeneracies, chosen by the seed."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(16, 4, 4, generator=generator, dtype=dtype)
    x = pick(generator, [x, torch.zeros_like(x), x[:1].expand_as(x), 1e-6 * x, 1e4 * x])
    points = x.flatten(1)[torch.randint(16, (8,), generator=generator)]
    points = pick(generator, [points, points[:1].expand_as(points), torch.zeros_like(points)])
    points = pick(generator, [points, torch.stack([points, points], 1)])
    zero = {"learn_low": False, "learn_high": False}
    orbit = pick(
        generator,
        [
            Affine(0.0, 0.0, **zero),
            Affine(-1e-6, 1e-6),
            Affine(-3.0, 3.0),
            Affine([-0.1] * 5 + [0.0], 0.1, learn_low=[True] * 5 + [False]),
            Identity(),
            compose(Mirror(), Affine(-0.1, 0.1)),
        ],
    )
    classes = bool(torch.randint(2, (1,), generator=generator))
    noise = pick(generator, [2e-6, 1e-4, 0.1, 1e4])
    y = torch.randint(2, (16,), generator=generator)
    targets = y.to(torch.float64)[:, None] * pick(generator, [0.0, 1.0, 1e3])
    model = InvariantGP(
        orbit=orbit,
        kernel=RBF(
            pick(generator, [1e-6, 1.0, 1e4]), pick(generator, [1e-6, 1e-3, 1.0, 1e3, 1e6])
        ).to(dtype),
        posterior=InducingPosterior(points, 2 if classes else 1, jitter=JITTER),
        likelihood=OneHotGaussian(2, noise=noise) if classes else Gaussian(noise),
    )
    data = (x, y if classes else targets)
    return Training(model, *data, settings=SETTINGS, generator=generator), generator


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_no_nan_from_any_start(dtype, block):
    """A ratio of variance to noise near 10¹⁰ may be refused, by name; nothing else may fail."""
    refused = 0
    for seed in range(block * STARTS // 4, (block + 1) * STARTS // 4):
        training, generator = start(seed, dtype)
        try:
            train(training, Callback())
        except NumericalError:
            refused += 1
            assert training.model.kernel.variance / training.model.likelihood.noise > 1e9
            continue
        model = training.model
        described = f"seed {seed}: {model.orbit.describe()}"
        assert all(torch.isfinite(p).all() for p in model.parameters()), described
        assert all(abs(point.elbo) < float("inf") for point in training.curve), described
        samples = {"num_samples": 4, "generator": generator}
        prediction = model.predict(training.x, **samples)
        assert torch.isfinite(prediction.mean).all(), described
        assert torch.isfinite(prediction.variance).all(), described
        assert (prediction.variance >= 0).all(), described
    print(f"{refused} of {STARTS // 4} refused")
    assert refused <= 2
