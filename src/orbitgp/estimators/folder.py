"""A run is a folder: settings.json, log.jsonl and sealed files.

checkpoint.safetensors is where a killed run goes on, model.safetensors what it learned, and
examples.safetensors some of the inputs that it learned from, for reports.
"""

import hashlib
import json
import platform
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from orbitgp.callbacks.base import Callback, JsonlLog
from orbitgp.distributed.group import ALONE, Group
from orbitgp.errors import FileError, InputError
from orbitgp.estimators.archive import write_fitted
from orbitgp.estimators.parameters import parameters_of, sizes_from
from orbitgp.fit.checkpoint import Checkpoint, FileCheckpoint
from orbitgp.sealed import (
    MALFORMED,
    read_bytes,
    read_sealed,
    remove_leftovers,
    write_atomically,
    write_sealed,
)

VERSION = 1
EXAMPLES = "orbitgp examples"
"""Form of the file with examples: tensor "inputs" [n, *event], and n labels as JSON."""

MAX_EXAMPLES = 12
RESUMED = "the run goes on where it stood"
ENDED = "the evidence has been computed"
"""What the log says when a run is resumed, and when it ends."""


class NoFolder:
    """A run of these processes that keeps nothing."""

    checkpoint: Checkpoint = Checkpoint()
    log: Callback = Callback()

    def __init__(self, group: Group = ALONE) -> None:
        self.group = group

    def first_seed(self, estimator: Any, seed: int) -> int:
        """Return the seed that the data are sampled with, before a run is opened: that given."""
        del estimator
        return seed

    def open(self, estimator: Any, data: str, about: dict[str, Any], seed: int) -> int:
        """The seed as given."""
        del estimator, data, about
        return seed

    def sizes(self, choose: Callable[[Mapping[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Return the sizes of the run, chosen with those that it began with, if it did before."""
        return choose({})

    def model(self) -> bytes | None:
        """The file of a model that was finished before; nothing."""
        return None

    def finish(self, estimator: Any, x: Tensor, y: Tensor, raw: np.ndarray) -> None:
        """Nothing is left."""


class RunFolder(NoFolder):
    """Keeps all that a run needs to go on after a crash, and all that it found.

    Only the first of several processes reads and writes the folder.
    """

    def __init__(self, path: Path, group: Group = ALONE) -> None:
        super().__init__(group)
        self.path = path
        self.model_path = path / "model.safetensors"
        self.checkpoint = FileCheckpoint(path / "checkpoint.safetensors", group)
        self.log = JsonlLog(path / "log.jsonl") if group.rank == 0 else Callback()

    def first_seed(self, estimator: Any, seed: int) -> int:
        """Return the seed that the run began with, if it did and the user gave none."""
        path = self.path / "settings.json"
        begun = path.exists() and estimator.random_state is None
        return int(read_settings(path)["seed"]) if begun else seed

    def sizes(self, choose: Callable[[Mapping[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Choose the sizes of a run once: another machine resumes with the same."""
        path = self.path / "settings.json"
        found = read_settings(path)
        begun = sizes_from(found["sizes"], path) if "sizes" in found else {}
        sizes = choose(begun)
        if not begun:
            _write_settings(path, {**found, "sizes": sizes})
        return sizes

    def model(self) -> bytes | None:
        """The file of a finished model, or nothing."""
        path = self.model_path
        return self.group.bytes_of_first(lambda: read_bytes(path) if path.exists() else None)

    def open(self, estimator: Any, data: str, about: dict[str, Any], seed: int) -> int:
        """Begin, or go on; returns the seed that the run began with.

        `data` is a digest of the data, and `about` what a report says of them.
        """
        asked = {
            "estimator": type(estimator).__name__,
            "parameters": parameters_of(estimator),
            "parts_sha256": _digest_of_parts(
                estimator.orbit, estimator.feature_map, estimator.kernel
            ),
            "data_sha256": data,
        }
        path = self.path / "settings.json"
        self.path.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.path)
        if not path.exists():
            record = {"version": VERSION, **asked, "data": about, "seed": seed}
            record["versions"] = _versions()
            _write_settings(path, record)
            return seed
        found = read_settings(path)
        different = [name for name in asked if found.get(name) != asked[name]]
        if not isinstance(estimator.random_state, int) and estimator.random_state is not None:
            different += ["seed"] * (found.get("seed") != seed)
        if different:
            raise InputError(
                f"{self.path} holds another run, with different {', '.join(different)}; choose "
                "another folder, or delete this one to start again"
            )
        self.log.announced(RESUMED)
        if found.get("versions") != _versions():
            message = (
                f"the run began with {found.get('versions')} and is resumed with {_versions()}: it "
                "will end well, but not bit for bit as it would have"
            )
            self.log.warned(message)
            warnings.warn(message, UserWarning, stacklevel=2)
        return int(found["seed"])

    def finish(self, estimator: Any, x: Tensor, y: Tensor, raw: np.ndarray) -> None:
        """Leave what was fitted, and some inputs as the model sees them with labels as given."""
        if self.group.rank > 0:
            return
        chosen = example_rows(y)
        labels = [
            label if isinstance(label, int | float | str | list) else str(label)
            for label in raw[chosen].tolist()
        ]
        tensors = {"inputs": x[torch.tensor(chosen)]}
        write_sealed(self.path / "examples.safetensors", EXAMPLES, tensors, {"labels": labels})
        self.log.announced(ENDED)
        write_fitted(estimator, self.model_path)


def read_examples(path: Path) -> tuple[Tensor, list[Any]]:
    """Inputs and labels that a run kept."""
    _, tensors, config = read_sealed(path, EXAMPLES)
    try:
        inputs, labels = tensors["inputs"], list(config["labels"])
        fits = inputs.ndim >= 2 and inputs.is_floating_point() and bool(inputs.isfinite().all())
        if len(labels) != len(inputs) or len(inputs) > MAX_EXAMPLES or not fits:
            raise ValueError(f"{len(labels)} labels for inputs of shape {list(inputs.shape)}")
    except MALFORMED as error:
        raise FileError(
            f"{path} does not hold the examples of a run ({type(error).__name__}: {error})"
        ) from None
    return inputs, labels


def example_rows(y: Tensor) -> list[int]:
    """The first rows, as many of each class; of more classes than fit, an even choice."""
    if y.is_floating_point():
        return list(range(min(MAX_EXAMPLES, len(y))))
    classes = y.unique().tolist()
    shown = min(len(classes), MAX_EXAMPLES)
    classes = [classes[place * len(classes) // shown] for place in range(shown)]
    each = MAX_EXAMPLES // shown
    return [row for c in classes for row in (y == c).nonzero().flatten()[:each].tolist()]


def about_data(num_data: int, X: np.ndarray, labels: np.ndarray | None) -> dict[str, Any]:
    """How many inputs, their shape, and how many of each class; labels are those of all inputs."""
    known = [] if labels is None else zip(*np.unique(labels, return_counts=True), strict=True)
    classes = {str(label): int(count) for label, count in known}
    return {"num_inputs": num_data, "shape": list(X.shape[1:]), "classes": classes}


def num_inputs(run: Path) -> int:
    """How many inputs a run was fitted to."""
    path = run / "settings.json"
    try:
        return int(read_settings(path)["data"]["num_inputs"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{path} does not say how many inputs there were ({error!r})") from None


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


def read_settings(path: Path) -> dict[str, Any]:
    """What a run was asked to do, if the file is a settings file."""
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


def _write_settings(path: Path, record: Mapping[str, Any]) -> None:
    text = json.dumps(record, indent=2, ensure_ascii=False)
    write_atomically(path, text.encode())


def _versions() -> dict[str, Any]:
    """What has to be the same for a run to go on bit for bit."""
    packages = {name: version(name) for name in ("orbitgp", "torch", "gpytorch", "numpy")}
    threads = torch.get_num_threads()
    return {**packages, "python": platform.python_version(), "threads": threads}
