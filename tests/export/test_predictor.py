"""Predictor files agree with the estimator, and need no orbitgp."""

import json

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from orbitgp import (
    FunctionOrbit,
    GaussianNoise,
    InputError,
    Intensity,
    InvariantGPClassifier,
    InvariantGPRegressor,
    Mirror,
    OrientedEnergy,
    PatchFeatures,
    SignFlips,
    compose,
    export_predictor,
)
from orbitgp.kernels import MaternKernel, RBFKernel, ScaleKernel
from tests.conftest import QUICK
from tests.processes import python

pytestmark = pytest.mark.usefixtures("untyped")

IMAGES, LABELS = (part[:150] for part in load_digits(return_X_y=True))
IMAGES = IMAGES.reshape(-1, 8, 8).astype(np.float32)
TRAIN, TEST = 100, 40
PATCHES = PatchFeatures.of(
    torch.from_numpy(IMAGES / 16),
    num_filters=8,
    size=3,
    generator=torch.Generator().manual_seed(0),
)

RUN = """
import json, sys
import numpy as np
inputs = np.load(sys.argv[2])
if sys.argv[1].endswith("onnx"):
    import onnxruntime
    session = onnxruntime.InferenceSession(sys.argv[1])
    properties = session.get_modelmeta().custom_metadata_map
    about = {name: json.loads(text) for name, text in properties.items()}
    predict = lambda x: session.run(about["outputs"], {"inputs": x})
else:
    import torch
    extra = {"orbitgp.json": ""}
    graph = torch.export.load(sys.argv[1], extra_files=extra).module()
    about = json.loads(extra["orbitgp.json"])
    def predict(x):
        found = graph(torch.from_numpy(x))
        return [part.numpy() for part in (found if isinstance(found, tuple) else (found,))]
assert not any(name.startswith("orbitgp") for name in sys.modules)
whole, one = predict(inputs), predict(inputs[:1])
assert list(about["inputs"]) == list(inputs.shape[1:])
np.savez(sys.argv[3], *whole, *one)
"""


def louder(x, gain):
    return x * torch.exp(gain).unsqueeze(-1)


def predicted(path, inputs, folder):
    """What another process, without orbitgp, makes of all inputs, and of the first alone."""
    np.save(folder / "inputs.npy", inputs)
    arguments = [str(path), str(folder / "inputs.npy"), str(folder / "found.npz")]
    done = python("-c", RUN, *arguments)
    assert done.returncode == 0, done.stderr
    found = np.load(folder / "found.npz")
    parts = [found[name] for name in found.files]
    half = len(parts) // 2
    return parts[:half], parts[half:]


CLASSIFIERS = {
    "oriented edges, many draws": (
        {"orbit": "affine+local", "feature_map": OrientedEnergy(4, (3,))},
        "onnx",
    ),
    "a bound": ({"orbit": "rotation", "num_inducing": 30}, "pt2"),
    "patches": ({"orbit": "mirror", "feature_map": PATCHES}, "onnx"),
    "a group": ({"orbit": "dihedral", "kernel": MaternKernel(nu=1.5)}, "pt2"),
    "softmax": (
        {
            "orbit": compose(
                Mirror(), GaussianNoise(0.05, event_shape=(8, 8)), Intensity(-0.1, 0.1)
            ),
            "likelihood": "softmax",
        },
        "pt2",
    ),
    "an own function, softmax": (
        {"orbit": FunctionOrbit(louder, -0.1, 0.1), "likelihood": "softmax"},
        "onnx",
    ),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_class_probabilities(name, tmp_path):
    parameters, ending = CLASSIFIERS[name]
    if ending == "onnx":
        pytest.importorskip("onnxscript")
    model = InvariantGPClassifier(**parameters, settings=QUICK, random_state=0)
    model.fit(IMAGES[:TRAIN], LABELS[:TRAIN])
    path = export_predictor(model, tmp_path / f"model.{ending}")
    (whole,), (one,) = predicted(path, IMAGES[-TEST:], tmp_path)
    expected = model.predict_proba(IMAGES[-TEST:])
    np.testing.assert_allclose(whole, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(one, expected[:1], rtol=0, atol=1e-5)


@pytest.mark.parametrize(("ending", "outputs"), [("pt2", 1), ("onnx", 2)])
def test_means_and_variances_in_the_units_of_the_target(ending, outputs, tmp_path):
    if ending == "onnx":
        pytest.importorskip("onnxscript")
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 2)).astype(np.float32)
    y = 300 + 40 * np.stack([np.cos(2 * x[:, 0]), x[:, 1]], 1) + random.normal(size=(60, 2))
    y = y[:, 0] if outputs == 1 else y
    kernel = ScaleKernel(RBFKernel(ard_num_dims=2))
    model = InvariantGPRegressor(SignFlips(0), kernel=kernel, settings=QUICK, random_state=0)
    model.fit(x[:40], y[:40])
    path = export_predictor(model, tmp_path / f"model.{ending}")
    (mean, variance), (first, _) = predicted(path, x, tmp_path)
    expected, deviation = model.predict(x, return_std=True)
    assert mean.shape == variance.shape == expected.shape
    np.testing.assert_allclose(mean, expected, rtol=1e-5)
    np.testing.assert_allclose(np.sqrt(variance), deviation, rtol=1e-5)
    np.testing.assert_allclose(first, expected[:1], rtol=1e-5)


def test_what_cannot_be_a_file_is_refused(tmp_path):
    model = InvariantGPRegressor(settings=QUICK, random_state=0)
    with pytest.raises(InputError, match="call fit first"):
        export_predictor(model, tmp_path / "model.pt2")
    x = np.linspace(-1, 1, 20)[:, None]
    model.fit(x, x[:, 0])
    with pytest.raises(InputError, match=r"ends with \.pt2 or \.onnx; got 'model\.h5'"):
        export_predictor(model, tmp_path / "model.h5")
    own = InvariantGPRegressor(RefusesGraphs.orbit(), settings=QUICK, random_state=0).fit(
        x, x[:, 0]
    )
    with pytest.raises(InputError, match="a function of your own"):
        export_predictor(own, tmp_path / "model.pt2")
    assert list(tmp_path.iterdir()) == []


class RefusesGraphs:
    """An orbit whose function depends on the values of its inputs."""

    @staticmethod
    def shifted(x, shift):
        return x + shift if x.max() > 100 else x - shift

    @classmethod
    def orbit(cls):
        return FunctionOrbit(cls.shifted, -0.1, 0.1)


def test_metadata_name_the_classes(tmp_path):
    model = InvariantGPClassifier(settings=QUICK, random_state=0)
    model.fit(IMAGES[:40], np.array(["even", "odd"])[LABELS[:40] % 2])
    path = export_predictor(model, tmp_path / "model.pt2")
    extra = {"orbitgp.json": ""}
    torch.export.load(path, extra_files=extra)
    about = json.loads(extra["orbitgp.json"])
    assert (about["classes"], about["outputs"]) == (["even", "odd"], ["probabilities"])
