"""`orbitgp ablate`: what each transformation of a run is worth."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orbitgp.cli.bad_input import bad_input
from orbitgp.cli.command import DEVICE, RUN, Argument, Command
from orbitgp.cli.exit_codes import DONE
from orbitgp.cli.output import Output
from orbitgp.cli.reading import DATA, as_fitted, read_labelled
from orbitgp.cli.runs import load_run
from orbitgp.cli.schemas import AblateRecord

ARGUMENTS = (
    RUN,
    *DATA,
    Argument("--num_data", "inputs whose evidence is asked; at most 500 if not given", int),
    Argument("--seed", "of all random draws", int, 0),
    DEVICE,
)


def run(options: Mapping[str, Any], output: Output) -> int:
    """`orbitgp ablate`."""
    from orbitgp.evidence.ablate import ablate

    folder = Path(options["run"])
    estimator = load_run(folder, options["device"])
    how = as_fitted(folder, options["data"], options["target"], options["image_size"])
    data = read_labelled(options["data"], *how)
    keep = {"run": folder if folder.is_dir() else None, "random_state": options["seed"]}
    with bad_input():
        found = ablate(estimator, data.x, data.y, num_data=options["num_data"], **keep)
    worths: list[Any] = found.records()
    record: AblateRecord = {
        "schema": "orbitgp.ablate/1",
        "run": str(folder),
        "data": options["data"],
        "num_data": found.num_data,
        "evidence_kind": found.kind,
        "worths": worths,
    }
    lines = [*map(str, found.worths)] or [str(found)]
    output.show(record, "\n".join([*lines, f"next: orbitgp report {folder}"]))
    return DONE


ABLATE = Command("ablate", "say what each transformation of a run is worth", ARGUMENTS, run)
