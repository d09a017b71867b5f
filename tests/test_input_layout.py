"""Inputs that would be read as something else are refused, or warned of."""

import warnings

import numpy as np
import pytest

import orbitgp
from orbitgp import InputError, InvariantGPClassifier
from tests.conftest import QUICK
from tests.files.crash import bars

pytestmark = pytest.mark.usefixtures("untyped")


def classifier(orbit="none", **options):
    return InvariantGPClassifier(orbit, settings=QUICK, random_state=0, **options)


@pytest.fixture(scope="module")
def fitted():
    x, y = bars(40)
    return classifier().fit(255 * x, y), 255 * x


@pytest.mark.parametrize("orbit", ["affine", "rotation", "local", "affine+local", "dihedral"])
def test_flat_rows_for_an_orbit_of_images(orbit):
    x, y = bars(20)
    flat = x.reshape(20, -1)
    side = x.shape[1]
    with pytest.raises(InputError, match=rf"20 rows of {side**2} .*image_shape=\({side}, {side}\)"):
        classifier(orbit).fit(flat, y)
    with pytest.raises(InputError, match=r"image_shape=\(H, W\)"):
        classifier(orbit).fit(flat[:, :-1], y)


def test_channels_last_are_refused():
    x = np.random.default_rng(0).random((20, 8, 8, 3))
    with pytest.raises(InputError, match=r"channels last.*X.transpose\(0, 3, 1, 2\)"):
        classifier("affine").fit(x, np.arange(20) % 2)
    model = classifier("mirror").fit(
        x[:, :3] + np.arange(20)[:, None, None, None] % 2, np.arange(20) % 2
    )
    assert model.input_shape_.tolist() == [3, 8, 3], "three channels first are channels"


def test_one_image_or_another_size(fitted):
    model, x = fitted
    with pytest.raises(InputError, match=r"for a single input pass X\[None\]"):
        model.predict(x[0])
    with pytest.raises(InputError, match=r"fitted to inputs of shape .*bring inputs to that shape"):
        model.predict(x[:, :-1])
    assert len(model.predict(x[0][None])) == 1


def test_values_of_another_scale_are_warned_of(fitted, tmp_path):
    model, x = fitted
    with pytest.warns(UserWarning, match=r"reach 1, those .* fitted to 3..; scale them alike"):
        model.predict(x / x.max())
    orbitgp.save(model, tmp_path / "model")
    same = orbitgp.load(tmp_path / "model")
    with pytest.warns(UserWarning, match="scale them alike"):
        same.predict_proba(100 * x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(x / 2)
        model.predict(0 * x)


def test_modules_are_found_by_their_names():
    assert callable(orbitgp.reports.write_report)
    assert callable(orbitgp.scores.evaluate)
