"""Parts of the training data that are left out to choose a constant."""

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

NUM_FOLDS = 3

Folds = list[tuple[np.ndarray, np.ndarray]]


def folds(y: np.ndarray, *, seed: int, many: int = NUM_FOLDS) -> Folds:
    """Rows to train with and rows that are left out.

    Each class is spread evenly; rows of a class that is too small to be spread are always trained
    with.
    """
    rows, shuffled = np.arange(len(y)), {"shuffle": True, "random_state": seed}
    if y.dtype.kind == "f":
        return list(KFold(many, **shuffled).split(rows))
    large = np.bincount(y)[y] >= many
    parts = StratifiedKFold(many, **shuffled).split(rows[large], y[large])
    left_out = [rows[large][test] for _, test in parts]
    return [(np.setdiff1d(rows, test), test) for test in left_out]
