"""Which transformations does the evidence find in real images, and how long does it take?

python -m experiments.discoveries

One result for each data set and seed, as `discovery-DATA-SEED.json`. 1,000 images each, and all 704
galaxies. The features, pixels, oriented edges or patches, are those with the most evidence without
any invariance, as they are by default.
"""

import argparse
import functools
import time
from typing import Any

from experiments.order import load
from experiments.record import RESULTS, record_once
from orbitgp import Discovery, discover
from orbitgp.data.labelled import LabelledData

DATA = ("mirabest", "malaria-1000", "mnist-1000", "fashion-1000")


def discovered(data: LabelledData, seed: int) -> tuple[str, Discovery]:
    """The features with the most evidence, and what is found with them."""
    found = discover(data.x, data.y, random_state=seed, verbose=True)
    evidence = found.estimator.feature_evidence_
    return max(evidence, key=lambda name: evidence[name]), found


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
