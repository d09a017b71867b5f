"""A run is a folder: settings.json, log.jsonl, checkpoint.safetensors, model.safetensors."""

import hashlib
import json
import platform
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from orbitgp.errors import FileError, InputError
from orbitgp.estimators.archive import write_fitted
from orbitgp.estimators.parameters import parameters_of
from orbitgp.sealed import read_bytes, write_atomically
from orbitgp.training.callbacks import Callback, JsonlLog
from orbitgp.training.checkpoint import Checkpoint, FileCheckpoint
from orbitgp.training.group import ALONE, Group

VERSION = 1


class NoFolder:
    """Nothing is kept."""

    checkpoint: Checkpoint = Checkpoint()
    log: Callback = Callback()

    def open(self, estimator: Any, data: str, seed: int) -> int:
        """The seed as given."""
        del estimator, data
        return seed

    def model(self) -> bytes:
        """The file of a model that was finished before; nothing."""
        return b""

    def finish(self, estimator: Any) -> None:
        """Keep what was fitted."""


class RunFolder(NoFolder):
    """Keeps all that a run needs to go on after a crash, and all that it found.

    Only the first of several processes reads and writes the folder.
    """

    def __init__(self, path: Path, group: Group = ALONE) -> None:
        self.path, self.group = path, group
        self.model_path = path / "model.safetensors"
        self.checkpoint = FileCheckpoint(path / "checkpoint.safetensors", group)
        self.log = JsonlLog(path / "log.jsonl") if group.rank == 0 else Callback()

    def model(self) -> bytes:
        """The file of a finished model, or nothing."""
        here = self.group.rank == 0 and self.model_path.exists()
        return self.group.bytes_from(0, read_bytes(self.model_path) if here else b"")

    def finish(self, estimator: Any) -> None:
        """Keep what was fitted."""
        if self.group.rank == 0:
            write_fitted(estimator, self.model_path)

    def open(self, estimator: Any, data: str, seed: int) -> int:
        """Begin, or go on; returns the seed that the run began with."""
        asked = {
            "estimator": type(estimator).__name__,
            "parameters": parameters_of(estimator),
            "parts_sha256": _digest_of_parts(estimator.orbit, estimator.feature_map),
            "data_sha256": data,
        }
        path = self.path / "settings.json"
        self.path.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            record = {"version": VERSION, **asked, "seed": seed, "versions": _versions()}
            text = json.dumps(record, indent=2, ensure_ascii=False)
            write_atomically(path, text.encode())
            return seed
        found = _read(path)
        different = [name for name in asked if found.get(name) != asked[name]]
        if not isinstance(estimator.random_state, int) and estimator.random_state is not None:
            different += ["seed"] * (found.get("seed") != seed)
        if different:
            raise InputError(
                f"{self.path} holds another run, with different {', '.join(different)}; choose "
                "another folder, or delete this one to start again"
            )
        self.log.announced("the run goes on where it stood")
        if found.get("versions") != _versions():
            message = (
                f"the run began with {found.get('versions')} and goes on with {_versions()}: it "
                "will end well, but not bit for bit as it would have"
            )
            self.log.warned(message)
            warnings.warn(message, UserWarning, stacklevel=2)
        return int(found["seed"])


def digest_of(*arrays: np.ndarray) -> str:
    """sha256 of shapes, dtypes and values."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        plain = repr(array.tolist()).encode() if array.dtype == object else array
        digest.update(np.ascontiguousarray(plain).tobytes())
    return digest.hexdigest()


def _digest_of_parts(*parts: object) -> str:
    """Of the numbers that the orbit and the feature map begin with."""
    modules = [part for part in parts if isinstance(part, nn.Module)]
    states = [tensor.numpy() for part in modules for tensor in part.state_dict().values()]
    return digest_of(*states)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
        int(found["seed"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(
            f"{path} cannot be read ({error}); delete the folder to start again"
        ) from None
    if found.get("version") != VERSION:
        raise FileError(f"{path} has format version {found.get('version')!r}; this is {VERSION}")
    return found


def _versions() -> dict[str, Any]:
    """What has to be the same for a run to go on bit for bit."""
    packages = {name: version(name) for name in ("orbitgp", "torch", "gpytorch", "numpy")}
    threads = torch.get_num_threads()
    return {**packages, "python": platform.python_version(), "threads": threads}
