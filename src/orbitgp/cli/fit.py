"""`orbitgp fit`: read data, learn, test, and leave a folder with all of it."""

import time
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from orbitgp.cli.bad_input import bad_input
from orbitgp.cli.command import BUDGET, DEVICE, Argument, Command
from orbitgp.cli.exit_codes import DONE
from orbitgp.cli.learned import learned_part, learned_rows, scores_part, scores_text
from orbitgp.cli.options import FitOptions, write_options
from orbitgp.cli.output import Output, table
from orbitgp.cli.processes import Place, launched
from orbitgp.cli.reading import DATA, files_of, read_labelled
from orbitgp.cli.schemas import FitRecord, ScoresPart
from orbitgp.errors import InputError
from orbitgp.fit.settings import TrainingSettings
from orbitgp.stochastic.settings import StochasticSettings

if TYPE_CHECKING:
    from orbitgp.cli.task import Decision
    from orbitgp.data.labelled import LabelledData

ORBITS = (
    *("none", "affine", "rotation", "local", "crop", "colour"),
    *("mirror", "quarter-turns", "dihedral"),
    *("time-shift", "cyclic-shift", "time-warp", "window", "magnitude", "drift"),
    *("rotation-3d", "translation-3d"),
)

SETTINGS = {
    "max_steps": "steps of L-BFGS, at most",
    "scan_size": "inputs that widths of ranges are first scanned on",
    "scan_draws": "orbit draws of an input in the scan",
    "climb_size": "inputs that hyperparameters are learned on",
    "climb_draws": "orbit draws of an input in learning",
    "search_size": "inputs that the width of the ranges is searched on",
    "calibration_size": "inputs that class probabilities are calibrated on",
    "max_exact": "inputs up to which inference is exact",
    "max_inducing": "inducing variables, at most",
    "max_full_mean": "inputs up to which the mean has a variable for every input",
    "num_draws": "transformations that all inputs share",
    "num_inducing": "inducing variables; 0 is exact inference",
    "full_mean": "1 for a mean with a variable for every input, or 0",
}

STOCHASTIC = {
    "num_steps": "steps of stochastic training",
    "batch_size": "inputs of a step, over all processes",
    "num_draws": "orbit samples of an input in a step",
    "group_size": "orbit samples that are spread evenly together",
    "num_inducing": "inducing points, without --num_inducing",
    "rate": "learning rate of ranges, kernel and noise",
    "point_rate": "learning rate of inducing points, in standard deviations of features",
    "last_rate": "part of both rates that is left at the last step",
    "memory": "inputs whose statistics the posterior remembers",
    "averaged": "part of the steps, at the end, over which the posterior is an average",
    "start_size": "inputs that training starts from",
    "last_draws": "orbit samples of an input in the last pass",
    "prediction_draws": "orbit samples that predictions share",
    "report_every": "steps between two points of the evidence curve",
    "checkpoint_every": "steps between two checkpoints",
}

INFERENCES = ("auto", "exact", "inducing", "stochastic")
FEATURES = ("auto", "pixels", "oriented", "patches")
KERNELS = tuple(
    name + end for end in ("", "-ard") for name in ("rbf", "matern-1/2", "matern-3/2", "matern-5/2")
)

TASK = Argument(
    "--task",
    "auto decides by the labels",
    choices=("auto", "classification", "regression"),
    default="auto",
)

ARGUMENTS = (
    *DATA,
    Argument("--out", "folder of the run", required=True, path=True),
    Argument(
        "--orbit",
        "changes to learn from; several are joined by +, as in mirror+affine",
        choices=ORBITS,
        joined=True,
        default="none",
    ),
    TASK,
    Argument(
        "--features",
        "what the kernel compares: values as they are, edges of images, or patches of images "
        "and series; auto takes what has the most evidence",
        choices=FEATURES,
        default="auto",
    ),
    Argument("--kernel", "base kernel; -ard has a lengthscale for each feature", choices=KERNELS),
    Argument(
        "--likelihood",
        "of classes; auto is gaussian, which is exact",
        choices=("auto", "gaussian", "softmax", "polya-gamma"),
        default="auto",
    ),
    Argument(
        "--inference",
        "stochastic learns everything together from minibatches, as in the paper; auto is exact, "
        "or takes inducing variables where there are many inputs",
        choices=INFERENCES,
        default="auto",
    ),
    Argument("--num_inducing", "inducing variables; none up to --settings.max_exact inputs", int),
    BUDGET,
    DEVICE,
    Argument("--seed", "of all random draws", int, 0),
    *(
        Argument(
            f"--{group}.{field.name}",
            words[field.name],
            float if field.type is float else int,
            field.default,
            metavar=field.name.upper(),
        )
        for group, kind, words in (
            ("settings", TrainingSettings, SETTINGS),
            ("stochastic", StochasticSettings, STOCHASTIC),
        )
        for field in fields(kind)
    ),
)

State = Literal["fitted", "resumed", "read back"]


def run(options: Mapping[str, Any], output: Output) -> int:
    """`orbitgp fit`."""
    return fit_or_resume(FitOptions.of(options), Path(options["out"]), output)


def fit_or_resume(options: FitOptions, run: Path, output: Output) -> int:
    """All steps of a fit, new or resumed; the first of several processes speaks for all."""
    with launched(output) as place:
        own = replace(output, quiet=place.rank > 0)
        return _fit(options, run, own, place)


def _fit(options: FitOptions, run: Path, output: Output, place: Place) -> int:
    from orbitgp.cli.task import decide

    start = time.perf_counter()
    data = read_labelled(options.data, options.target, options.image_size)
    decision = decide(data.y, options.task)
    output.say(f"{decision.task}: {decision.reason}")
    state = state_of(run)
    try:
        estimator = fitted(options, run, data, decision, output)
        if place.rank > 0:
            return DONE
        write_options(options, run)  # a run that was read back took no step
        scores = tested(estimator, options.data, data, run)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(interruption(run)) from None
    record: FitRecord = {
        "schema": "orbitgp.fit/1",
        "run": str(run),
        "state": state,
        **learned_part(estimator),
        "task_reason": decision.reason,
        "num_data": len(data.x),
        "processes": place.size,
        "test": scores,
        "seconds": round(time.perf_counter() - start, 3),
        "warnings": output.warned,
    }
    output.show(record, summary(record))
    return DONE


def state_of(run: Path) -> State:
    """What a fit into this folder will be, if the folder is of the same run."""
    if (run / "model.safetensors").exists():
        return "read back"
    return "resumed" if (run / "settings.json").exists() else "fitted"


def fitted(
    options: FitOptions, run: Path, data: "LabelledData", decision: "Decision", output: Output
) -> Any:
    """The fitted estimator; its folder holds all that is needed to go on."""
    from orbitgp.cli.watching import FitWatcher
    from orbitgp.estimators import InvariantGPClassifier, InvariantGPRegressor

    check_features(options.features, options.data, data)
    classify = decision.task == "classification"
    if options.likelihood != "auto" and not classify:
        raise InputError(
            f"--likelihood {options.likelihood} is for classes, but {decision.reason}; "
            "leave it away, or give --task classification"
        )
    kind = InvariantGPClassifier if classify else InvariantGPRegressor
    own: dict[str, Any] = {"likelihood": options.likelihood} if classify else {}
    estimator = kind(
        options.orbit,
        **own,
        feature_map=feature_map_of(options.features),
        kernel=options.kernel,
        num_inducing=options.num_inducing,
        budget_seconds=options.budget_seconds,
        inference=options.inference,
        settings=options.stochastic if options.inference == "stochastic" else options.settings,
        run=run,
        device=options.device,
        callbacks=[FitWatcher(options, run, output)],
        random_state=options.seed,
        verbose=not output.as_json and not output.quiet,
    )
    with bad_input():
        estimator.fit(data.x, data.y)
    return estimator


def feature_map_of(name: str) -> str | None:
    """What an estimator calls these features."""
    return None if name == "pixels" else name


def check_features(features: str, source: str, data: "LabelledData") -> None:
    """Edges are those of images."""
    if features == "oriented" and data.x.ndim not in (3, 4):
        raise InputError(
            f"--features oriented is for images; the inputs of {source} have shape "
            f"{list(data.x.shape[1:])}"
        )


def tested(estimator: Any, source: str, data: "LabelledData", run: Path) -> ScoresPart | None:
    """Scores on the source's own test part, if it has one, kept in the folder."""
    from orbitgp.scores import evaluate, write_test

    if data.x_test is None or data.y_test is None:
        return None
    with bad_input():
        files = files_of(source, "test", len(data.x_test))
        result = evaluate(estimator, data.x_test, data.y_test, files=files)
    write_test(result, run / "test.safetensors")
    return scores_part(result)


def interruption(run: Path) -> str:
    """What to do after Ctrl-C."""
    if (run / "command.json").exists():
        return f"interrupted; `orbitgp resume {run}` goes on from the last checkpoint"
    return "interrupted before the first step; run the same command again"


def summary(record: FitRecord) -> str:
    """The result for people."""
    rows = learned_rows(record)
    if record["test"] is not None:
        rows["test"] = scores_text(record["test"])
    work = f"{record['state']}, {record['num_data']:,} inputs"
    shared = f", {record['processes']} processes" if record["processes"] > 1 else ""
    rows["time"] = f"{record['seconds']:.1f} s ({work}{shared})"
    rows["run"] = record["run"]
    rows["next"] = f"orbitgp report {record['run']}"
    return table(rows)


FIT = Command("fit", "learn from data, into the folder of a run", ARGUMENTS, run, config=True)
