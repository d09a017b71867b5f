"""Handwritten digits with and without a learned affine invariance, by the five lines of the README.

python -m experiments.usps --orbit affine --seed 0
"""

import argparse
import time
from pathlib import Path

import numpy as np

from experiments.data import load_named
from experiments.record import RESULTS, record
from orbitgp import InvariantGPClassifier
from orbitgp.scores import calibration_error


def main() -> None:
    """Fit on the training digits, look once at the test digits, write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orbit", default="affine")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    data, start = load_named("usps"), time.monotonic()
    model = InvariantGPClassifier(
        arguments.orbit, feature_map=None, random_state=arguments.seed, verbose=True
    )
    model.fit(data.x, data.y)
    seconds = time.monotonic() - start
    probabilities = model.predict_proba(data.x_test)
    right = model.classes_[probabilities.argmax(1)] == data.y_test
    truth = probabilities[np.arange(len(right)), data.y_test]
    values = {
        "orbit": arguments.orbit,
        "test_error": round(100 * float(1 - right.mean()), 2),
        "test_nll": round(float(-np.log(truth).mean()), 4),
        "test_ece": round(calibration_error(probabilities, right), 4),
        "evidence": round(model.evidence_, 1),
        "evidence_standard_error": round(model.evidence_error_, 1),
        "learned": model.orbit_.describe(),
        "evidence_kind": model.evidence_kind_,
        "num_draws": model.num_draws_,
        "seconds": round(seconds, 1),
    }
    print(values)
    orbit, command = arguments.orbit, f"python -m experiments.usps --orbit {arguments.orbit}"
    record(arguments.out, f"usps-{orbit}", command, arguments.seed, values)


if __name__ == "__main__":
    main()
