"""`orbitgp export`: what a run learned, as a transform for the training loop of another library."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orbitgp.cli.command import RUN, Argument, Command
from orbitgp.cli.exit_codes import DONE
from orbitgp.cli.output import Output
from orbitgp.cli.runs import load_run
from orbitgp.cli.schemas import ExportRecord

LIBRARIES = ("torchvision", "kornia", "albumentations", "json")

ARGUMENTS = (
    RUN,
    Argument("--policy", "library that it is for", choices=LIBRARIES, required=True),
    Argument("--out", "file to write; the text is printed if not given", path=True),
    Argument("--leave_out", "leave out what the library cannot express", bool),
)


def run(options: Mapping[str, Any], output: Output) -> int:
    """`orbitgp export`."""
    orbit = load_run(Path(options["run"])).orbit_  # first, since it needs no torch to say no
    from orbitgp.export.export_policy import export_policy

    policy = export_policy(orbit, options["policy"], leave_out=options["leave_out"])
    out = options["out"]
    path = None if out is None else str(policy.save(out))
    steps: list[Any] = [step.to_dict() for step in policy.steps]
    record: ExportRecord = {
        "schema": "orbitgp.export/1",
        "run": options["run"],
        "policy": options["policy"],
        "steps": steps,
        "left_out": list(policy.left_out),
        "out": path,
        "source": policy.source if path is None else None,
    }
    output.show(record, policy.source.rstrip("\n") if path is None else path)
    return DONE


EXPORT = Command("export", "write the learned augmentation for another library", ARGUMENTS, run)
