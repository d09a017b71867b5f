"""`orbitgp discover`: which transformations leave the labels unchanged."""

from collections.abc import Mapping
from typing import Any

from orbitgp.cli.bad_input import bad_input
from orbitgp.cli.command import BUDGET, DEVICE, Argument, Command
from orbitgp.cli.compare import estimator_for
from orbitgp.cli.exit_codes import DONE
from orbitgp.cli.fit import FEATURES, TASK, check_features, feature_map_of
from orbitgp.cli.options import pair
from orbitgp.cli.output import Output
from orbitgp.cli.reading import DATA, read_labelled
from orbitgp.cli.schemas import DiscoverRecord

ARGUMENTS = (
    *DATA,
    Argument("--out", "folder for the runs of models", required=True, path=True),
    Argument(
        "--features",
        "what the kernel compares; auto takes what has the most evidence without an orbit",
        choices=FEATURES,
        default="auto",
    ),
    Argument(
        "--kind",
        "what inputs are; auto knows images and short rows of numbers by their shape",
        choices=("auto", "images", "series", "points", "vectors"),
        default="auto",
    ),
    TASK,
    BUDGET,
    DEVICE,
    Argument("--seed", "of all random draws", int, 0),
)


def run(options: Mapping[str, Any], output: Output) -> int:
    """`orbitgp discover`."""
    from orbitgp.cli.task import decide
    from orbitgp.evidence.discover import discover

    data = read_labelled(options["data"], options["target"], pair(options["image_size"]))
    check_features(options["features"], options["data"], data)
    decision = decide(data.y, options["task"])
    output.say(f"{decision.task}: {decision.reason}")
    estimator = estimator_for(
        decision.task,
        budget_seconds=options["budget_seconds"],
        device=options["device"],
        feature_map=feature_map_of(options["features"]),
    )
    with bad_input():
        found = discover(
            data.x,
            data.y,
            estimator=estimator,
            kind=None if options["kind"] == "auto" else options["kind"],
            run=options["out"],
            random_state=options["seed"],
            verbose=not output.as_json,
        )
    worths: list[Any] = found.ablation.records()
    record: DiscoverRecord = {
        "schema": "orbitgp.discover/1",
        "run": str(found.estimator.run),
        "task": decision.task,
        "num_data": found.num_data,
        "names": found.names,
        "gain": found.gain,
        "none": found.none,
        "evidence_kind": found.estimator.evidence_kind_,
        "learned": found.estimator.orbit_.describe(),
        "path": [
            {"name": step.name, "width": step.width, "gain": step.gain, "taken": step.taken}
            for step in found.path
        ],
        "worths": worths,
        "sentence": found.sentence,
        "seconds": found.seconds,
        "warnings": output.warned,
    }
    output.show(record, f"{found.sentence}\nnext: orbitgp report {found.estimator.run}")
    return DONE


DISCOVER = Command(
    "discover", "find the transformations that leave labels unchanged", ARGUMENTS, run
)
