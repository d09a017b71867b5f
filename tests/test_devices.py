"""Estimators on a device that refuses to mix with the CPU: the same numbers as on the CPU.

There is no GPU where these tests run. `tests/pretend_device.py` has tensors that say they are
elsewhere, hold real values, and refuse what a GPU refuses.
"""

import copy
import io
import pickle
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from orbitgp import (
    Affine,
    GaussianNoise,
    InputError,
    Intensity,
    InvariantGPClassifier,
    InvariantGPRegressor,
    LocalDeformation,
    Mirror,
    OrientedEnergy,
    PatchFeatures,
    SignFlips,
    TrainingSettings,
    ablate,
    certificate,
    compose,
    load,
    save,
    tolerated,
)
from orbitgp.data.stream import ArrayStream
from orbitgp.devices import chosen_device, rates_of
from orbitgp.fit.feature_choice import compare_features, feature_makers
from orbitgp.inference.passes import Resident
from orbitgp.likelihoods.gaussian import OneHotGaussian
from tests.conftest import without_checks_of_shapes
from tests.files.crash import bars
from tests.pretend_device import DEVICE, Pretend

pytestmark = pytest.mark.usefixtures("untyped")
AWAY = str(DEVICE)
QUICK = TrainingSettings(
    max_steps=1, scan_size=20, scan_draws=2, climb_size=20, climb_draws=2, search_size=20
)
"""Every operation takes longer under the simulated device."""


SHAPE = bars(1)[0].shape[1:]


def classes(num_data=30):
    images, labels = bars(num_data)
    return images, np.array(["a", "b", "c"])[labels]


def numbers(num_data=20):
    chance = np.random.default_rng(0)
    x = chance.uniform(-2, 2, (num_data, 2))
    return x, np.cos(x[:, 0]) * x[:, 1] + 0.3 * chance.standard_normal(num_data)


def fitted(kind, data, *, stream=False, **parameters):
    """The same fit on the CPU and away, and what both predict."""
    found = []
    for device in ("cpu", AWAY):
        with Pretend() if device == AWAY else nullcontext():
            model = kind(settings=QUICK, random_state=0, device=device, **parameters)
            if stream:
                model.fit_stream(ArrayStream(*data, 32))
            else:
                model.fit(*data)
            assert model.device_ == device
            assert {p.device.type for p in model.model_.parameters()} == {device}
            predict = getattr(model, "predict_proba", model.predict)
            found.append((model, predict(data[0]), model.orbit_.learned_ranges()))
    return found


def assert_same(found):
    (here, expected, ranges), (away, predicted, others) = found
    np.testing.assert_allclose(predicted, expected, atol=1e-6, rtol=1e-6)
    assert away.evidence_ == pytest.approx(here.evidence_, rel=1e-6)
    for own, other in zip(ranges, others, strict=True):
        assert other.title == own.title
        assert (other.low, other.high) == pytest.approx((own.low, own.high), rel=1e-5)


ORBITS = {
    "affine": Affine,
    "local": LocalDeformation,
    "groups and noise": lambda: compose(
        Mirror(), Intensity(-0.1, 0.1), GaussianNoise(0.1, event_shape=SHAPE)
    ),
}


@pytest.mark.parametrize("name", ORBITS)
def test_orbits(name, generator):
    x = torch.from_numpy(classes(4)[0]).float()
    orbit = ORBITS[name]()
    noise = orbit.shared_noise(orbit.num_shared(4), generator=generator)
    expected = orbit.at(x, noise).points
    with Pretend():
        points = orbit.to(DEVICE).at(x.to(DEVICE), noise.to(DEVICE)).points
        assert points.device.type == AWAY
        torch.testing.assert_close(points.cpu(), expected)


@pytest.mark.parametrize(
    "name",
    ["affine", *(pytest.param(n, marks=pytest.mark.slow) for n in ("local", "groups and noise"))],
)
def test_exact_inference(name):
    assert_same(fitted(InvariantGPClassifier, classes(), orbit=ORBITS[name]()))


def test_oriented_features():
    x, features = torch.from_numpy(classes(4)[0]).float(), OrientedEnergy()
    expected = features(x)
    with Pretend():
        there = copy.deepcopy(features).to(DEVICE)(x.to(DEVICE))
        torch.testing.assert_close(there.cpu(), expected)


def test_patches_and_the_choice_of_features():
    x, labels = (
        torch.rand(40, 12, 12, generator=torch.Generator().manual_seed(0)),
        torch.arange(40) % 2,
    )
    features = PatchFeatures.of(x, num_filters=8, generator=torch.Generator().manual_seed(0))
    asked = OneHotGaussian(2), None, 1e6
    makers = feature_makers("auto", x)
    expected = features(x), compare_features(makers, Resident(x, labels), *asked)
    with Pretend():
        there = copy.deepcopy(features).to(DEVICE)(x.to(DEVICE))
        torch.testing.assert_close(there.cpu(), expected[0])
        away = Resident(x.to(DEVICE), labels.to(DEVICE))
        found = compare_features(feature_makers("auto", away.x), away, *asked)
    assert found == pytest.approx(expected[1], rel=1e-6)


@pytest.mark.slow
def test_a_fit_with_oriented_features():
    features = OrientedEnergy()
    assert_same(fitted(InvariantGPClassifier, classes(), orbit="rotation", feature_map=features))
    assert next(features.buffers()).device.type == "cpu"  # the user's own was copied


def test_regression():
    found = fitted(InvariantGPRegressor, numbers(), orbit=SignFlips(0))
    assert_same(found)
    here, away = (model for model, *_ in found)
    x = numbers()[0][:5]
    with Pretend():
        deviation = away.predict(x, return_std=True)[1]
    np.testing.assert_allclose(deviation, here.predict(x, return_std=True)[1], rtol=1e-6)


def test_features_with_weights():
    """A module that a user brings, which is on the CPU and stays there."""
    x, y = numbers()
    features = torch.nn.Linear(x.shape[1], 3, dtype=torch.float64).eval().requires_grad_(False)
    assert_same(fitted(InvariantGPRegressor, (x, y), orbit=SignFlips(0), feature_map=features))
    assert features.weight.device.type == "cpu"


@pytest.mark.parametrize("likelihood", ["softmax", "polya-gamma"])
def test_likelihoods(likelihood):
    x, y = classes()
    y = y == "a" if likelihood == "polya-gamma" else y
    assert_same(fitted(InvariantGPClassifier, (x, y), orbit=Mirror(), likelihood=likelihood))


def test_a_bound():
    found = fitted(InvariantGPClassifier, classes(), orbit="rotation", num_inducing=10)
    assert found[0][0].evidence_kind_ == "bound"
    assert_same(found)


def test_a_stream():
    assert_same(
        fitted(InvariantGPClassifier, classes(60), stream=True, orbit="rotation", num_inducing=10)
    )


@pytest.fixture(scope="module")
@without_checks_of_shapes()
def away():
    """A classifier that was fitted away, what it predicts, and the device."""
    with Pretend():
        model = InvariantGPClassifier("rotation", settings=QUICK, random_state=0, device=AWAY)
        model.fit(*classes())
        return model, model.predict_proba(classes()[0])


def test_moves_there_and_back(away):
    model, expected = away
    with Pretend():
        copied = pickle.loads(pickle.dumps(model))
        assert copied.to("cpu") is copied
        assert copied.device_ == "cpu"
        np.testing.assert_allclose(copied.predict_proba(classes()[0]), expected, atol=1e-6)
        copied.to(AWAY)
        np.testing.assert_allclose(copied.predict_proba(classes()[0]), expected, atol=1e-6)


def test_pickles_and_files_open_where_the_device_is_not(away, tmp_path):
    model, expected = away
    with Pretend():
        pickled = pickle.dumps(model)
        save(model, tmp_path / "model.safetensors")
    for opened in (lambda: pickle.loads(pickled), lambda: load(tmp_path / "model.safetensors")):
        with pytest.warns(UserWarning, match="was saved on meta, which is not here"):
            here = opened()
        assert here.device_ == "cpu"
        np.testing.assert_allclose(here.predict_proba(classes()[0]), expected, atol=1e-6)


def test_files_open_where_they_are_asked_to(away, tmp_path):
    model, expected = away
    with Pretend():
        save(model, tmp_path / "model.safetensors")
        there = load(tmp_path / "model.safetensors")
        assert there.device_ == AWAY
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        here = load(tmp_path / "model.safetensors", device="cpu")
    assert here.device_ == "cpu"
    np.testing.assert_allclose(here.predict_proba(classes()[0]), expected, atol=1e-6)


def test_the_evidence_is_asked_there(away):
    model, _ = away
    x, y = classes()
    with Pretend():
        worth = ablate(model, x, y)["rotation"]
        found = certificate(model, x[:6], y[:6], num_draws=2)
        changes = tolerated(model, x, y).changes
        copied = pickle.loads(pickle.dumps(model)).to("cpu")
    here = ablate(copied, x, y)["rotation"]
    assert worth.removed == pytest.approx(here.removed, rel=1e-4, abs=1e-4)
    expected = certificate(copied, x[:6], y[:6], num_draws=2)
    for one, other in zip(found.dangers, expected.dangers, strict=True):
        assert one.probability == pytest.approx(other.probability, abs=1e-6)
    losses = [change.loss for change in tolerated(copied, x, y).changes]
    assert [change.loss for change in changes] == pytest.approx(losses)


def test_the_plan_names_the_device(capsys):
    with Pretend():
        model = InvariantGPRegressor("none", settings=QUICK, device=AWAY, verbose=True)
        model.fit(*numbers(20))
    assert "exact inference on meta" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("cuda:7", "expected 'auto', 'cpu', or a device of this machine"),
        ("gpu", "expected 'auto', 'cpu', or a device of this machine"),
        (3.5, "expected 'auto', 'cpu', or a device of this machine"),
        ("mps", "it has no float64"),
    ],
)
def test_devices_that_are_not_there(device, message):
    with pytest.raises(InputError, match=message):
        InvariantGPRegressor("none", device=device).fit(*numbers(10))


def test_auto_takes_one_gpu_or_that_of_the_local_rank(monkeypatch):
    assert chosen_device("auto").type == "cpu"
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    assert chosen_device("auto") == torch.device("cuda:0")
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert chosen_device("auto") == torch.device("cuda:3")


def test_rates_are_measured_elsewhere_and_known_here():
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(rates_of(torch.device("cpu")))
    finally:
        torch.set_num_threads(threads)
    assert found[1].flops == 2 * found[0].flops
    with Pretend():
        away = rates_of(DEVICE)
    assert 1e8 < away.float64_flops < away.flops * 10
    assert 1e6 < away.entries < 1e13


@pytest.mark.parametrize("wrong", ["linear", "generator"])
def test_the_pretended_device_refuses_what_a_gpu_refuses(wrong):
    with Pretend():
        there = torch.ones(3, device=DEVICE)
        if wrong == "linear":
            with pytest.raises(RuntimeError, match="two devices"):
                there + torch.ones(3)
        else:
            with pytest.raises(RuntimeError, match="a CPU generator"):
                torch.rand(3, device=DEVICE, generator=torch.Generator())


def test_pickles_hold_cpu_tensors_only(away):
    class Opened(pickle.Unpickler):
        def find_class(self, module, name):
            assert "pretend" not in module
            return super().find_class(module, name)

    model, _ = away
    with Pretend():
        data = pickle.dumps(model)
    with pytest.warns(UserWarning, match="is not here"):
        Opened(io.BytesIO(data)).load()
