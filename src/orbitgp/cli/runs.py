"""Run folders, read."""

from pathlib import Path
from typing import Any

from orbitgp.errors import FileError


def load_run(run: Path, device: str | None = None) -> Any:
    """The fitted estimator of a folder, or of a model file."""
    if not run.exists():
        raise FileError(f"{run} does not exist; give a folder that `orbitgp fit --out` made")
    if run.is_dir() and not (run / "model.safetensors").exists():
        raise FileError(f"{run} holds no finished run; `orbitgp resume {run}` finishes it")
    from orbitgp.files import load  # the slow import, after what can be said without it

    model = load(run, device=device)
    if not hasattr(model, "orbit_"):
        raise FileError(f"{run} holds a bare model; commands need a fitted estimator")
    return model
