"""orbitgp with its defaults: the orbit is chosen from the training data alone."""

import tempfile
from pathlib import Path
from typing import Any

import joblib
from torch import nn

import orbitgp
from experiments.prediction import Prediction, of_probabilities, scores
from experiments.splits import Split
from orbitgp import (
    InvariantGPClassifier,
    InvariantGPRegressor,
    RandomOrder,
    TimeWarp,
    compare,
    discover,
)

SPREADS = (0.003, 0.01)
"""Of norms of rows of Coulomb matrices whose largest value is 1: about 1 and 4 before that."""


def ours(split: Split, *, seed: int) -> Prediction:
    """`discover` for images, the best of some candidates by `compare` for all others."""
    if split.source.kind in ("images", "photographs"):
        return discovered(split, InvariantGPClassifier(random_state=seed), seed)
    return compared(split, candidates(split), estimator_for(split, seed=seed), seed)


def ours_none(split: Split, *, seed: int) -> Prediction:
    """The same model without any orbit."""
    model = estimator_for(split, seed=seed).fit(split.x, split.y)
    return predicted(model, split, evidence={"none": float(model.evidence_)})


def estimator_for(split: Split, **options: Any) -> Any:
    """For classes or numbers; `seed` is its random state."""
    seed = options.pop("seed")
    if split.source.kind == "molecules":  # their matrices are no pictures
        return InvariantGPRegressor(random_state=seed, feature_map=None, **options)
    return InvariantGPClassifier(random_state=seed, **options)


def candidates(split: Split) -> dict[str, Any]:
    """The orbits that series and Coulomb matrices are asked for."""
    length = split.x.shape[-1]
    if split.source.kind == "molecules":
        return {
            "none": "none",
            **{f"order-{s}": RandomOrder(length, spread=s, pairs=True) for s in SPREADS},
            "any-order": RandomOrder(length, pairs=True),
        }
    names = ("none", "time-shift", "cyclic-shift")
    warps = {"time-warp": TimeWarp(length), "warp+shift": "time-warp"}
    return {**{name: name for name in names}, **warps}


def discovered(split: Split, estimator: Any, seed: int) -> Prediction:
    """What the evidence finds in images, beside no invariance."""
    kind, given = "images", {"estimator": estimator, "random_state": seed}
    found = discover(split.x, split.y, kind=kind, **given)
    evidence = {"none": found.none}
    if found.names:
        evidence["found"] = float(found.estimator.evidence_)
    return predicted(found.estimator, split, found=found.names, evidence=evidence)


def compared(split: Split, orbits: dict[str, Any], estimator: Any, seed: int) -> Prediction:
    """The orbit with the most evidence; the test scores of all of them are kept for the record."""
    with tempfile.TemporaryDirectory() as folder:
        given = {"estimator": estimator, "random_state": seed, "run": folder}
        found = compare(orbits, split.x, split.y, executor=joblib.Parallel(1), **given)
        features = estimator.feature_map
        parts: Any = {"feature_map": features} if isinstance(features, nn.Module) else {}
        names = [finding.name for finding in found.findings]
        all_of = {
            name: predicted(orbitgp.load(Path(folder) / name, **parts), split) for name in names
        }
    about = {
        "best": found.best.name,
        "evidence": {finding.name: finding.evidence for finding in found.findings},
        "candidates": {name: scores(one, split.y_test) for name, one in all_of.items()},
    }
    best = all_of[found.best.name]
    return best._replace(about={**best.about, **about})


def predicted(model: Any, split: Split, **about: Any) -> Prediction:
    """What a fitted estimator says of the test inputs."""
    about = {"chosen": model.orbit_.describe(), **about}
    if split.num_classes:
        return of_probabilities(model.predict_proba(split.x_test), **about)
    means, deviations = model.predict(split.x_test, return_std=True)
    return Prediction(means, deviations, about)
