"""`orbitgp predict`: labels and probabilities, or means and deviations, for new inputs."""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbitgp.cli.bad_input import bad_input
from orbitgp.cli.command import DEVICE, RUN, Argument, Command
from orbitgp.cli.exit_codes import DONE
from orbitgp.cli.output import Output
from orbitgp.cli.reading import DATA, as_fitted, file_names, is_table, read_unlabelled
from orbitgp.cli.runs import load_run
from orbitgp.cli.schemas import PredictRecord, Task
from orbitgp.errors import FileError, InputError

if TYPE_CHECKING:
    import numpy as np

SPLIT = Argument(
    "--split", "part, if the source has parts", choices=("test", "train"), default="test"
)
OUT = Argument("--out", ".csv or .npz; CSV on stdout if not given", path=True)


def run(options: Mapping[str, Any], output: Output) -> int:
    """`orbitgp predict`."""
    out = None if options["out"] is None else Path(options["out"])
    if out is not None and out.suffix not in (".csv", ".npz"):
        raise InputError(f"--out must end with .csv or .npz; got {out.name!r}")
    folder = Path(options["run"])
    estimator = load_run(folder, options["device"])
    target, size = as_fitted(folder, options["data"], options["target"], options["image_size"])
    try:
        x = read_unlabelled(options["data"], options["split"], target, size)
        with bad_input():
            predictions = predict(estimator, x).named(file_names(options["data"], options["split"]))
    except (InputError, FileError) as error:
        if target is None and is_table(options["data"]):
            raise type(error)(f"{error}; if a column holds labels, name it by --target") from None
        raise
    if out is not None:
        write(predictions, out)
    record: PredictRecord = {
        "schema": "orbitgp.predict/1",
        "run": str(folder),
        "data": options["data"],
        "task": predictions.task,
        "num_data": len(x),
        "out": None if out is None else str(out),
        "columns": predictions.columns if out is None else None,
        "rows": predictions.rows() if out is None else None,
    }
    text = predictions.csv().rstrip("\n") if out is None else f"{len(x):,} predictions in {out}"
    output.show(record, text)
    return DONE


@dataclass(frozen=True)
class Predictions:
    """Named arrays; those of two axes are several columns of a table."""

    task: Task
    columns: list[str]
    arrays: "dict[str, np.ndarray]"
    tabled: tuple[str, ...]

    def named(self, names: list[str]) -> "Predictions":
        """The same with the file of each input in front, if inputs are files."""
        if not names:
            return self
        import numpy as np

        arrays = {"path": np.array(names), **self.arrays}
        return Predictions(self.task, ["path", *self.columns], arrays, ("path", *self.tabled))

    def rows(self) -> list[list[Any]]:
        """One list an input, in the order of `columns`."""
        parts = [self.arrays[name] for name in self.tabled]
        lists = [part.reshape(len(part), -1).tolist() for part in parts]
        return [[*chain(*row)] for row in zip(*lists, strict=True)]

    def csv(self) -> str:
        """A header and the rows."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows())
        return file.getvalue()


def predict(estimator: Any, x: "np.ndarray") -> Predictions:
    """What there is to say of each input."""
    if hasattr(estimator, "classes_"):
        probabilities = estimator.predict_proba(x)
        arrays = {
            "label": estimator.classes_[probabilities.argmax(1)],
            "probability": probabilities,
            "classes": estimator.classes_,
        }
        columns = ["label", *(f"probability_{name}" for name in estimator.classes_)]
        return Predictions("classification", columns, arrays, ("label", "probability"))
    mean, deviation = estimator.predict(x, return_std=True)
    arrays = {"mean": mean, "standard_deviation": deviation}
    numbers = [""] if mean.ndim == 1 else [f"_{number}" for number in range(mean.shape[1])]
    columns = [f"{name}{number}" for name in arrays for number in numbers]
    return Predictions("regression", columns, arrays, tuple(arrays))


def write(predictions: Predictions, out: Path) -> None:
    """A table, or an archive of arrays, atomically."""
    import numpy as np

    from orbitgp.sealed import write_atomically

    file = io.BytesIO()
    if out.suffix == ".npz":
        # an archive of plain arrays: text has a width of its own, not Python objects
        plain = {
            name: array.astype(str) if array.dtype == object else array
            for name, array in predictions.arrays.items()
        }
        np.savez_compressed(file, **plain)  # pyright: ignore[reportArgumentType]
    else:
        file.write(predictions.csv().encode())
    write_atomically(out, file.getvalue())


PREDICT = Command(
    "predict", "predict for inputs, as CSV or npz", (RUN, *DATA, SPLIT, OUT, DEVICE), run
)
