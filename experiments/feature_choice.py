"""Are the features with the most evidence those with the least test error?

python -m experiments.feature_choice

1,000 images of each data set of the benchmarks, and all 704 galaxies, without an orbit: fits with
pixels, oriented edges and patches, and with the default, which takes of these the features with the
most evidence of 500 images. The test images are looked at once, at the end of each fit.
"""

import argparse
import functools
import time
from pathlib import Path
from typing import Any

from experiments.prediction import of_probabilities, scores
from experiments.record import RESULTS, record_once
from experiments.splits import IMAGES, load
from orbitgp import InvariantGPClassifier

SIZE = 1000
NAMES = tuple(source.name for source in IMAGES)
FEATURES = {"default": "auto", "pixels": None, "oriented": "oriented", "patches": "patches"}


def run(name: str, features: str, seed: int) -> dict[str, Any]:
    """One fit."""
    source = next(source for source in IMAGES if source.name == name)
    split, start = load(source, min(SIZE, source.num_train), seed), time.perf_counter()
    model = InvariantGPClassifier("none", feature_map=FEATURES[features], random_state=seed)
    probabilities = model.fit(split.x, split.y).predict_proba(split.x_test)
    compared = model.feature_evidence_
    return {
        "data": name,
        "features": features,
        "num_train": len(split.x),
        "chosen": max(compared, key=lambda each: compared[each]) if compared else features,
        "evidence": round(model.evidence_, 1),
        **scores(of_probabilities(probabilities), split.y_test),
        "seconds": round(time.perf_counter() - start, 1),
    }


def main() -> None:
    """All data sets that were chosen, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", choices=NAMES, default=list(NAMES))
    parser.add_argument("--features", nargs="*", choices=FEATURES, default=list(FEATURES))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    for seed in given.seeds:
        for name in given.data:
            for features in given.features:
                options = f"--data {name} --features {features}"
                command = f"python -m experiments.feature_choice {options}"
                fit = functools.partial(run, name, features, seed)
                record_once(given.out, f"choice-{name}-{features}", command, seed, fit)


if __name__ == "__main__":
    main()
