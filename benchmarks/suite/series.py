"""Classifiers of series from aeon, which is installed for them alone: pip install aeon."""

import importlib
from typing import Any

import numpy as np

from experiments.prediction import Prediction
from experiments.splits import Split


def multirocket(split: Split, *, seed: int) -> Prediction:
    """MultiRocket-Hydra with a ridge classifier, which has no probabilities."""
    folder = importlib.import_module("aeon.classification.convolution_based")
    return _predicted(folder.MultiRocketHydraClassifier(random_state=seed), split)


def dtw(split: Split, *, seed: int) -> Prediction:
    """The label of the nearest series by dynamic time warping."""
    del seed  # nothing is drawn
    folder = importlib.import_module("aeon.classification.distance_based")
    return _predicted(folder.KNeighborsTimeSeriesClassifier(distance="dtw", n_neighbors=1), split)


def _predicted(model: Any, split: Split) -> Prediction:
    """Series are [n, channels, T] in float64 there."""
    x, x_test = (
        part.astype(np.float64).reshape(len(part), -1, part.shape[-1])
        for part in (split.x, split.x_test)
    )
    return Prediction(np.asarray(model.fit(x, split.y).predict(x_test)))
