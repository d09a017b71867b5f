"""`orbitgp export`: what a run learned, for use without orbitgp.

As a transform for the training loop of another library, or as a file that predicts.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orbitgp.cli.bad_input import bad_input
from orbitgp.cli.command import RUN, Argument, Command
from orbitgp.cli.exit_codes import DONE
from orbitgp.cli.output import Output
from orbitgp.cli.reading import DATA, as_fitted, read_labelled
from orbitgp.cli.runs import load_run
from orbitgp.cli.schemas import ExportRecord, PredictorRecord
from orbitgp.errors import InputError

LIBRARIES = ("torchvision", "kornia", "json")

ARGUMENTS = (
    RUN,
    Argument("--policy", "write the augmentation for this library", choices=LIBRARIES),
    Argument("--predictor", "write a file that predicts: .pt2 or .onnx", path=True),
    Argument("--compact", "smaller predictor; how far predictions may move, such as 0.01", float),
    Argument(
        "--tolerated",
        "the data of the run: write the changes by which these keep their labels instead",
        path=True,
    ),
    *DATA[1:],
    Argument("--out", "file for the policy; its text is printed if not given", path=True),
    Argument("--leave_out", "leave out what the library cannot express", bool),
)


def run(options: Mapping[str, Any], output: Output) -> int:
    """`orbitgp export`."""
    if (options["policy"] is None) == (options["predictor"] is None):
        raise InputError(
            "say what to export: --policy LIBRARY for the augmentation, or --predictor FILE for a "
            "file that predicts"
        )
    _refuse_unused(options)
    model = load_run(Path(options["run"]))  # first, since it needs no torch to say no
    if options["policy"] is None:
        return _write_predictor(model, options, output)
    orbit = model.orbit_ if options["tolerated"] is None else _tolerated(model, options)
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


def _refuse_unused(options: Mapping[str, Any]) -> None:
    unused = ["compact"] if options["predictor"] is None else ["tolerated", "out", "leave_out"]
    if options["tolerated"] is None:
        unused += ["target", "image_size"]
    given = [f"--{name}" for name in unused if options[name] not in (None, False)]
    if given:
        raise InputError(
            f"would change nothing here: {', '.join(given)}; --tolerated, --out and --leave_out go "
            "with --policy, --compact with --predictor, --target and --image_size with --tolerated"
        )


def _tolerated(model: Any, options: Mapping[str, Any]) -> Any:
    from orbitgp.evidence.tolerated import tolerated

    source = options["tolerated"]
    how = as_fitted(Path(options["run"]), source, options["target"], options["image_size"])
    data = read_labelled(source, *how)
    with bad_input():
        return tolerated(model, data.x, data.y, kind="images").orbit


def _write_predictor(model: Any, options: Mapping[str, Any], output: Output) -> int:
    from orbitgp.export.export_predictor import describing, export_predictor

    sizes = {"compact": options["compact"], "verbose": not output.as_json}
    path = export_predictor(model, options["predictor"], **sizes)
    about = describing(model)
    record: PredictorRecord = {
        "schema": "orbitgp.predictor/1",
        "run": options["run"],
        "predictor": str(path),
        "num_bytes": path.stat().st_size,
        "inputs": about["inputs"],
        "outputs": about["outputs"],
    }
    output.show(record, str(path))
    return DONE


EXPORT = Command("export", "write what was learned, for use without orbitgp", ARGUMENTS, run)
