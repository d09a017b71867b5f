"""`orbitgp compare`: which orbit and which features explain the labels best."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbitgp.cli.bad_input import bad_input
from orbitgp.cli.command import BUDGET, DEVICE, Argument, Command
from orbitgp.cli.exit_codes import DONE
from orbitgp.cli.fit import FEATURES, ORBITS, TASK, check_features, feature_map_of
from orbitgp.cli.options import pair
from orbitgp.cli.output import Output
from orbitgp.cli.reading import DATA, read_labelled
from orbitgp.cli.schemas import CandidatePart, CompareRecord
from orbitgp.errors import InputError

if TYPE_CHECKING:
    from orbitgp.evidence.comparison import Comparison

ARGUMENTS = (
    *DATA,
    Argument("--out", "folder with a run for each candidate", required=True, path=True),
    Argument("--orbits", "changes to compare", choices=ORBITS, nargs="+", default=list(ORBITS[:4])),
    Argument(
        "--features",
        "what the kernel compares; each of them with each orbit",
        choices=FEATURES,
        nargs="+",
        default=["auto"],
    ),
    TASK,
    BUDGET,
    DEVICE,
    Argument("--seed", "of all random draws", int, 0),
    Argument(
        "--trial_index",
        "fit this candidate only, counted from 0, for one job of an array; without it, all that "
        "are still to be fitted, and the table",
        int,
    ),
)


def run(options: Mapping[str, Any], output: Output) -> int:
    """`orbitgp compare`."""
    from orbitgp.cli.task import decide
    from orbitgp.evidence.compare import compare, trials_of
    from orbitgp.evidence.comparison import Comparison

    data = read_labelled(options["data"], options["target"], pair(options["image_size"]))
    for features in options["features"]:
        check_features(features, options["data"], data)
    decision = decide(data.y, options["task"])
    output.say(f"{decision.task}: {decision.reason}")
    estimator = estimator_for(
        decision.task, budget_seconds=options["budget_seconds"], device=options["device"]
    )
    candidates, place = candidates_of(options), options["trial_index"]
    parts = {"estimator": estimator, "run": options["out"], "random_state": options["seed"]}
    with bad_input():
        if place is None:
            verbose = not output.as_json
            found = compare(candidates, data.x, data.y, verbose=verbose, **parts)
        else:
            check_index(place, list(candidates))
            trials = trials_of(candidates, data.x, data.y, **parts)
            found = Comparison([trials[place].run()[0]], len(data.x))
    record: CompareRecord = {
        "schema": "orbitgp.compare/1",
        "run": str(Path(options["out"])),
        "task": decision.task,
        "num_data": len(data.x),
        "candidates": parts_of(found),
        "warnings": output.warned,
    }
    output.show(record, str(found))
    return DONE


def estimator_for(task: str, **parameters: Any) -> Any:
    """A classifier or a regressor."""
    from orbitgp.estimators import InvariantGPClassifier, InvariantGPRegressor

    kind = InvariantGPClassifier if task == "classification" else InvariantGPRegressor
    return kind(**parameters)


def candidates_of(options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Each orbit with each kind of features, by name."""
    several = len(options["features"]) > 1
    return {
        f"{orbit}, {features}" if several else orbit: {
            "orbit": orbit,
            "feature_map": feature_map_of(features),
        }
        for features in options["features"]
        for orbit in options["orbits"]
    }


def check_index(place: int, names: list[str]) -> None:
    """A job of an array that is larger than the list has nothing to do."""
    if not 0 <= place < len(names):
        listed = ", ".join(f"{number} {name}" for number, name in enumerate(names))
        raise InputError(f"--trial_index is 0 to {len(names) - 1} ({listed}); got {place}")


def parts_of(found: "Comparison") -> list[CandidatePart]:
    """The candidates as JSON has them."""
    return [
        {
            "name": row["name"],
            "evidence": row["evidence"],
            "evidence_error": row["evidence_error"],
            "kind": row["kind"],
            "likelihood": row["likelihood"],
            "difference": row["difference"],
            "difference_error": row["difference_error"],
            "difference_by_size": {str(n): gap for n, gap in row["difference_by_size"].items()},
            "learned": row["learned"],
            "ranges": list(row["ranges"]),
            "seconds": row["seconds"],
        }
        for row in found.records()
    ]


COMPARE = Command("compare", "rank orbits and features by their evidence", ARGUMENTS, run)
