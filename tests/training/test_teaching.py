"""What a recognition network is taught, against the best local parameters."""

import pytest
import torch

from orbitgp import (
    RBF,
    Identity,
    InducingPosterior,
    InvariantGP,
    PolyaGamma,
    Recognition,
    Softmax,
    StickBreaking,
    TrainingSettings,
)
from orbitgp.training.callbacks import Callback
from orbitgp.training.loop import Training, train
from orbitgp.training.teaching import teach
from orbitgp.values import Moments

KINDS = {"logistic": (PolyaGamma, 2), "sticks": (StickBreaking, 4), "softmax": (Softmax, 4)}


def with_network(kind, generator):
    """A likelihood whose local parameters a network of 2 inputs gives."""
    make, num_classes = KINDS[kind]
    classes = () if kind == "logistic" else (num_classes,)
    num_local = make(*classes).num_local
    network = Recognition(2, num_classes, num_local, generator=generator)
    return make(*classes, recognition=network), num_classes


@pytest.mark.parametrize("kind", KINDS)
def test_a_taught_network_comes_near_the_best_local_parameters(kind, generator):
    likelihood, num_classes = with_network(kind, generator)
    x = torch.randn(400, 2, generator=generator)
    labels = torch.randint(num_classes, (400,), generator=generator)
    mixture = torch.randn(2, likelihood.num_outputs, generator=generator)
    mean = 4 * torch.sin(x @ mixture).double()
    moments = Moments(mean, mean.square(), torch.full((400, 1), 0.3, dtype=torch.float64))

    def bound(local):
        return likelihood.bound_at(labels, local).expectation(moments).mean().item()

    best = bound(likelihood.best_local(moments))
    before = bound(likelihood.recognition(x, labels).double())
    teach(likelihood, x, labels, moments, generator=generator)
    after = bound(likelihood.recognition(x, labels).double())
    print(f"{kind}: {before:.4f} → {after:.4f}, best {best:.4f}")
    assert before < after < best
    assert best - after < 0.1 * (best - before)


def test_a_network_without_weights_is_left_as_it_is(generator):
    likelihood, _ = with_network("logistic", generator)
    network = likelihood.recognition.requires_grad_(requires_grad=False)
    before = [weight.clone() for weight in network.parameters()]
    x, labels = torch.randn(30, 2, generator=generator), torch.zeros(30, dtype=torch.long)
    mean = torch.ones(30, 1, dtype=torch.float64)
    teach(likelihood, x, labels, Moments(mean, mean, mean), generator=generator)
    for weight, old in zip(network.parameters(), before, strict=True):
        assert torch.equal(weight, old)


def test_moments_of_some_data_are_theirs(generator):
    mean, variance = torch.randn(5, 3, generator=generator), torch.rand(5, 1, generator=generator)
    rows = torch.tensor([3, 0])
    some = Moments(mean, mean.square(), variance, torch.tensor(0.5)).at(rows)
    assert torch.equal(some.mean, mean[rows])
    assert torch.equal(some.mean_square, mean[rows].square())
    assert torch.equal(some.variance, variance[rows])
    assert some.divergence == 0.5


def learned(likelihood, x, labels):
    """The bound at the end of a short stage one, and the run."""
    posterior = InducingPosterior(x[:60], 1)
    parts = {"kernel": RBF(variance=4.0, lengthscale=1.0), "posterior": posterior}
    model = InvariantGP(orbit=Identity(), likelihood=likelihood, **parts)
    settings = TrainingSettings(max_steps=40, refresh_every=10)  # local parameters lag behind
    draws = torch.Generator().manual_seed(1)
    training = Training(model, x, labels, settings=settings, generator=draws)
    train(training, Callback())
    assert training.best is not None
    return training.best[2], training


@pytest.mark.usefixtures("untyped")
def test_a_network_reaches_the_bound_of_carried_parameters(generator):
    x = torch.randn(500, 2, generator=generator)
    labels = (torch.sin(2 * x[:, 0]) + x[:, 1] > 0).long()
    likelihood, _ = with_network("logistic", generator)
    free, _ = learned(PolyaGamma(), x, labels)
    taught, training = learned(likelihood, x, labels)
    print(f"carried {free:.2f}, of the network {taught:.2f}")
    assert taught > free - 0.05 * abs(free)
    moved = {id(p) for group in training.optimizer.param_groups for p in group["params"]}
    assert not moved & {id(weight) for weight in likelihood.recognition.parameters()}
