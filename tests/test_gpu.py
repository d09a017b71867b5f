"""On a real GPU, which no machine of this project has had: `python -m pytest -m gpu`."""

import numpy as np
import pytest
import torch

from orbitgp import (
    InvariantGPClassifier,
    InvariantGPRegressor,
    OrientedEnergy,
    SignFlips,
    load,
    save,
)
from tests.conftest import QUICK
from tests.test_devices import classes, numbers

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("untyped")]

FITS = {
    "exact": {"orbit": "affine"},
    "local": {"orbit": "affine+local", "feature_map": OrientedEnergy()},
    "a bound": {"orbit": "rotation", "num_inducing": 10},
    "softmax": {"orbit": "mirror", "likelihood": "softmax"},
}


@pytest.fixture
def device():
    if not torch.accelerator.is_available():
        pytest.fail("these tests need a GPU")
    return str(torch.accelerator.current_accelerator())


def fitted(kind, data, device, **parameters):
    return kind(settings=QUICK, random_state=0, device=device, **parameters).fit(*data)


@pytest.mark.parametrize("name", FITS)
def test_classes(name, device):
    data = classes()
    here, there = (fitted(InvariantGPClassifier, data, d, **FITS[name]) for d in ("cpu", device))
    expected, found = (model.predict_proba(data[0]) for model in (here, there))
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert there.evidence_ == pytest.approx(here.evidence_, rel=1e-3)


def test_numbers_and_files(device, tmp_path):
    data = numbers()
    here, there = (
        fitted(InvariantGPRegressor, data, d, orbit=SignFlips(0)) for d in ("cpu", device)
    )
    np.testing.assert_allclose(there.predict(data[0]), here.predict(data[0]), atol=1e-3)
    save(there, tmp_path / "model.safetensors")
    opened = load(tmp_path / "model.safetensors", device="cpu")
    np.testing.assert_allclose(opened.predict(data[0]), there.predict(data[0]), atol=1e-3)
