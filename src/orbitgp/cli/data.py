"""`orbitgp check-data`: what a fit would read, without learning anything."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orbitgp.cli.command import Command
from orbitgp.cli.exit_codes import DONE
from orbitgp.cli.options import pair
from orbitgp.cli.output import Output, table
from orbitgp.cli.reading import DATA, read_labelled
from orbitgp.cli.schemas import CheckDataRecord

if TYPE_CHECKING:
    from orbitgp.data.labelled import LabelledData

MOST_SHOWN = 20
"""Classes that are listed for people."""


def run(options: Mapping[str, Any], output: Output) -> int:
    """`orbitgp check-data`."""
    size = pair(options["image_size"])
    record = checked(options["data"], read_labelled(options["data"], options["target"], size))
    output.show(record, summary(record))
    return DONE


def checked(source: str, data: "LabelledData") -> CheckDataRecord:
    """Sizes, values and labels of some data."""
    from orbitgp.cli.task import decide

    decision = decide(data.y, "auto")
    classes = Counter(map(str, data.y.tolist())) if decision.task == "classification" else None
    return {
        "schema": "orbitgp.check-data/1",
        "data": source,
        "num_data": len(data.x),
        "num_test": 0 if data.x_test is None else len(data.x_test),
        "input_shape": list(data.x.shape[1:]),
        "lowest": float(data.x.min()),
        "highest": float(data.x.max()),
        "task": decision.task,
        "task_reason": decision.reason,
        "classes": None if classes is None else dict(sorted(classes.items())),
    }


def summary(record: CheckDataRecord) -> str:
    """The same for people."""
    shape = " × ".join(map(str, record["input_shape"]))
    kinds = {1: f"{shape} columns", 2: f"images of {shape} pixels"}
    kind = kinds.get(len(record["input_shape"]), f"arrays of {shape}")
    rows = {
        "data": f"{record['num_data']:,} inputs to learn from, {record['num_test']:,} to test with",
        "inputs": f"{kind}, values {record['lowest']:.4g} … {record['highest']:.4g}",
        "task": f"{record['task']}: {record['task_reason']}",
    }
    if record["classes"] is not None:
        counts = [f"{name} ({count:,})" for name, count in record["classes"].items()]
        more = f" and {len(counts) - MOST_SHOWN} more" if len(counts) > MOST_SHOWN else ""
        rows["classes"] = ", ".join(counts[:MOST_SHOWN]) + more
    return table(rows)


CHECK_DATA = Command("check-data", "read data and say what they are", DATA, run)
