"""Classification or regression, by the labels."""

from dataclasses import dataclass

import numpy as np

from orbitgp.cli.schemas import Task

MOST_CLASSES = 100


@dataclass(frozen=True)
class Decision:
    """The task, and why."""

    task: Task
    reason: str


def decide(y: np.ndarray, asked: str) -> Decision:
    """Strings, truth values and few distinct integers are classes; all else is measured."""
    if asked == "classification":
        return Decision("classification", "as asked for by --task")
    if asked == "regression":
        return Decision("regression", "as asked for by --task")
    if y.dtype.kind == "f" or y.ndim > 1:
        return Decision("regression", "the labels are floats" if y.ndim == 1 else "many labels")
    distinct = len(set(y.tolist()))
    kind = "integers" if y.dtype.kind in "iu" else "names"
    if kind == "integers" and distinct > MOST_CLASSES:
        reason = f"the labels are {distinct} distinct integers, more than {MOST_CLASSES}"
        return Decision("regression", reason)
    return Decision("classification", f"the labels are {distinct} distinct {kind}")
