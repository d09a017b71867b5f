"""Models and estimators go to files and come back as they were."""

import json
import math
import os

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import orbitgp
from orbitgp import (
    RBF,
    Affine,
    FileError,
    FunctionOrbit,
    Gaussian,
    InducingPosterior,
    InputError,
    InvariantGP,
    InvariantGPClassifier,
    InvariantGPRegressor,
    OneHotGaussian,
    Orbit,
    UniformRange,
    compose,
)
from orbitgp.blueprints.checks import GIVEN
from orbitgp.blueprints.orbits import orbit_config
from orbitgp.features import Standardize
from orbitgp.orbits.compose import Composition, FiniteComposition
from orbitgp.sealed import read_sealed, write_sealed
from tests.conftest import QUICK, assert_same_to_rounding, concrete

ORBITS = [
    Affine(-0.2, 0.1),
    Affine(-0.1, 0.1, symmetric=True),
    Affine([-0.1] * 5 + [0.0], 0.1, learn_low=[True] * 5 + [False]),
    Affine(-0.1, 0.1, prior=torch.distributions.LogNormal(-1.0, 0.5)),
    orbitgp.Rotation.full(),
    orbitgp.GaussianNoise(0.2, event_shape=(4, 4)),
    orbitgp.GaussianNoise(
        torch.linspace(0, 1, 16).reshape(4, 4), event_shape=(4, 4), learnable=False
    ),
    orbitgp.Identity(),
    orbitgp.QuarterTurns(),
    orbitgp.Mirror(-2),
    orbitgp.CyclicShifts(4, step=2, dim=-2),
    orbitgp.PermutationGroup([1, 2, 3, 0], dim=-1),
    compose(orbitgp.QuarterTurns(), orbitgp.Mirror()),
    compose(orbitgp.Mirror(), Affine(-0.1, 0.1), orbitgp.Rotation(-1, 1)),
    orbitgp.Intensity(-0.1, 0.3),
    orbitgp.LocalDeformation(0.05, 0.3, num_frequencies=3),
    orbitgp.Crop(0.2),
    compose(orbitgp.Blur(0.4), orbitgp.Magnitude(-0.1, 0.2)),
    orbitgp.TimeAffine(4, sampling_rate=50.0),
    orbitgp.TimeAffine(4, -0.5, 1.0, outside="cyclic", symmetric=False),
    compose(orbitgp.TimeWarp(4, 0.2, num_frequencies=2), orbitgp.Window(4), orbitgp.Drift(0.1)),
    orbitgp.PointRotation(0.3),
    orbitgp.PointRotation.full("z"),
    compose(orbitgp.PointMirror("y"), orbitgp.Translation(-0.1, 0.1, mask=3)),
    orbitgp.Jitter(0.1, num_points=4, mask=3, prior=torch.distributions.HalfNormal(0.1)),
    orbitgp.RandomOrder(4),
    orbitgp.RandomOrder(4, spread=0.3, pairs=True),
    compose(
        Affine(-0.1, 0.1),
        orbitgp.LocalDeformation(
            [0.1, 0.0, 0.1, 0.1, 0.1],
            learn_amplitude=[True, False, True, True, True],
            learn_width=False,
            tangent=True,
        ),
    ),
]


def test_oriented_features_come_back(generator, tmp_path):
    features = orbitgp.OrientedEnergy(6, cells=(2, 1), sharpness=1.5)
    points = InducingPosterior(features(torch.rand(6, 4, 4, generator=generator)), 2)
    model, x = model_with(Affine(), generator, feature_map=features, posterior=points)
    orbitgp.save(model, tmp_path / "model")
    loaded = orbitgp.load(tmp_path / "model")
    assert_same(model, loaded)
    assert torch.equal(loaded.feature_map(x), features(x))


def model_with(orbit, generator, **parts):
    x = torch.rand(6, 4, 4, generator=generator)
    model = InvariantGP(
        **{
            "orbit": orbit,
            "kernel": RBF(0.7, 1.3),
            "posterior": InducingPosterior(x.flatten(1), 2),
            "likelihood": Gaussian([0.2, 0.3]),
            **parts,
        }
    )
    with torch.no_grad():
        model.posterior.mean.normal_(generator=generator)
    return model, x


def assert_same(first, second):
    ours, theirs = first.state_dict(), second.state_dict()
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert ours[name].dtype == theirs[name].dtype
        assert torch.equal(ours[name], theirs[name]), name


@pytest.mark.parametrize("orbit", ORBITS, ids=lambda orbit: orbit.describe()[:40])
def test_every_orbit_comes_back(orbit, generator, tmp_path):
    model, x = model_with(orbit, generator)
    orbitgp.save(model, tmp_path / "model")
    loaded = orbitgp.load(tmp_path / "model")
    assert_same(model, loaded)
    assert type(loaded.orbit) is type(orbit)
    assert loaded.orbit.describe() == orbit.describe()
    assert [p.requires_grad for p in model.parameters()] == [
        p.requires_grad for p in loaded.parameters()
    ]
    draws = [
        m.predict(x, num_samples=4, generator=torch.Generator().manual_seed(1)).mean
        for m in (model, loaded)
    ]
    assert torch.equal(*draws)
    prior = getattr(getattr(orbit, "ranges", None), "prior", None)
    if prior is not None:
        assert torch.equal(loaded.orbit.log_prior(), orbit.log_prior())
    orbitgp.save(loaded, tmp_path / "again")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "again").read_bytes()


def test_no_orbit_is_forgotten():
    kept = {type(orbit) for orbit in ORBITS}
    kept |= {type(part) for orbit in ORBITS for part in orbit.modules()}
    ours = {kind for kind in concrete(Orbit) if kind.__module__.startswith("orbitgp.")}
    # code of the user; vectors only; three channels only
    assert ours - kept == {FunctionOrbit, orbitgp.SignFlips, orbitgp.Colour}
    assert {Composition, FiniteComposition} <= kept
    assert orbit_config(orbitgp.SignFlips(0, 1)) == {"kind": "SignFlips", "coordinates": [0, 1]}


def test_vectors_features_and_kernels_come_back(generator, tmp_path):
    x = torch.rand(6, 3, generator=generator, dtype=torch.float64)
    model = InvariantGP(
        orbit=orbitgp.SignFlips(0, 2),
        kernel=RBF(0.7, 1.3, ard_num_dims=3).double(),
        posterior=InducingPosterior(torch.stack([x, x + 1], 1), 2, shared_covariance=False),
        likelihood=OneHotGaussian(2),
        feature_map=Standardize.of(x),
    )
    orbitgp.save(model, tmp_path / "model")
    loaded = orbitgp.load(str(tmp_path / "model"))
    assert_same(model, loaded)
    assert torch.equal(model.predict(x).variance, loaded.predict(x).variance)


def test_colours_come_back(generator, tmp_path):
    x = torch.rand(6, 3, 4, 4, generator=generator)
    posterior = InducingPosterior(x.flatten(1), 2)
    model, _ = model_with(orbitgp.Colour(-0.1, 0.2), generator, posterior=posterior)
    orbitgp.save(model, tmp_path / "model")
    loaded = orbitgp.load(tmp_path / "model")
    assert_same(model, loaded)
    assert loaded.orbit.describe() == model.orbit.describe()


def louder(x, gain):
    return x * torch.exp(gain)[:, :, None]


def brighter(x, change):
    return louder(x, change[:, :1]) + change[:, 1:, None]


def test_several_ranges_of_ones_own(generator, tmp_path):
    def orbit():
        return FunctionOrbit(brighter, [-0.1, -0.2], [0.1, 0.2])

    model, _ = model_with(orbit(), generator)
    orbitgp.save(model, tmp_path / "model")
    assert_same(model, orbitgp.load(tmp_path / "model", orbit=orbit()))


def test_parts_with_code_are_given_again(generator, tmp_path):
    def parts():
        return {
            "orbit": FunctionOrbit(louder, UniformRange(-0.1, 0.1)),
            "feature_map": nn.Sequential(nn.Flatten(), nn.Linear(16, 16)),
        }

    orbit = parts()["orbit"]
    model, _ = model_with(orbit, generator, feature_map=parts()["feature_map"])
    with torch.no_grad():
        orbit.ranges.raw.add_(1.0)
    orbitgp.save(model, tmp_path / "model")
    with pytest.raises(FileError, match=r"pass it as load\(path, orbit=\.\.\.\)"):
        orbitgp.load(tmp_path / "model")
    given = parts()
    loaded = orbitgp.load(tmp_path / "model", **given)
    assert_same(model, loaded)
    assert loaded.orbit is not given["orbit"]
    with pytest.raises(
        FileError, match=r"the feature_map that was given has tensors of shapes \{\}"
    ):
        orbitgp.load(tmp_path / "model", orbit=orbit, feature_map=nn.Flatten())
    with pytest.raises(InputError, match="feature_map"):
        orbitgp.load(tmp_path / "model", features=nn.Flatten())

    class Mine(Affine):
        pass

    assert orbit_config(Mine()) == GIVEN
    assert orbit_config(compose(Mine(), Affine())) == GIVEN


@pytest.mark.usefixtures("untyped")
def test_a_function_is_no_orbit(generator, tmp_path):
    model, _ = model_with(FunctionOrbit(louder, UniformRange(-0.1, 0.1)), generator)
    orbitgp.save(model, tmp_path / "model")
    with pytest.raises(FileError, match="orbit= must be of type Orbit; got <function"):
        orbitgp.load(tmp_path / "model", orbit=louder)


def bars(num_data):
    random = np.random.default_rng(0)
    labels = random.integers(2, size=num_data)
    images = 0.1 * random.random((num_data, 6, 6))
    images[labels == 1, 2] = 1
    images[labels == 0, :, 3] = 1
    return images, labels


@pytest.mark.parametrize(
    ("orbit", "kind"),
    [
        *(("mirror", kind) for kind in ("int", "str", "bool", "object", "float32")),
        *(("affine", "str"), (Affine(-0.1, 0.2), "int")),
    ],
    ids=str,
)
def test_classifiers_come_back(kind, orbit, tmp_path):
    images, labels = bars(30)
    y = {"str": np.array(["no", "yes"])[labels], "object": np.array(["no", "yes"], object)[labels]}
    y = y.get(kind, labels if kind in ("str", "object") else labels.astype(kind))
    model = InvariantGPClassifier(orbit, settings=QUICK, random_state=0).fit(images, y)
    orbitgp.save(model, tmp_path / "model")
    loaded = orbitgp.load(tmp_path / "model")
    assert isinstance(loaded, InvariantGPClassifier)
    assert_same_to_rounding(model.predict_proba(images), loaded.predict_proba(images))
    np.testing.assert_array_equal(model.predict(images), loaded.predict(images))
    assert loaded.classes_.dtype == model.classes_.dtype
    assert (loaded.evidence_, loaded.evidence_error_) == (model.evidence_, model.evidence_error_)
    assert loaded.evidence_curve_ == model.evidence_curve_
    assert repr(loaded.get_params()["orbit"]) == repr(model.get_params()["orbit"])
    assert loaded.settings == QUICK
    orbitgp.save(loaded, tmp_path / "again")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "again").read_bytes()


def test_regressors_come_back_with_names_and_units(tmp_path):
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(20, 2)), columns=["left", "right"])
    y = 1e3 + X.to_numpy() @ [[1, 2], [3, 4]]
    model = InvariantGPRegressor(settings=QUICK, random_state=0).fit(X, y)
    orbitgp.save(model, tmp_path / "model")
    loaded = orbitgp.load(tmp_path / "model")
    for ours, theirs in zip(
        model.predict(X, return_std=True), loaded.predict(X, return_std=True), strict=True
    ):
        assert_same_to_rounding(ours, theirs)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(X.rename(columns={"left": "other"}))


def test_only_fitted_things_are_saved(tmp_path):
    for wrong in (InvariantGPClassifier(), nn.Linear(2, 2), None):
        with pytest.raises(InputError, match="fitted estimator"):
            orbitgp.save(wrong, tmp_path / "model")


def test_a_failed_write_leaves_the_old_file(tmp_path, generator, monkeypatch):
    model, _ = model_with(Affine(), generator)
    path = tmp_path / "model"
    orbitgp.save(model, path)
    before = path.read_bytes()

    def broken(*args):
        raise OSError("disk full")

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, broken)
        with pytest.raises(orbitgp.FileError, match="disk full"):
            orbitgp.save(model, path)
        monkeypatch.undo()
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_versions_and_forms_are_named(tmp_path, generator, monkeypatch):
    model, _ = model_with(Affine(), generator)
    path = tmp_path / "model"
    monkeypatch.setattr("orbitgp.sealed.VERSION", 2)
    orbitgp.save(model, path)
    monkeypatch.undo()
    with pytest.raises(FileError, match="format version 2, and this orbitgp reads version 1"):
        orbitgp.load(path)
    write_sealed(path, "something", {"x": torch.zeros(1)}, {})
    with pytest.raises(FileError, match="holds 'something'"):
        orbitgp.load(path)
    for missing in (tmp_path / "none", tmp_path):
        with pytest.raises(FileError, match="cannot be opened"):
            orbitgp.load(missing)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(FileError, match="plain file"):
            orbitgp.load(tmp_path / "pipe")


def test_sealed_values_come_back_exactly(tmp_path):
    config = {"numbers": [0.1, math.inf, 1e-300, 2**60], "text": 'é"\\\0', "none": None}
    tensors = {"a": torch.randn(3, dtype=torch.float64), "b": torch.arange(4, dtype=torch.uint8)}
    write_sealed(tmp_path / "file", "form", tensors, config)
    form, read, again = read_sealed(tmp_path / "file", "form")
    assert form == "form"
    assert json.dumps(again) == json.dumps(config)
    assert all(torch.equal(read[name], tensors[name]) for name in tensors)


@pytest.mark.parametrize("cast", ["float", "double"])
def test_models_in_one_precision_come_back(cast, generator, tmp_path):
    noise = orbitgp.GaussianNoise(0.2, event_shape=(4, 4))
    model, _ = model_with(noise, generator)
    getattr(model, cast)()
    orbitgp.save(model, tmp_path / "model")
    assert_same(model, orbitgp.load(tmp_path / "model"))


def test_the_same_orbit_twice(generator, tmp_path):
    turn = orbitgp.Rotation(-0.3, 0.3)
    model, _ = model_with(compose(turn, turn), generator)
    orbitgp.save(model, tmp_path / "model")
    assert_same(model, orbitgp.load(tmp_path / "model"))


def test_a_subclass_of_an_estimator_is_refused(tmp_path):
    class Mine(InvariantGPClassifier):
        pass

    model = Mine(settings=QUICK, random_state=0).fit(*bars(20))
    with pytest.raises(InputError, match="fitted estimator"):
        orbitgp.save(model, tmp_path / "model")


def test_a_feature_map_of_ours_given_by_the_user_comes_back(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = InvariantGPRegressor(feature_map=nn.Flatten(), settings=QUICK).fit(X, X[:, 0])
    orbitgp.save(model, tmp_path / "model")
    assert isinstance(orbitgp.load(tmp_path / "model").feature_map, nn.Flatten)
