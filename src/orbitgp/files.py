"""Models to files and back; loading a file never runs code."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from orbitgp.blueprints.model import model_config, model_from
from orbitgp.devices import chosen_device
from orbitgp.errors import FileError, InputError
from orbitgp.estimators import InvariantGPClassifier, InvariantGPRegressor
from orbitgp.estimators.archive import estimator_from, write_fitted
from orbitgp.exact_model import ExactInvariantGP
from orbitgp.model import InvariantGP
from orbitgp.sealed import read_sealed, write_sealed

ESTIMATORS = (InvariantGPClassifier, InvariantGPRegressor)


def save(model: object, path: str | Path) -> None:
    """Write a model or a fitted estimator to one file, atomically.

    Parameters
    ----------
    model : InvariantGP, ExactInvariantGP, InvariantGPClassifier or InvariantGPRegressor
        What to keep.
    path : str or pathlib.Path
        The file, in the safetensors format; loading it never runs code.

    Raises
    ------
    InputError
        If it is neither a model nor a fitted estimator.

    See Also
    --------
    load : Read the file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import orbitgp
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> model = orbitgp.InvariantGPRegressor(random_state=0).fit(X, X[:, 0] ** 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     orbitgp.save(model, f"{folder}/model.safetensors")
    ...     same = orbitgp.load(f"{folder}/model.safetensors")
    >>> bool(same.evidence_ == model.evidence_)
    True
    """
    if type(model) in ESTIMATORS and hasattr(model, "model_"):
        write_fitted(model, Path(path))
    elif isinstance(model, InvariantGP | ExactInvariantGP):
        write_sealed(Path(path), "InvariantGP", model.state_dict(), model_config(model))
    else:
        raise InputError(
            f"only an InvariantGP or a fitted estimator can be saved; got {model!r:.80}"
        )


def load(path: str | Path, *, device: str | torch.device | None = None, **given: nn.Module) -> Any:
    """Read what `save` wrote, or the model of a run folder.

    Parameters
    ----------
    path : str or pathlib.Path
        A file, or the folder of a run.
    device : str or torch.device, optional
        Where the model is to be; if not given, the device that it was fitted on, or the CPU, with a
        warning, if that is not here.
    **given : torch.nn.Module
        Parts that hold code of your own, which no file contains, as in
        `load(path, feature_map=my_map)` or `load(path, orbit=my_orbit)`; what they had learned is
        put into copies of them.

    Returns
    -------
    InvariantGP, ExactInvariantGP, InvariantGPClassifier or InvariantGPRegressor
        As it was saved.

    Raises
    ------
    FileError
        If the file is missing, damaged or of another version.
    InputError
        If there is no such device.

    See Also
    --------
    save : Write the file; it has an example of both.

    Examples
    --------
    >>> import orbitgp
    >>> try:
    ...     orbitgp.load("absent.safetensors")
    ... except orbitgp.FileError as error:
    ...     print(str(error)[:36])
    absent.safetensors cannot be opened:
    """
    place, chosen = Path(path), None if device is None else chosen_device(device)
    unknown = given.keys() - {"orbit", "feature_map", "kernel", "likelihood"}
    if unknown:
        raise InputError(
            "load takes orbit, feature_map, kernel, likelihood and device; got "
            f"{', '.join(unknown)}"
        )
    kinds = {kind.__name__: kind for kind in ESTIMATORS}
    try:
        file = place / "model.safetensors" if place.is_dir() else place
    except (OSError, ValueError) as error:
        raise FileError(f"{place!s:.80} cannot be opened: {error}") from None
    form, tensors, config = read_sealed(file, "InvariantGP", *kinds)
    if form == "InvariantGP":
        return model_from(config, tensors, given).to(chosen)
    return estimator_from(kinds[form], tensors, config, given, chosen)
