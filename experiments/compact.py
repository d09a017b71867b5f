"""What does a smaller predictor cost, and what does it save?

python -m experiments.compact

MNIST with all labels, oriented features, affine transformations and local deformations; then
predictor files that may move predictions of training images by more and more. One result,
`compact-SEED.json`, with a row for each file: its size, milliseconds for an image in batches of
100, test error and test NLL. With `--run` the fit is kept in a folder, and read if it is there.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.data import load_named
from experiments.mnist import BUDGET_SECONDS, subset
from experiments.record import RESULTS, record
from orbitgp import InvariantGPClassifier, OrientedEnergy, export_predictor

TOLERANCES = (None, 0.0003, 0.001, 0.003, 0.01, 0.03)
BATCH = 100


def row(model: Any, tolerance: float | None, folder: Path, data: Any) -> dict[str, Any]:
    """One file, and what it predicts of the test images."""
    start = time.perf_counter()
    path = export_predictor(model, folder / f"{tolerance}.pt2", compact=tolerance, verbose=True)
    seconds = time.perf_counter() - start
    predict: Any = torch.export.load(path).module()
    x, y = torch.from_numpy(data.x_test).float(), data.y_test
    with torch.no_grad():
        predict(x[:BATCH])
        start = time.perf_counter()
        found = torch.cat([predict(part) for part in x.split(BATCH)]).numpy()
    milliseconds = 1000 * (time.perf_counter() - start) / len(x)
    return {
        "compact": tolerance,
        "megabytes": round(path.stat().st_size / 1e6, 1),
        "milliseconds": round(milliseconds, 2),
        "test_error": round(100 * float((found.argmax(1) != y).mean()), 2),
        "test_nll": round(float(-np.log(found[np.arange(len(y)), y]).mean()), 4),
        "seconds_to_export": round(seconds, 1),
    }


def main() -> None:
    """Fit, then a row for each tolerance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-data", type=int, default=60_000)
    parser.add_argument("--budget", type=float, default=BUDGET_SECONDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    data = load_named("mnist")
    model = InvariantGPClassifier(
        "affine+local",
        feature_map=OrientedEnergy(),
        budget_seconds=arguments.budget,
        run=arguments.run,
        random_state=arguments.seed,
        verbose=True,
    ).fit(*subset(data, arguments.num_data, arguments.seed))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for tolerance in TOLERANCES:
            rows.append(row(model, tolerance, Path(folder), data))
            print(rows[-1], flush=True)
    options = f"--num-data {arguments.num_data} --budget {arguments.budget:g}"
    values = {"num_data": arguments.num_data, "num_threads": torch.get_num_threads(), "rows": rows}
    command = f"python -m experiments.compact {options}"
    record(arguments.out, "compact", command, arguments.seed, values)


if __name__ == "__main__":
    main()
