"""Which transformations does the evidence find in real images, and how long does it take?

python -m experiments.discoveries

One result for each data set and seed, as `discovery-DATA-SEED.json`. 1,000 images each, and all 704
galaxies. The features, pixels or oriented edges, are those with more evidence without any
invariance.
"""

import argparse
import functools
import time
from typing import Any

import joblib

from experiments.order import load
from experiments.record import RESULTS, record_once
from orbitgp import Discovery, InvariantGPClassifier, OrientedEnergy, compare, discover
from orbitgp.data.labelled import LabelledData

DATA = ("mirabest", "malaria-1000", "mnist-1000", "fashion-1000")
FEATURES: dict[str, dict[str, Any]] = {
    "pixels": {"orbit": "none"},
    "oriented": {"orbit": "none", "feature_map": OrientedEnergy()},
}


def discovered(data: LabelledData, seed: int) -> tuple[str, Discovery]:
    """The features with more evidence, and what is found with them."""
    here = joblib.Parallel(1)
    features = compare(FEATURES, data.x, data.y, random_state=seed, executor=here).best.name
    estimator = InvariantGPClassifier(**FEATURES[features])
    return features, discover(data.x, data.y, estimator=estimator, random_state=seed, verbose=True)


def run(name: str, seed: int) -> dict[str, Any]:
    """All that was found, and the seconds that it took."""
    data, start = load(name, seed), time.perf_counter()
    features, found = discovered(data, seed)
    return {
        "data": name,
        "features": features,
        "num_data": found.num_data,
        "found": found.names,
        "nats": found.gain,
        "evidence_kind": found.estimator.evidence_kind_,
        "learned": found.estimator.orbit_.describe(),
        "path": found.records(),
        "worths": found.ablation.records(),
        "sentence": found.sentence,
        "seconds": round(time.perf_counter() - start, 1),
    }


def main() -> None:
    """All data sets that were chosen, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=list(DATA))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        for name in arguments.data:
            command = f"python -m experiments.discoveries --data {name}"
            find = functools.partial(run, name, seed)
            record_once(RESULTS, f"discovery-{name}", command, seed, find)


if __name__ == "__main__":
    main()
