"""Inputs with labels, as every reader of whole files gives them."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LabelledData:
    """Inputs with their labels, and those kept for testing where a set has its own."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray | None = None
    y_test: np.ndarray | None = None
