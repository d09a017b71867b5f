"""Which transformations does the evidence find in real images, and how long does it take?

python -m experiments.discoveries

One result for each data set and seed, as `discovery-DATA-SEED.json`, with the defaults of
`orbitgp.discover`. 1,000 images each, and all 704 galaxies.
"""

import argparse
from typing import Any

from experiments.order import load
from experiments.record import RESULTS, record
from orbitgp import discover

DATA = ("mirabest", "malaria-1000", "mnist-1000", "fashion-1000")


def run(name: str, seed: int) -> dict[str, Any]:
    """All that was found, and the seconds that it took."""
    data = load(name, seed)
    found = discover(data.x, data.y, random_state=seed, verbose=True)
    return {
        "data": name,
        "num_data": found.num_data,
        "found": found.names,
        "nats": found.gain,
        "evidence_kind": found.estimator.evidence_kind_,
        "learned": found.estimator.orbit_.describe(),
        "path": found.records(),
        "worths": found.ablation.records(),
        "sentence": found.sentence,
        "seconds": found.seconds,
    }


def main() -> None:
    """All data sets that were chosen, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=list(DATA))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for name in arguments.data:
        values = run(name, arguments.seed)
        print(values["sentence"], values["seconds"], flush=True)
        command = f"python -m experiments.discoveries --data {name}"
        record(RESULTS, f"discovery-{name}", command, arguments.seed, values)


if __name__ == "__main__":
    main()
