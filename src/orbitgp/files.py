"""Models to files and back; loading a file never runs code."""

from pathlib import Path
from typing import Any

from torch import nn

from orbitgp.blueprints.model import model_config, model_from
from orbitgp.errors import FileError, InputError
from orbitgp.estimators import InvariantGPClassifier, InvariantGPRegressor
from orbitgp.estimators.archive import estimator_from, write_fitted
from orbitgp.exact_model import ExactInvariantGP
from orbitgp.model import InvariantGP
from orbitgp.sealed import read_sealed, write_sealed

ESTIMATORS = (InvariantGPClassifier, InvariantGPRegressor)


def save(model: object, path: str | Path) -> None:
    """Write an InvariantGP or a fitted estimator to one file, atomically."""
    if type(model) in ESTIMATORS and hasattr(model, "model_"):
        write_fitted(model, Path(path))
    elif isinstance(model, InvariantGP | ExactInvariantGP):
        write_sealed(Path(path), "InvariantGP", model.state_dict(), model_config(model))
    else:
        raise InputError(
            f"only an InvariantGP or a fitted estimator can be saved; got {model!r:.80}"
        )


def load(path: str | Path, **given: nn.Module) -> Any:
    """Read what `save` wrote, or the model of a run folder: a model or an estimator as it was.

    Parts that hold code of your own are not in a file: give them again, as in
    `load(path, feature_map=my_map)` or `load(path, orbit=my_orbit)`; what they had learned is put
    into copies of them.
    """
    place = Path(path)
    unknown = given.keys() - {"orbit", "feature_map", "kernel", "likelihood"}
    if unknown:
        raise InputError(
            f"load takes orbit, feature_map, kernel and likelihood; got {', '.join(unknown)}"
        )
    kinds = {kind.__name__: kind for kind in ESTIMATORS}
    try:
        file = place / "model.safetensors" if place.is_dir() else place
    except (OSError, ValueError) as error:
        raise FileError(f"{place!s:.80} cannot be opened: {error}") from None
    form, tensors, config = read_sealed(file, "InvariantGP", *kinds)
    if form == "InvariantGP":
        return model_from(config, tensors, given)
    return estimator_from(kinds[form], tensors, config, given)
