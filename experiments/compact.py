"""What does a smaller predictor cost, and what does it save?

python -m experiments.compact

MNIST with all labels, oriented features, affine transformations and local deformations; then
predictors of more and more averages, among which `export_predictor(…, compact=)` takes the first
that is good enough. One result, `compact-SEED.json`, with a row for each: its size, milliseconds
for an image in batches of 100, how far it moves predictions of training images, test error and
test NLL. With `--run` the fit is kept in a folder, and read if it is there.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.data import load_named
from experiments.mnist import BUDGET_SECONDS, subset
from experiments.record import RESULTS, record
from orbitgp import InvariantGPClassifier, OrientedEnergy
from orbitgp.export.compact import Compaction, moved, predictions
from orbitgp.export.export_predictor import describing
from orbitgp.export.graphs import exported, pt2_bytes
from orbitgp.export.predictor import Predictor, sums_of

SIZES = (512, 1024, 2048, 4096, 8192, 16_384)
BATCH = 100


def row(model: Any, predictor: Predictor, data: Any) -> dict[str, Any]:
    """The file of one predictor, and what it predicts of the test images."""
    program = exported(predictor, predictor.num_values)
    size = len(pt2_bytes(program, describing(model)))
    predict: Any = program.module()
    x, y = torch.from_numpy(data.x_test).float(), data.y_test
    with torch.no_grad():
        predict(x[:BATCH])
        start = time.perf_counter()
        found = torch.cat([predict(part) for part in x.split(BATCH)]).numpy()
    milliseconds = 1000 * (time.perf_counter() - start) / len(x)
    return {
        "averages": len(predictor.weights),
        "megabytes": round(size / 1e6, 1),
        "milliseconds": round(milliseconds, 2),
        "test_error": round(100 * float((found.argmax(1) != y).mean()), 2),
        "test_nll": round(float(-np.log(found[np.arange(len(y)), y]).mean()), 4),
    }


def rows_of(model: Any, data: Any) -> list[dict[str, Any]]:
    """The whole predictor, then smaller ones."""
    sums = sums_of(model.model_)
    whole = Predictor(model, sums)
    rows = [{**row(model, whole, data), "moved": 0.0}]
    print(rows[-1], flush=True)
    compaction = Compaction(model.model_.kernel, sums)
    expected = predictions(whole, compaction.checked)
    for size in SIZES:
        if size > compaction.most:
            break
        small = Predictor(model, compaction.sums(size))
        gap = moved(expected, predictions(small, compaction.checked))
        rows.append({**row(model, small, data), "moved": gap})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Fit, then a row for each size."""
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
    rows = rows_of(model, data)
    options = f"--num-data {arguments.num_data} --budget {arguments.budget:g}"
    values = {"num_data": arguments.num_data, "num_threads": torch.get_num_threads(), "rows": rows}
    command = f"python -m experiments.compact {options}"
    record(arguments.out, "compact", command, arguments.seed, values)


if __name__ == "__main__":
    main()
