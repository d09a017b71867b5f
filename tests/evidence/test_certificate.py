"""How probably f changes along a transformation."""

import json

import numpy as np
import pytest
import torch

from orbitgp import (
    Affine,
    InputError,
    InvariantGPClassifier,
    InvariantGPRegressor,
    Mirror,
    Rotation,
    SignFlips,
    certificate,
    compose,
)
from orbitgp.evidence.certificate import alone
from tests.conftest import QUICK


@pytest.fixture(scope="module")
def even():
    """Learned without any invariance, from a function that is even in one number only."""
    x = np.random.default_rng(0).uniform(-2, 2, (60, 2))
    y = np.cos(x[:, 0]) + x[:, 1]
    return InvariantGPRegressor("none", settings=QUICK, random_state=0).fit(x, y), x, y


def test_probabilities_are_those_of_joint_draws(even):
    model, x, _ = even
    flips = SignFlips(1)
    found = certificate(model, x[:5], orbit=flips, deviation=1.5)
    assert found.deviation == pytest.approx(1.5)
    inputs = model.as_inputs(np.concatenate([x[:5], x[:5] * [1, -1]]))
    generator = torch.Generator().manual_seed(0)
    draws = model.model_.predict_f_samples(inputs, 4000, generator=generator)[..., 0]
    change = (draws[:, :5] - draws[:, 5:]).abs() * float(model.target_scale_[0])
    # one of the two points of an orbit is the input itself, which never changes
    rate = (change > 1.5).double().mean().item() / 2
    error = np.sqrt(rate * (1 - rate) / change.numel())
    assert found.dangers[0].probability == pytest.approx(rate, abs=4 * error + 1e-3)


def test_the_wrong_symmetry_is_the_dangerous_one(even):
    model, x, _ = even
    found = certificate(model, x[:20], orbit=compose(SignFlips(0), SignFlips(1)))
    words = [danger.transformation for danger in found.dangers]
    assert words == ["sign of coordinate 1", "sign of coordinate 0"]
    assert found.dangers[0].probability > 3 * found.dangers[1].probability
    json.dumps(found.records())
    assert list(found.frame().index) == words


def test_an_invariant_model_is_certain():
    x = np.random.default_rng(0).uniform(-2, 2, (40, 1))
    model = InvariantGPRegressor(SignFlips(0), settings=QUICK, random_state=0).fit(
        x, np.cos(x[:, 0])
    )
    danger = certificate(model, x[:10]).dangers[0]
    assert danger.probability < 1e-6
    assert danger.prior_bound < 1e-6


def test_the_lemma_bounds_the_prior(even):
    """E (f(x) − f(x_a))² / L², in units of the targets' deviation; here from two kernel values."""
    model, x, _ = even
    found = certificate(model, x[:1], orbit=SignFlips(0), deviation=2.0).dangers[0]
    scale = float(model.target_scale_[0])
    kernel, z = model.model_.kernel, model.model_.features(model.as_inputs(x[:1]))
    mirrored = model.model_.features(model.as_inputs(x[:1] * [-1, 1]))
    same, other = (kernel(z, w).to_dense().item() for w in (z, mirrored))
    # the mean over the two points of an orbit, of which one is the input itself
    expected = (2 * same - 2 * other) / 2 * (scale / 2) ** 2
    assert found.prior_bound == pytest.approx(expected, rel=1e-5)


def test_pairs_of_classes():
    """Arrows to the left and to the right are exchanged by a mirror; crosses are not."""
    random = np.random.default_rng(0)
    x = 0.1 * random.random((90, 6, 6))
    y = np.array(["left", "right", "cross"] * 30)
    x[y == "left", 1:5, 1] += 1
    x[y == "right", 1:5, 4] += 1
    x[y == "cross", 2:4, :] += 1
    model = InvariantGPClassifier("none", settings=QUICK, random_state=0).fit(x, y)
    found = certificate(model, x[:30], y[:30], orbit=Mirror())
    assert found.dangers[0].pair == ("left", "right")
    assert found.dangers[0].num_inputs == 20
    assert len(found.dangers) == 3
    assert "left and right" in str(found).splitlines()[1]
    predicted = certificate(model, x[:30], orbit="mirror")
    assert predicted.records() == found.records()


def test_each_transformation_alone():
    parts = list(alone(compose(Affine([-0.1] * 6, [0.1] * 6), Mirror())))
    assert [(words, part.describe()) for words, part in parts[:2]] == [
        ("rotation −5.73 … 5.73°", "rotation −6° … +6°"),
        ("x-scale 0.905 … 1.11 ×", "x-scale ×0.90 … ×1.11"),
    ]
    assert len(parts) == 7
    assert parts[-1][0] == Mirror().describe()
    _, (second, _) = alone(compose(Rotation(-0.1, 0.1), Rotation(-0.2, 0.2)))
    assert second == "rotation of part 2 −11.5 … 11.5°"


def test_models_without_an_exact_posterior(even):
    _, x, y = even
    bound = InvariantGPRegressor("none", num_inducing=20, settings=QUICK, random_state=0).fit(x, y)
    with pytest.raises(InputError, match="this fit gave a bound"):
        certificate(bound, x)
    with pytest.raises(InputError, match="needs a fitted estimator"):
        certificate(InvariantGPRegressor(), x)
