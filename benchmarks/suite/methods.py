"""The methods, and the kinds of data that each is for."""

from collections.abc import Callable
from typing import NamedTuple

from benchmarks.suite import encoder, ours, series
from benchmarks.suite.exact_gp import gpytorch_gp
from benchmarks.suite.machines import boosting, svm
from benchmarks.suite.networks import network
from experiments.prediction import Prediction
from experiments.splits import Source

KINDS = ("images", "photographs", "series", "molecules")


class Method(NamedTuple):
    """A function of `Split` and `seed`, and the kinds of data that it is for."""

    name: str
    run: Callable[..., Prediction]
    kinds: tuple[str, ...] = KINDS


METHODS = (
    Method("ours", ours.ours),
    Method("ours-none", ours.ours_none),
    Method("gpytorch", gpytorch_gp),
    Method("svm", svm),
    Method("boosting", boosting),
    Method("network", network),
    Method("multirocket", series.multirocket, ("series",)),
    Method("dtw", series.dtw, ("series",)),
    Method("encoder-ours", encoder.encoder_ours, ("photographs",)),
    Method("encoder-none", encoder.encoder_none, ("photographs",)),
    Method("encoder-logistic", encoder.encoder_logistic, ("photographs",)),
    Method("encoder-logistic-augmented", encoder.encoder_logistic_augmented, ("photographs",)),
)


def methods_for(source: Source) -> list[Method]:
    """Those that suit this kind of data."""
    return [method for method in METHODS if source.kind in method.kinds]
