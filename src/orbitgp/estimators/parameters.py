"""The parameters of an estimator that decide what a run does, and its sizes, as JSON."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from orbitgp.blueprints.orbits import orbit_config
from orbitgp.errors import FileError
from orbitgp.fit.settings import TrainingSettings
from orbitgp.orbits.base import Orbit
from orbitgp.sealed import MALFORMED

SIZES = {"num_draws", "num_inducing", "full_mean"}
"""The fields of `TrainingSettings` that a fit records."""

NAMELESS = "given"
"""A feature map or kernel that is with the model."""


def parameters_of(estimator: Any) -> dict[str, Any]:
    """The parameters that decide what a run does, as JSON has them."""
    orbit, settings, seed = estimator.orbit, estimator.settings, estimator.random_state
    own = {"likelihood": estimator.likelihood} if hasattr(estimator, "likelihood") else {}
    return own | {
        "orbit": orbit_config(orbit) if isinstance(orbit, Orbit) else orbit,
        "image_shape": estimator.image_shape and [int(n) for n in estimator.image_shape],
        "feature_map": _name_or_given(estimator.feature_map),
        "kernel": _name_or_given(estimator.kernel),
        "inference": estimator.inference,
        "num_inducing": None if estimator.num_inducing is None else int(estimator.num_inducing),
        "budget_seconds": None
        if estimator.budget_seconds is None
        else float(estimator.budget_seconds),
        "settings": None if settings is None else asdict(settings),
        "random_state": int(seed) if isinstance(seed, int | np.integer) else None,
    }


def _name_or_given(part: object) -> str | None:
    """A part by its name, if it has one."""
    return part if part is None or isinstance(part, str) else NAMELESS


def sizes_from(found: Any, path: Path | str) -> dict[str, Any]:
    """Return sizes that a file holds, if they are sizes."""
    try:
        if found.keys() != SIZES or None in found.values():
            raise ValueError(f"sizes {found!r:.80}")
        TrainingSettings(**found)
    except MALFORMED as error:
        raise FileError(
            f"{path} does not hold the sizes of a fit ({type(error).__name__}: {error})"
        ) from None
    return dict(found)
