"""What CSV and Parquet files have in common: a target among named columns, and plain labels."""

from pathlib import Path

import numpy as np

from orbitgp.errors import FileError, InputError

MAX_LABEL = 200
"""Characters; NumPy makes room for the longest label in every row."""


def target_place(names: list[str], target: str | None, labelled: bool, path: Path) -> int | None:
    """Which column is the target; None if there is none and none is needed."""
    if target in names:
        place = names.index(target)
    elif not labelled:
        return None
    elif target is None:
        place = len(names) - 1
    else:
        raise InputError(
            f"{path} has no column {target!r}; give the target as one of {', '.join(names)[:200]}"
        )
    if len(names) < 2:
        raise FileError(f"{path} has no column beside its target {names[place]!r:.80}")
    return place


def check_label(label: str, place: str) -> str:
    """Refuse a label that is missing or so long that it cannot be one."""
    if label.strip() and len(label) <= MAX_LABEL:
        return label
    what = f"has {len(label)} characters" if label.strip() else "is missing"
    raise FileError(f"{place}: the target {what}; fill it in, or leave the row out")


def label_array(labels: list[str]) -> np.ndarray:
    """Whole numbers if all are, floats if all are numbers, otherwise the strings themselves."""
    try:
        if any("_" in label for label in labels):  # Python reads 1_000 as a number
            raise ValueError
        try:
            return np.array([int(label) for label in labels], np.int64)
        except (ValueError, OverflowError):
            return np.array([float(label) for label in labels], np.float64)
    except ValueError:
        return np.array(labels)
