"""Figure 5 of the paper: digits at any angle, with learned and with fixed rotations.

python -m experiments.rotated

Each seed draws 2,000 training digits of `mnist-rot-standin`, which was made from MNIST: its errors
must not be compared with those that were published for other rotated digits. One result for each
model and seed, as `rotated-MODEL-SEED.json`; those that were recorded at the same commit are not
run again. In the paper, models that learn their rotations stay behind the one with fixed ones.
"""

import argparse
import functools
import math
import time
from typing import Any

import numpy as np

from experiments.data import load_named
from experiments.order import drawn
from experiments.record import RESULTS, record_once
from orbitgp import InvariantGPClassifier, Orbit, Rotation

NUM_DATA = 2000


def learned(degrees: float) -> Rotation:
    """A rotation whose range is learned from this start."""
    return Rotation(-math.radians(degrees), math.radians(degrees))


MODELS: dict[str, str | Orbit] = {
    "none": "none",
    "rotation-from-10": learned(10),
    "rotation-from-90": learned(90),
    "rotation-from-179": learned(179),
    "affine": "affine",
    "fixed-rotation": Rotation.full(),
}
"""What is fitted."""


def run(name: str, seed: int) -> dict[str, Any]:
    """Fit with the defaults, then look at the test set once."""
    data = drawn(load_named("mnist-rot-standin"), NUM_DATA, seed)
    assert data.x_test is not None
    assert data.y_test is not None
    start = time.monotonic()
    model = InvariantGPClassifier(MODELS[name], feature_map=None, random_state=seed)
    model.fit(data.x, data.y)
    seconds = time.monotonic() - start
    probabilities = model.predict_proba(data.x_test)
    labels = np.searchsorted(model.classes_, data.y_test)
    return {
        "model": name,
        "num_data": len(data.x),
        "num_draws": model.num_draws_,
        "evidence": model.evidence_,
        "evidence_error": model.evidence_error_,
        "evidence_kind": model.evidence_kind_,
        "learned": model.orbit_.describe(),
        "test_error": round(100 * float((probabilities.argmax(1) != labels).mean()), 2),
        "test_nll": float(-np.log(probabilities[np.arange(len(labels)), labels]).mean()),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    """All models and seeds that were chosen, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", nargs="*", default=list(MODELS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        for name in arguments.model:
            command = f"python -m experiments.rotated --model {name}"
            fit = functools.partial(run, name, seed)
            record_once(RESULTS, f"rotated-{name}", command, seed, fit)


if __name__ == "__main__":
    main()
