"""`orbitgp evaluate`: metrics of a run on labelled data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orbitgp.cli.bad_input import bad_input
from orbitgp.cli.command import DEVICE, RUN, Argument, Command
from orbitgp.cli.exit_codes import DONE
from orbitgp.cli.learned import scores_part, scores_text, task_of
from orbitgp.cli.output import Output, table
from orbitgp.cli.reading import DATA, as_fitted, files_of, part_of, read_labelled
from orbitgp.cli.runs import load_run
from orbitgp.cli.schemas import EvaluateRecord

SPLIT = Argument(
    "--split",
    "part of the source; if not given, its test part, or all of it if it has none",
    choices=("test", "train"),
)


def run(options: Mapping[str, Any], output: Output) -> int:
    """`orbitgp evaluate`."""
    from orbitgp.scores import evaluate, write_test

    folder = Path(options["run"])
    estimator = load_run(folder, options["device"])
    how = as_fitted(folder, options["data"], options["target"], options["image_size"])
    x, y, part = part_of(read_labelled(options["data"], *how), options["split"], options["data"])
    with bad_input():
        result = evaluate(estimator, x, y, files=files_of(options["data"], part, len(x)))
    file = folder / "test.safetensors" if folder.is_dir() else None
    if file is not None:
        write_test(result, file)
    record: EvaluateRecord = {
        "schema": "orbitgp.evaluate/1",
        "run": str(folder),
        "data": options["data"],
        "part": part,
        "task": task_of(estimator),
        "test_file": None if file is None else str(file),
        **scores_part(result),
    }
    rows = {"data": f"{record['data']} ({part})", "test": scores_text(record)}
    if file is not None:
        rows |= {"file": str(file), "next": f"orbitgp report {folder}"}
    output.show(record, table(rows))
    return DONE


EVALUATE = Command(
    "evaluate", "metrics of a run on labelled data", (RUN, *DATA, SPLIT, DEVICE), run
)
