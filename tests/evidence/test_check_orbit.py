"""What is wrong with an orbit is said in one sentence, with the remedy."""

import time

import numpy as np
import pytest
import torch

from orbitgp import (
    Affine,
    FunctionOrbit,
    GaussianNoise,
    InputError,
    Intensity,
    LocalDeformation,
    Mirror,
    Orbit,
    QuarterTurns,
    Rotation,
    check_orbit,
    compose,
)

IMAGES = np.random.default_rng(0).random((16, 8, 8))
SERIES = np.random.default_rng(0).random((16, 30))


@pytest.mark.parametrize(
    "orbit",
    [
        Rotation(-0.3, 0.3),
        Affine(-0.1, 0.1),
        LocalDeformation(0.05),
        Intensity(-0.1, 0.1),
        GaussianNoise(0.1, event_shape=(8, 8)),
        QuarterTurns(),
        compose(QuarterTurns(), Mirror()),
        compose(Mirror(), Rotation(-0.1, 0.1)),
        compose(Mirror(), Rotation(-0.1, 0.1), GaussianNoise(0.1, event_shape=(8, 8))),
    ],
    ids=lambda orbit: type(orbit).__name__,
)
def test_orbits_of_the_library_pass(orbit):
    found = check_orbit(orbit, IMAGES)
    print(found)
    assert found.passed
    assert len(found.findings) == 7


class Same(Orbit):
    """The same draw for all, whatever the noise."""

    def transform(self, x, noise):
        return x.unsqueeze(1).expand(-1, noise.shape[1], *x.shape[1:]) * 1.1

    def describe(self):
        return "larger"


class Biased(Orbit):
    """The second draw of two is the first one once more."""

    def transform(self, x, noise):
        kept = noise.clone()
        if noise.shape[1] == 2:
            kept[:, 1] = kept[:, 0]
        return x.unsqueeze(1) * (1 + kept)

    def describe(self):
        return "louder"


def one_by_one(x, gain):
    return torch.stack([one * torch.exp(own) for one, own in zip(x, gain, strict=True)])


@pytest.mark.parametrize(
    ("orbit", "name", "sentence"),
    [
        (lambda x, p: x * p, "identity", "make the function the identity"),
        (lambda x, p: x[:, :10], "shapes", "keep the shape"),
        (lambda x, p: torch.log(p) * x, "shapes", "NaN or infinite"),
        (lambda x, p: (x * torch.exp(p)).float(), "shapes", "dtype of the inputs"),
        (lambda x, p: x * torch.exp(p.round(decimals=2)), "gradients", "no rounding"),
        (lambda x, p: x * torch.exp(p) - p * x.mean(0), "independent draws", "no mean over the"),
        (lambda x, p: x + p * torch.randn(x.shape), "determinism", "draw nothing inside"),
        (one_by_one, "cost", "transform all inputs of a batch at once"),
        (Same(), "independent draws", "use the noise"),
        (Biased(), "unbiased bound", "more than chance"),
    ],
)
def test_what_is_wrong_is_named(orbit, name, sentence):
    made = orbit if isinstance(orbit, Orbit) else FunctionOrbit(orbit, -0.1, 0.1)
    found = check_orbit(made, SERIES)
    wrong = [finding for finding in found.findings if not finding.passed]
    assert name in [finding.name for finding in wrong], str(found)
    own = next(finding for finding in wrong if finding.name == name)
    assert sentence in own.sentence
    assert str(own).startswith("FAILED  ")


def test_a_slow_machine_finds_the_same():
    """Nothing depends on a clock: a function that takes long for a batch is no loop."""

    def slowly(x, gain):
        time.sleep(0.01)
        return x * torch.exp(gain)

    assert check_orbit(FunctionOrbit(slowly, -0.1, 0.1), SERIES).passed


@pytest.mark.usefixtures("untyped")
def test_bad_arguments():
    with pytest.raises(InputError, match="check_orbit takes an orbit"):
        check_orbit(lambda x: x, SERIES)
    with pytest.raises(InputError, match="X must be finite inputs"):
        check_orbit(Mirror(), np.zeros(3))
