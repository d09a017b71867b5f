"""Every odd input is a clear ValueError before any training, or a finite and sensible result."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from torch import nn

from orbitgp import Affine, InvariantGPClassifier, InvariantGPRegressor, Rotation
from orbitgp.callbacks.base import Callback
from tests.conftest import QUICK

N = 12


class Spy(Callback):
    """Whether any training was begun."""

    def __init__(self):
        self.begun = False

    def started(self, max_steps):
        self.begun = True


def vectors():
    return np.random.default_rng(0).normal(size=(N, 3))


def with_value(value, place=(4, 1)):
    X = vectors()
    X[place] = value
    return X


def column(values):
    X = vectors()
    X[:, 1] = values
    return X


VECTORS = {
    "plain": vectors(),
    "nan": with_value(np.nan),
    "all nan": np.full((N, 3), np.nan),
    "inf": with_value(np.inf),
    "minus inf": with_value(-np.inf),
    "no rows": vectors()[:0],
    "one row": vectors()[:1],
    "two rows": vectors()[:2],
    "no features": vectors()[:, :0],
    "one feature": vectors()[:, :1],
    "constant": np.ones((N, 3)),
    "zeros": np.zeros((N, 3)),
    "constant column": column(7.0),
    "large constant column": column(1e12),
    "duplicates": np.repeat(vectors()[:2], N // 2, 0),
    "int8": (10 * vectors()).astype(np.int8),
    "uint8": np.abs(60 * vectors()).astype(np.uint8),
    "uint8 full": np.full((N, 3), 255, np.uint8),
    "uint64": np.abs(1e18 * vectors()).astype(np.uint64),
    "int64": (1e18 * vectors()).astype(np.int64),
    "bool": vectors() > 0,
    "float16": vectors().astype(np.float16),
    "float32": vectors().astype(np.float32),
    "longdouble": vectors().astype(np.longdouble),
    "complex": vectors() + 1j,
    "strings": vectors().astype(str),
    "words": np.full((N, 3), "a"),
    "objects": vectors().astype(object),
    "none inside": np.where(vectors() > 1, None, vectors()),
    "dates": vectors().astype("datetime64[s]"),
    "list": vectors().tolist(),
    "ragged": [[1.0] * (i % 3) for i in range(N)],
    "frame": pd.DataFrame(vectors(), columns=list("abc")),
    "mixed frame": pd.DataFrame({"a": range(N), "b": [0.5] * N, "c": [True, False] * (N // 2)}),
    "text frame": pd.DataFrame({"a": ["x"] * N}),
    "sparse": scipy.sparse.csr_array(vectors()),
    "flat": vectors()[:, 0],
    "scalar": np.float64(1.0),
    "nothing": None,
    "text": "X",
    "1e-12": 1e-12 * vectors(),
    "1e12": 1e12 * vectors(),
    "1e-300": 1e-300 * vectors(),
    "1e300": 1e300 * vectors(),
    "subnormal": np.full((N, 3), 5e-324),
    "columns of all scales": vectors() * [1e-12, 1.0, 1e12],
    "offset": 1e8 + vectors(),
    "one outlier": with_value(1e10),
    "negative": -np.abs(vectors()),
    "fortran": np.asfortranarray(vectors()),
    "reversed": vectors()[::-1],
    "read only": (lambda X: (X.setflags(write=False), X)[1])(vectors()),
}


def images(*shape):
    return np.random.default_rng(1).random((N, *shape))


IMAGES = {
    "plain": images(6, 6),
    "channels": images(2, 6, 6),
    "tall": images(8, 5),
    "one pixel": images(1, 1),
    "one row of pixels": images(1, 6),
    "one channel pixel": images(1, 1, 1),
    "no pixels": images(0, 6),
    "five axes": images(2, 2, 6, 6),
    "black": np.zeros((N, 6, 6)),
    "white": np.full((N, 6, 6), 255, np.uint8),
    "uint8": (255 * images(6, 6)).astype(np.uint8),
    "nan": np.where(images(6, 6) > 0.9, np.nan, images(6, 6)),
    "1e12": 1e12 * images(6, 6),
    "1e-12": 1e-12 * images(6, 6),
    "flat": images(36),
}

ORBITS = ["none", "rotation", "dihedral", Affine(-0.3, 0.3)]

LABELS = {
    "too few": np.arange(N - 1) % 2,
    "too many": np.arange(N + 1) % 2,
    "none": None,
    "empty": np.zeros(0),
    "one class": np.zeros(N),
    "all different": np.arange(N),
    "strings": np.array(["a", "b", "c"] * (N // 3)),
    "text and numbers": np.array(["a", 1] * (N // 2), dtype=object),
    "bool": np.arange(N) % 2 == 0,
    "negative": -(np.arange(N) % 3),
    "huge": (np.arange(N) % 2) * 2**60,
    "nan": np.where(np.arange(N) == 3, np.nan, np.arange(N) % 2),
    "inf": np.where(np.arange(N) == 3, np.inf, np.arange(N) % 2),
    "real": np.random.default_rng(2).normal(size=N),
    "two columns": np.random.default_rng(2).normal(size=(N, 2)),
    "three axes": np.zeros((N, 2, 2)),
    "column": np.arange(N).reshape(-1, 1) % 2,
    "1e12": 1e12 * np.random.default_rng(2).normal(size=N),
    "1e-12": 1e-12 * np.random.default_rng(2).normal(size=N),
    "1e300": 1e300 * np.random.default_rng(2).normal(size=N),
    "constant far away": np.full(N, 1e9),
    "offset": 1e9 + np.random.default_rng(2).normal(size=N),
    "list": [0, 1] * (N // 2),
    "series": pd.Series([0, 1] * (N // 2)),
    "categories": pd.Series(["a", "b"] * (N // 2), dtype="category"),
    "complex": np.arange(N) + 1j,
}

PARAMETERS = [
    {"num_inducing": 0},
    {"num_inducing": -3},
    {"num_inducing": 1},
    {"num_inducing": 10**9},
    {"num_inducing": "many"},
    {"num_inducing": 2.5},
    {"budget_seconds": 0.0},
    {"budget_seconds": -1.0},
    {"budget_seconds": float("nan")},
    {"budget_seconds": float("inf")},
    {"budget_seconds": "long"},
    {"budget_seconds": 1e-9},
    {"orbit": "affin"},
    {"orbit": None},
    {"orbit": 3},
    {"orbit": ["affine"]},
    {"orbit": Rotation},
    {"orbit": "affine"},
    {"image_shape": (3,)},
    {"image_shape": (1, 3)},
    {"image_shape": (2, 3)},
    {"image_shape": (-1, -3)},
    {"image_shape": (0, 3)},
    {"image_shape": "3x1"},
    {"image_shape": 3},
    {"settings": {"max_steps": 3}},
    {"random_state": "seed"},
    {"random_state": -1},
    {"random_state": np.random.RandomState(0)},
    {"feature_map": len},
    {"feature_map": nn.Flatten()},
    {"callbacks": [print]},
]

ESTIMATORS = [InvariantGPClassifier, InvariantGPRegressor]


def targets(estimator, num_data):
    if estimator is InvariantGPClassifier:
        return np.arange(num_data) % 2
    return np.random.default_rng(3).normal(size=num_data)


def length(X):
    return len(X) if hasattr(X, "__len__") and not scipy.sparse.issparse(X) else N


CASES = [
    *(
        (e, X, None, {}, f"X {name}")
        for e, (name, X) in itertools.product(ESTIMATORS, VECTORS.items())
    ),
    *(
        (e, None, y, {}, f"y {name}")
        for e, (name, y) in itertools.product(ESTIMATORS, LABELS.items())
    ),
    *(
        (e, X, None, {"orbit": orbit}, f"{orbit if isinstance(orbit, str) else 'own'} {name}")
        for e, orbit, (name, X) in itertools.product(ESTIMATORS, ORBITS, IMAGES.items())
    ),
    *(
        (e, None, None, parameters, f"{next(iter(parameters))} {number}")
        for e, (number, parameters) in itertools.product(ESTIMATORS, enumerate(PARAMETERS))
    ),
]


def test_there_are_enough_cases():
    assert len(CASES) >= 300


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].__name__} {case[-1]}")
def test_odd_inputs(case):
    estimator, X, y, parameters, name = case
    X = vectors() if X is None and name != "X nothing" else X
    y = targets(estimator, length(X)) if y is None and name != "y none" else y
    spy = Spy()
    model = estimator(settings=QUICK, random_state=0, callbacks=[spy])
    model.set_params(**parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a model that found nothing in noise
        refusal = None
        try:
            model.fit(X, y)
        except ValueError as error:
            refusal = str(error)
        if refusal is None:
            check_result(model, X, y)
        else:
            assert not spy.begun, f"refused only after training had begun: {refusal}"
            assert len(refusal) > 15


def check_result(model, X, y):
    if isinstance(model, InvariantGPClassifier):
        probabilities = model.predict_proba(X)
        assert np.isfinite(probabilities).all()
        np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-6)
        assert set(model.predict(X)) <= set(np.asarray(y).ravel())
    else:
        mean, deviation = model.predict(X, return_std=True)
        values = np.asarray(y, dtype=float)
        assert np.isfinite(mean).all()
        assert np.isfinite(deviation).all()
        assert (deviation >= 0).all()
        reach = 3 * (values.max() - values.min()) + 1e-6 * np.abs(values).max() + 1e-9
        assert mean.shape == values.shape
        assert (mean >= values.min() - reach).all()
        assert (mean <= values.max() + reach).all()
    assert np.isfinite(model.evidence_)
    assert np.isfinite(model.evidence_error_)
