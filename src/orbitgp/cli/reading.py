"""Data for commands, by source."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from orbitgp.cli.command import Argument
from orbitgp.cli.options import COMMAND_FILE, pair, read_options
from orbitgp.errors import FileError, InputError

if TYPE_CHECKING:
    import numpy as np

    from orbitgp.data.labelled import LabelledData

DATA = (
    Argument(
        "--data",
        "digits, openml:NAME, a folder with a folder of images for each class, an .npz, .csv or "
        ".parquet file, or a folder of IDX files",
        required=True,
        path=True,
    ),
    Argument("--target", "column of the labels in a table; the last one if not given"),
    Argument(
        "--image_size",
        "size that images of a folder are brought to",
        int,
        nargs=2,
        metavar=("H", "W"),
    ),
)
"""The source, and how to read it."""

Part = Literal["test", "train", "all"]


def read_labelled(
    source: str, target: str | None, image_size: tuple[int, int] | None
) -> "LabelledData":
    """Inputs and labels of a source."""
    from orbitgp.data.sources import read_data

    check_source(source)
    return read_data(source, target=target, image_size=image_size)


def read_unlabelled(
    source: str, split: Literal["train", "test"], target: str | None, size: tuple[int, int] | None
) -> "np.ndarray":
    """Inputs of a source, with or without labels."""
    from orbitgp.data.sources import read_inputs

    check_source(source)
    return read_inputs(source, split=split, target=target, image_size=size)


def file_names(source: str, split: Literal["train", "test"]) -> list[str]:
    """The file of each input that is read, if inputs are files."""
    from orbitgp.data.sources import input_names

    return input_names(source, split=split)


def files_of(source: str, part: str, count: int) -> list[str]:
    """The file of each input of a part that is read with its labels; [] if they are not files."""
    names = file_names(source, "train" if part == "train" else "test")
    return names if len(names) == count else []


def check_source(source: str) -> None:
    """What is plainly a path, and not a name, has to be there."""
    from orbitgp.data.named import is_name

    path = Path(source)
    is_path = bool(path.suffix or path.anchor) or source.startswith((".", "~"))
    if is_path and not is_name(source) and not Path(source).expanduser().exists():
        raise FileError(f"{source} does not exist; give a file, a folder, digits or openml:NAME")


def as_fitted(
    run: Path, source: str, target: str | None, image_size: list[int] | None
) -> tuple[str | None, tuple[int, int] | None]:
    """How to read data for a run: as given, or else as they were read for its fit."""
    size = pair(image_size)
    if not (run / COMMAND_FILE).exists():
        return target, size
    kept = read_options(run)
    if target is None and is_table(source):
        target = kept.target
    if size is None and Path(source).is_dir():
        size = kept.image_size
    return target, size


def is_table(source: str) -> bool:
    """Whether columns have names."""
    return Path(source).suffix.lower() in (".csv", ".parquet")


def part_of(
    data: "LabelledData", asked: str | None, source: str
) -> tuple["np.ndarray", "np.ndarray", Part]:
    """The part that was asked for, or else the test part, or all if there is none."""
    if asked != "train" and data.x_test is not None and data.y_test is not None:
        return data.x_test, data.y_test, "test"
    if asked == "test":
        raise InputError(f"{source} has no test part; leave --split away to use all of it")
    return data.x, data.y, "train" if asked == "train" else "all"
