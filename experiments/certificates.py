"""Which pair of digits does a rotation by any angle endanger most?

python -m experiments.certificates

1,000 MNIST digits, no invariance, 300 test digits; one result for each kind of features and seed,
as `certificate-FEATURES-SEED.json`.
"""

import argparse
from typing import Any

from experiments.order import load
from experiments.record import RESULTS, record
from orbitgp import InvariantGPClassifier, OrientedEnergy, Rotation, certificate

NUM_TEST = 300


def run(features: str, seed: int) -> dict[str, Any]:
    """The pairs, the most endangered first."""
    data = load("mnist-1000", seed)
    assert data.x_test is not None
    assert data.y_test is not None
    feature_map = OrientedEnergy() if features == "oriented" else None
    model = InvariantGPClassifier(feature_map=feature_map, random_state=seed)
    model.fit(data.x, data.y)
    test = data.x_test[:NUM_TEST], data.y_test[:NUM_TEST]
    found = certificate(model, *test, orbit=Rotation.full(), random_state=seed)
    return {
        "features": features,
        "deviation": found.deviation,
        "first": found.dangers[0].pair,
        "pairs": found.records()[:10],
    }


def main() -> None:
    """All kinds of features and seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", nargs="*", default=["pixels", "oriented"])
    parser.add_argument("--seed", nargs="*", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    for features in arguments.features:
        for seed in arguments.seed:
            values = run(features, seed)
            print(
                features,
                seed,
                [(p["pair"], round(p["probability"], 3)) for p in values["pairs"][:3]],
            )
            command = f"python -m experiments.certificates --features {features}"
            record(RESULTS, f"certificate-{features}", command, seed, values)


if __name__ == "__main__":
    main()
