"""From a fitted estimator to a file that predicts without orbitgp."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orbitgp.errors import InputError
from orbitgp.estimators.base import InvariantGPEstimator
from orbitgp.export.compact import compact_predictor
from orbitgp.export.graphs import exported, onnx_bytes, pt2_bytes
from orbitgp.export.predictor import Predictor
from orbitgp.sealed import write_atomically

WRITERS: dict[str, Callable[..., bytes]] = {".pt2": pt2_bytes, ".onnx": onnx_bytes}


def export_predictor(
    model: Any, path: str | Path, *, compact: float | None = None, verbose: bool = False
) -> Path:
    """Write a fitted estimator as a file that predicts without orbitgp.

    The draws of the orbit are those of the fit, and part of the file. It takes inputs as they were
    measured, as float32 [B, …] for any B ≥ 1. A classifier gives one output, `probabilities` of
    shape [B, classes] in the order of `classes_`; a regressor gives `target_mean` and
    `target_variance`, which includes the noise, in the units of y. Without `compact`, they agree
    with those of the estimator to 1e-5.

    Parameters
    ----------
    model : InvariantGPClassifier or InvariantGPRegressor
        A fitted estimator, with an RBF or Matérn kernel.
    path : str or pathlib.Path
        Where to: `.pt2` for `torch.export.load`, or `.onnx` for an ONNX runtime (opset 20).
    compact : float, optional
        Write a smaller and faster predictor, whose predictions of the training inputs move by no
        more than this on average: probabilities by half of the sum of |p' − p| over classes, means
        by as many predictive standard deviations, such as 0.01. The whole predictor, if no smaller
        one is good enough.
    verbose : bool, default=False
        Print a line for each size that `compact` tries.

    Returns
    -------
    pathlib.Path
        The same.

    Raises
    ------
    InputError
        If the model is not fitted, the ending is another one, `compact` is no number between 0 and
        1, a file of this kind cannot hold the kernel, the orbit or the feature map, or the packages
        for ONNX are not installed.

    See Also
    --------
    export_policy : The learned augmentation for the training loop of another library.
    save : A file that orbitgp loads, with everything that was learned.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import torch
    >>> from orbitgp import InvariantGPRegressor, export_predictor
    >>> X = np.linspace(-1, 1, 20, dtype=np.float32)[:, None]
    >>> model = InvariantGPRegressor(random_state=0).fit(X, np.cos(3 * X[:, 0]))
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = export_predictor(model, f"{folder.name}/model.pt2")
    >>> mean, variance = torch.export.load(path).module()(torch.from_numpy(X))
    >>> bool(np.allclose(mean, model.predict(X), atol=1e-5))
    True
    >>> folder.cleanup()
    """
    path = Path(path)
    if not isinstance(model, InvariantGPEstimator) or not hasattr(model, "model_"):
        raise InputError(
            "a predictor is made of a fitted InvariantGPClassifier or InvariantGPRegressor; got "
            f"{model!r:.80}: call fit first"
        )
    if path.suffix not in WRITERS:
        raise InputError(
            f"a predictor file ends with {' or '.join(WRITERS)}; got {path.name!r}: choose one"
        )
    report = functools.partial(print, file=sys.stderr, flush=True) if verbose else _silent
    predictor = Predictor(model) if compact is None else compact_predictor(model, compact, report)
    shape = predictor.num_values
    try:
        program = exported(predictor, shape)
    except (RuntimeError, TypeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(
            "PyTorch cannot make a graph of this predictor, most likely because of a function of "
            f"your own in its orbit or feature map ({type(error).__name__}: {reason}); use torch "
            "operations alone there, which do not depend on values or on the number of inputs"
        ) from error
    write_atomically(path, WRITERS[path.suffix](program, describing(model)))
    return path


def _silent(line: str) -> None:
    """Print nothing."""


def describing(model: Any) -> dict[str, Any]:
    """What a program that loads the file may want to know."""
    classes = getattr(model, "classes_", None)
    return {
        "schema": "orbitgp.predictor/1",
        "inputs": model.input_shape_.tolist(),
        "outputs": ["target_mean", "target_variance"] if classes is None else ["probabilities"],
        "classes": None if classes is None else classes.tolist(),
        "orbit": model.orbit_.describe(),
        "num_draws": int(model.num_draws_),
    }
