"""Changes that leave labels as they are, and changes that do not."""

import numpy as np
import pytest
import torch

from orbitgp import (
    InputError,
    InvariantGPClassifier,
    InvariantGPRegressor,
    Transformation,
    export_policy,
    tolerated,
)
from orbitgp.kernels import RBF, average_covariances_among
from orbitgp.orbits.groups import Mirror
from orbitgp.posterior.exact import ExactPosterior, leave_one_out, solve_exactly
from orbitgp.values import OrbitSample
from tests.conftest import QUICK, assert_close, without_checks_of_shapes

NOISE = 0.1


def posterior_of(points, targets):
    covariance = average_covariances_among(RBF(1.0, 2.0).double(), points)
    solution = solve_exactly(covariance, targets, NOISE)
    return ExactPosterior.of(points, solution, None), solution


def test_posterior_without_one_datum(generator):
    """Elsewhere it is the posterior without that one; at its own place what is known of it."""
    points = torch.randn(12, 3, 2, dtype=torch.float64, generator=generator)
    targets = torch.randn(12, 2, dtype=torch.float64, generator=generator)
    others = torch.randn(4, 3, 2, dtype=torch.float64, generator=generator)
    kernel, rows = RBF(1.0, 2.0).double(), torch.tensor([7, 0, 11, 0])
    whole, solution = posterior_of(points, targets)
    found = whole.predictor_without(kernel, rows)(OrbitSample(others))
    for place, row in enumerate(rows.tolist()):
        kept = [n for n in range(12) if n != row]
        fewer, _ = posterior_of(points[kept], targets[kept])
        expected = fewer.predictor(kernel)(OrbitSample(others[place : place + 1]))
        assert_close(found.mean[place : place + 1], expected.mean)
        assert_close(found.variance[place : place + 1], expected.variance)
    own = whole.predictor_without(kernel, torch.arange(12))(OrbitSample(points))
    expected = leave_one_out(solution, targets, NOISE, torch.arange(12))
    assert_close(own.mean, expected.mean)
    assert_close(own.variance, expected.variance)


def arrows(num_data, seed=0):
    """Arrows to the left or to the right, at any height."""
    random = np.random.default_rng(seed)
    images = 0.05 * random.random((num_data, 12, 12))
    labels, rows = random.integers(2, size=num_data), random.integers(3, 9, num_data)
    for image, label, row in zip(images, labels, rows, strict=True):
        image[row, 2:10] = 1
        column = 8 if label else 3
        image[row - 2 : row + 3, column] = 1
    return images, labels


@pytest.fixture(scope="module")
@without_checks_of_shapes()
def arrow_model():
    images, labels = arrows(150)
    model = InvariantGPClassifier("none", settings=QUICK, random_state=0)
    return model.fit(images, labels), images, labels


@pytest.mark.usefixtures("untyped")
def test_changes_that_keep_labels_are_tolerated(arrow_model):
    """An arrow upside down points where it did; in a mirror, or turned round, it does not."""
    found = tolerated(*arrow_model)
    assert "vertical mirror" in found.names
    assert not {"horizontal mirror", "quarter turns"} & set(found.names)
    turns = {change.width: change for change in found.changes if change.name == "rotation"}
    assert turns[np.pi].loss > found.loss + 0.2
    assert min(turns) < np.pi / 4
    widest = {change.name: change.width for change in found.changes if change.tolerated}
    assert 0 < widest["shift"] < 0.5
    assert all(c.tolerated == (c.loss - found.loss <= found.limit) for c in found.changes)
    assert found.limit == max(0.01, 0.1 * found.loss)
    assert max(change.width for change in found.changes if change.name == "contrast") < 0.5
    for text in ("vertical mirror", "tolerated", " ± ", found.orbit.describe()):
        assert text in str(found)
    assert "LearnedAugmentation" in export_policy(found.orbit, "torchvision").source
    assert found.records()[0]["name"] == "quarter turns"


@pytest.mark.usefixtures("untyped")
def test_numbers_keep_their_signs(generator):
    random = np.random.default_rng(0)
    x = random.uniform(-2, 2, (80, 2))
    model = InvariantGPRegressor(settings=QUICK, random_state=0)
    y = np.stack([np.cos(x[:, 0]) * x[:, 1], x[:, 1]], 1)
    found = tolerated(model.fit(x, y), x, y)
    assert found.names == ["sign of column 0"]
    assert found.num_inputs == 80


def test_transformations_of_ones_own(arrow_model):
    mirror = Transformation("upside down", (0,), "mirror", lambda _: Mirror(-2))
    found = tolerated(*arrow_model, transformations=[mirror])
    assert found.names == ["upside down"]
    assert found.orbit.size == 2
    none = tolerated(*arrow_model, transformations=[])
    assert none.orbit.describe() == "no invariance"


@pytest.mark.usefixtures("untyped")
def test_the_larger_tolerance_counts(generator):
    """With noise in half of the labels many are predicted wrongly anyway."""
    x = torch.randn(80, 2, dtype=torch.float64, generator=generator).numpy()
    y = (x[:, 0] + np.random.default_rng(0).normal(size=80) > 0).astype(int)
    model = InvariantGPClassifier(settings=QUICK, random_state=0).fit(x, y)
    strict, default, loose = (
        tolerated(model, x, y, tolerance=0.01, relative=relative) for relative in (0, 0.1, 0.9)
    )
    assert strict.loss == default.loss > 0.1
    assert [strict.limit, default.limit] == [0.01, 0.1 * default.loss]
    assert loose.limit == 0.9 * loose.loss
    assert set(strict.names) <= set(default.names) <= set(loose.names)
    assert len(strict.names) < len(loose.names)


def test_bad_questions(arrow_model):
    model, images, labels = arrow_model
    with pytest.raises(InputError, match=r"such as 0\.01; got 1"):
        tolerated(model, images, labels, tolerance=1)
    with pytest.raises(InputError, match=r"such as 0\.1; got -0\.1"):
        tolerated(model, images, labels, relative=-0.1)
    with pytest.raises(InputError, match="call fit first"):
        tolerated(InvariantGPClassifier(), images, labels)
    with pytest.raises(
        InputError,
        match=r"fitted to inputs of shape \(12, 12\); got an array of shape \(150, 6, 12\)",
    ):
        tolerated(model, images[:, :6], labels)


@pytest.mark.usefixtures("untyped")
def test_models_with_a_bound_are_asked_too(arrow_model):
    _, images, labels = arrow_model
    few = InvariantGPClassifier(
        "mirror", likelihood="softmax", num_inducing=40, settings=QUICK, random_state=0
    )
    found = tolerated(few.fit(images, labels), images, labels)
    assert "horizontal mirror" in found.names or "vertical mirror" in found.names
