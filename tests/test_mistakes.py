"""Typical mistakes: each gives one sentence that names what was given and what to do."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import nn

from orbitgp import (
    RBF,
    Affine,
    CyclicShifts,
    FunctionOrbit,
    Gaussian,
    GaussianNoise,
    Identity,
    InducingPosterior,
    InvariantGP,
    InvariantGPClassifier,
    InvariantGPRegressor,
    OneHotGaussian,
    OrbitGPError,
    OrientedEnergy,
    PermutationGroup,
    Rotation,
    TrainingSettings,
    UniformRange,
    compose,
    coordinate_swap,
    elbo,
    kmeans_points,
    load,
    save,
)
from orbitgp.data.sources import read_data
from orbitgp.reports import write_report
from orbitgp.scores import evaluate
from tests.conftest import QUICK

random = np.random.default_rng(0)
IMAGES, LABELS = random.random((20, 8, 8)), np.arange(20) % 2
ROWS, VALUES = random.normal(size=(20, 3)), random.normal(size=20)
FLAT = IMAGES.reshape(20, 64)
X, Y = torch.tensor(ROWS), torch.tensor(VALUES)


def classify(X, y, *orbit, **options):
    return lambda: InvariantGPClassifier(*orbit, settings=QUICK, **options).fit(X, y)


def regress(X, y):
    return lambda: InvariantGPRegressor(settings=QUICK).fit(X, y)


def by(function):
    """A classifier whose orbit is made of the function."""
    return classify(ROWS, LABELS, FunctionOrbit(function, -0.1, 0.1))


def predict(values):
    model = InvariantGPClassifier(settings=QUICK, random_state=0)
    return lambda: model.fit(IMAGES, LABELS).predict(values)


def bound(x=X, y=Y, orbit=None, num_samples=None, num_data=20):
    model = InvariantGP(
        orbit=orbit or Identity(),
        kernel=RBF(),
        posterior=InducingPosterior(X[:5], num_outputs=1),
        likelihood=Gaussian(),
    )
    draws = {"num_data": num_data, "num_samples": num_samples, "generator": None}
    return lambda: elbo(model, x, y, **draws)


def twice_into_one_folder():
    model = InvariantGPClassifier(settings=QUICK, random_state=0, run="run")
    model.fit(IMAGES, LABELS).fit(IMAGES[:10], LABELS[:10])


def load_text():
    Path("a.txt").write_text("hello")
    load("a.txt")


def of_other_classes():
    model = InvariantGPClassifier(settings=QUICK, random_state=0).fit(IMAGES, LABELS)
    evaluate(model, IMAGES, LABELS + 5)


def fit_stream(source):
    return lambda: InvariantGPClassifier(settings=QUICK).fit_stream(source)


LINEAR = nn.Linear(5, 2).requires_grad_(False)
NOT_FINITE = np.where(IMAGES > 0.9, np.nan, IMAGES)

# what is done, what the message says was given, and what to do about it
MISTAKES = {
    "flat rows": (classify(FLAT, LABELS, "affine"), "(20, 64)", "image_shape=(8, 8)"),
    "channels last": (
        classify(random.random((20, 8, 8, 3)), LABELS, "affine"),
        "(20, 8, 8, 3)",
        "X.transpose(0, 3, 1, 2)",
    ),
    "five axes": (
        classify(random.random((20, 2, 2, 8, 8)), LABELS, "affine"),
        "[20, 2, 2, 8, 8]",
        "[N, H, W] or [N, C, H, W]",
    ),
    "images of vectors": (classify(ROWS, LABELS, "rotation"), "(20, 3)", "pass image_shape"),
    "missing values": (classify(NOT_FINITE, LABELS), "contains NaN", "SimpleImputer"),
    "infinite target": (
        regress(ROWS, np.where(VALUES > 1, np.inf, VALUES)),
        "y contains infinity",
        "leave these rows out",
    ),
    "no inputs": (classify(IMAGES[:0], LABELS[:0]), "0 sample", "give more inputs"),
    "one class": (classify(IMAGES, np.zeros(20)), "got 1 class, 0.0", "at least 2 classes"),
    "labels missing": (classify(IMAGES, LABELS[:-1]), "[20, 19]", "one label for each input"),
    "numbers as classes": (classify(IMAGES, VALUES), "continuous", "use InvariantGPRegressor"),
    "text as target": (regress(ROWS, np.array(["a", "b"] * 10)), "'a'", "text into numbers"),
    "no labels": (classify(IMAGES, None), "y is None", "fit(X, y)"),
    "text as inputs": (classify(np.full((20, 3), "a"), LABELS), "'a'", "OrdinalEncoder"),
    "one axis": (classify(ROWS[:, 0], LABELS), "got 1D array", "X.reshape(-1, 1)"),
    "sparse": (classify(scipy.sparse.csr_array(ROWS), LABELS), "sparse inputs", "X.toarray()"),
    "one-hot labels": (classify(IMAGES, np.eye(2)[LABELS]), "(20, 2)", "y.argmax(1)"),
    "mixed labels": (
        classify(IMAGES, np.array(["a", 1] * 10, dtype=object)),
        "labels must be",
        "all numbers or all strings",
    ),
    "orbit misspelt": (classify(IMAGES, LABELS, "affin"), "'affin'", "choose among none, affine"),
    "class of orbit": (classify(IMAGES, LABELS, Rotation), "Rotation", "a name or an orbit"),
    "no orbit": (classify(IMAGES, LABELS, None), "got None", "a name or an orbit"),
    "list of orbits": (classify(IMAGES, LABELS, ["affine"]), "['affine']", "a name or an orbit"),
    "likelihood misspelt": (
        classify(IMAGES, LABELS, likelihood="soft-max"),
        "'soft-max'",
        "one of auto, gaussian",
    ),
    "three classes": (
        classify(IMAGES, np.arange(20) % 3, likelihood="polya-gamma"),
        "got 3",
        "use 'softmax'",
    ),
    "no inducing": (classify(IMAGES, LABELS, num_inducing=0), "got 0", "from 1 on, or None"),
    "part of a number": (classify(IMAGES, LABELS, num_inducing=2.5), "got 2.5", "whole number"),
    "negative budget": (classify(IMAGES, LABELS, budget_seconds=-1), "got -1", "positive"),
    "budget as text": (classify(IMAGES, LABELS, budget_seconds="5 min"), "'5 min'", "positive"),
    "settings as dict": (
        lambda: InvariantGPClassifier(settings={"max_steps": 3}).fit(IMAGES, LABELS),
        "{'max_steps': 3}",
        "a TrainingSettings",
    ),
    "settings of 0": (lambda: TrainingSettings(max_steps=0), "'max_steps': 0", "positive"),
    "seed as text": (classify(IMAGES, LABELS, random_state="a"), "'a'", "a whole number or None"),
    "feature function": (classify(IMAGES, LABELS, feature_map=len), "function len", "torch module"),
    "features with axes": (
        classify(IMAGES, LABELS, feature_map=nn.Identity()),
        "gave [1, 8, 8]",
        "torch.nn.Flatten()",
    ),
    "features that fail": (classify(IMAGES, LABELS, feature_map=LINEAR), "8x8", "[B, *event]"),
    "edges of vectors": (
        classify(ROWS, LABELS, feature_map=OrientedEnergy()),
        "got [1, 3]",
        "images [B, H, W]",
    ),
    "kernel as text": (classify(IMAGES, LABELS, kernel="matern"), "'matern'", "GPyTorch kernel"),
    "callback function": (classify(IMAGES, LABELS, callbacks=[print]), "print", "orbitgp.Callback"),
    "other image_shape": (
        classify(FLAT, LABELS, "affine", image_shape=(7, 7)),
        "(7, 7)",
        "they have 64 values each",
    ),
    "image_shape number": (
        classify(FLAT, LABELS, "affine", image_shape=64),
        "got 64",
        "(H, W) or (C, H, W)",
    ),
    "predict before fit": (
        lambda: InvariantGPClassifier().predict(IMAGES),
        "not fitted yet",
        "Call 'fit'",
    ),
    "one image": (predict(IMAGES[0]), "(8, 8)", "pass X[None]"),
    "another size": (predict(random.random((3, 9, 9))), "(3, 9, 9)", "bring inputs to that shape"),
    "flat to predict": (predict(FLAT), "(20, 64)", "bring inputs to that shape"),
    "NaN to predict": (predict(np.full((2, 8, 8), np.nan)), "contains NaN", "SimpleImputer"),
    "other columns": (
        lambda: regress(ROWS, VALUES)().predict(ROWS[:, :2]),
        "2 features",
        "the same columns as in fit",
    ),
    "no range": (lambda: FunctionOrbit(lambda x, p: x), "NoneType", "(function, -0.1, 0.1"),
    "one name": (
        lambda: FunctionOrbit(lambda x, p: x, -0.1, 0.1, names="gain"),
        "and str",
        'names=["gain"]',
    ),
    "two names": (
        lambda: FunctionOrbit(lambda x, p: x, -0.1, 0.1, names=["a", "b"]),
        "2 names for 1",
        "give one for each",
    ),
    "no function": (lambda: FunctionOrbit(3, -0.1, 0.1), "got 3", "callable"),
    "not the identity": (by(lambda x, p: x * p), "where all its parameters are 0", "torch.exp"),
    "parameter ignored": (by(lambda x, p: x), "parameter φ1", "use it, or leave it out"),
    "another shape": (by(lambda x, p: x[:, :2]), "into [20, 2]", "keep the shape"),
    "NumPy inside": (
        by(lambda x, p: x * torch.tensor(np.exp(p.numpy()))),
        "numpy()",
        "by torch operations",
    ),
    "array returned": (by(lambda x, p: x.numpy()), "into ndarray", "return a tensor"),
    "no gradient": (by(lambda x, p: x * torch.exp(p.detach())), "cannot differ", "use torch op"),
    "logarithm of 0": (by(lambda x, p: x + p * torch.log(p - p)), "not finite", "a logarithm"),
    "one argument": (by(lambda x: x), "takes 1 positional", "it must take"),
    "wrong broadcast": (by(lambda x, p: x * torch.exp(p[:, 0])), "size of tensor", "any number of"),
    "range reversed": (lambda: UniformRange(0.1, -0.1), "low [0.1], high [-0.1]", "low ≤ 0 ≤ high"),
    "range NaN": (lambda: UniformRange(float("nan"), 0.1), "[nan]", "must be finite"),
    "ends missing": (lambda: UniformRange([-0.1, -0.2], [0.1]), "high=[0.1]", "as many lower as"),
    "range without 0": (lambda: UniformRange(0.1, 0.2), "low [0.1]", "low ≤ 0 ≤ high"),
    "range from 0": (lambda: UniformRange(0.0, 0.2), "exactly 0", "learn_low=False"),
    "degrees": (lambda: Rotation(-30, 30), "-30 … 30", "math.radians"),
    "five of six": (lambda: Affine([-0.1] * 5, [0.1] * 5), "got 5", "rotation, x-scale, y-scale"),
    "no permutation": (lambda: PermutationGroup((0, 1, 1)), "(0, 1, 1)", "every position once"),
    "list of permutations": (
        lambda: PermutationGroup([[0, 1], [1, 0]]),
        "[[0, 1], [1, 0]]",
        "an argument of its own",
    ),
    "short permutation": (
        classify(ROWS, LABELS, PermutationGroup((1, 0))),
        "of shape [3] has 3",
        "move 2 positions",
    ),
    "swap of nothing": (lambda: coordinate_swap(0, 5, 3), "0 and 5", "among 0 … 2"),
    "swap with itself": (lambda: coordinate_swap(1, 1, 3), "1 and 1", "two different"),
    "nothing composed": (compose, "got 0", "at least two orbits"),
    "names composed": (lambda: compose("affine", "mirror"), "'affine'", "make them first"),
    "not square": (
        classify(random.random((20, 6, 8)), LABELS, "quarter-turns"),
        "[6, 8]",
        "square images",
    ),
    "negative noise": (lambda: GaussianNoise(-1.0, event_shape=(3,)), "got -1", "finite and ≥ 0"),
    "shifts of nothing": (lambda: CyclicShifts(0), "0 positions", "divides the length"),
    "no cells": (lambda: OrientedEnergy(cells=0), "(0,)", "2 to 256"),
    "negative length": (lambda: RBF(lengthscale=-1.0), "-1", "positive and finite"),
    "noise of 0": (lambda: Gaussian(noise=0.0), "[0.0]", "above 1e-06"),
    "likelihood of one": (lambda: OneHotGaussian(num_classes=1), "got 1", "at least 2"),
    "too many points": (
        lambda: kmeans_points(X[:5], 9, generator=torch.Generator()),
        "9 inducing points asked of 5",
        "ask for 1 to 5",
    ),
    "few data": (bound(num_data=5), "got 5", "counts all the data"),
    "no generator": (
        bound(orbit=GaussianNoise(0.1, event_shape=(3,)), num_samples=4),
        "are random",
        "generator=torch.Generator()",
    ),
    "pairs missing": (bound(y=Y[:5]), "20 inputs, 5 targets", "must pair up"),
    "array for tensor": (
        lambda: Rotation(-0.1, 0.1).sample(IMAGES, 3, generator=torch.Generator()),
        "ndarray",
        "torch.as_tensor",
    ),
    "no samples": (
        lambda: Rotation(-0.1, 0.1).sample(X[None], 0, generator=torch.Generator()),
        "got 0 samples",
        "at least 1",
    ),
    "no file": (lambda: load("absent.safetensors"), "absent.safetensors", "cannot be opened"),
    "file of others": (load_text, "a.txt", "not a file that orbitgp wrote"),
    "part misspelt": (lambda: load("a.txt", orbits=Identity()), "orbits", "load takes orbit"),
    "save before fit": (
        lambda: save(InvariantGPClassifier(), "model.safetensors"),
        "InvariantGPClassifier()",
        "a fitted estimator",
    ),
    "save to nowhere": (
        lambda: save(InvariantGPClassifier(settings=QUICK).fit(IMAGES, LABELS), "no/model"),
        "no/model",
        "choose a folder that is there",
    ),
    "save of text": (lambda: save("model", "model.safetensors"), "'model'", "a fitted estimator"),
    "other data in a run": (twice_into_one_folder, "different data", "choose another folder"),
    "iterator": (fit_stream(iter([(IMAGES, LABELS)])), "list_iterator", "a list of batches"),
    "empty stream": (fit_stream([]), "no examples", "at least two"),
    "array as stream": (fit_stream(IMAGES), "got ndarray", "expected (x, y)"),
    "no data": (lambda: read_data("nowhere"), "nowhere", "possible are `digits`"),
    "unknown classes": (of_other_classes, "labels 5, 6", "leave them out"),
    "no run": (lambda: write_report("."), "no settings.json", "give the folder"),
}


def test_there_are_enough_cases():
    assert len(MISTAKES) >= 80


@pytest.mark.usefixtures("untyped")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gives_one_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    act, given, remedy = MISTAKES[name]
    with pytest.raises((OrbitGPError, ValueError)) as caught:
        act()
    message = str(caught.value)
    assert given in message, message
    assert remedy in message, message
    assert "\n" not in message
    assert len(message) < 360
