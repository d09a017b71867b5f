"""Spoilt files give a typed error or are proven identical: no crash, no hang, no code, no waste."""

import contextlib
import hashlib
import json
import random
import struct
import sys
import time
from functools import partial

import numpy as np
import pytest
import torch

import orbitgp
from orbitgp import FileError, InvariantGPClassifier, OrbitGPError
from orbitgp.callbacks.base import Callback
from orbitgp.estimators.folder import NoFolder
from orbitgp.estimators.task import Task
from orbitgp.fit.checkpoint import FORM, FileCheckpoint
from orbitgp.fit.learning import Learning
from orbitgp.inference.passes import Resident
from orbitgp.orbits.names import starting_orbit
from orbitgp.sealed import read_sealed, write_sealed
from tests.conftest import QUICK, without_checks_of_shapes
from tests.files.mutations import BYTES, respelled

try:
    import resource
except ImportError:  # Windows does not say how much memory was taken
    resource = None

MUTATIONS, RESPELLED = 1000, 300


def peak_memory():
    """Kilobytes; macOS counts bytes."""
    if resource is None:
        return 0
    unit = 1024 if sys.platform == "darwin" else 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit


class Stop(Callback):
    """Ends a run in the middle, as a kill would."""

    def stepped(self, step):
        if step == 3:
            raise RuntimeError("stopped")


def bars(num_data):
    images = 0.1 * np.random.default_rng(0).random((num_data, 5, 5))
    images[::2, 2] = 1
    images[1::2, :, 2] = 1
    return images, np.array(["lying", "standing"] * (num_data // 2))


def classifier(**parameters):
    return InvariantGPClassifier("affine", settings=QUICK, random_state=0, **parameters)


@pytest.fixture(scope="module")
@without_checks_of_shapes()
def folder(tmp_path_factory):
    """A model file, and a checkpoint from the middle of a run."""
    folder = tmp_path_factory.mktemp("files")
    images, labels = bars(12)
    orbitgp.save(classifier().fit(images, labels), folder / "model")
    with pytest.raises(RuntimeError, match="stopped"):
        classifier(run=folder / "run", callbacks=[Stop()]).fit(images, labels)
    return folder


def new_run():
    images, labels = bars(12)
    codes = torch.from_numpy((labels == "standing").astype(np.int64))
    likelihood = orbitgp.OneHotGaussian(2, noise=0.05)
    generator = torch.Generator().manual_seed(0)
    model = classifier()
    model.scale_ = 1.0
    orbit, examples = (
        starting_orbit("affine", images.shape[1:]),
        Resident(model._inputs(images), codes),
    )
    task = Task(likelihood, max_ratio=300.0, in_memory=True)
    return model._learning(orbit, examples, task, generator, NoFolder(), orbitgp.Callback())[0]


def load_model(path):
    return orbitgp.load(path)


def load_checkpoint(path, run=None):
    run = run or new_run()
    FileCheckpoint(path).restore(run)
    return run


FILES = {
    "model": (load_model, "model", "InvariantGPClassifier"),
    "checkpoint": (load_checkpoint, "run/checkpoint.safetensors", FORM),
}


def outcome(function, argument):
    """What came of it, or None for a typed error; any other error goes through."""
    try:
        return function(argument)
    except OrbitGPError:
        return None


@pytest.mark.parametrize("kind", FILES)
def test_spoilt_bytes_are_refused(kind, folder, tmp_path):
    load, name, _ = FILES[kind]
    if kind == "checkpoint":  # one run for all: a file that is refused leaves it as it was
        load = partial(load_checkpoint, run=new_run())
    original, chance = (folder / name).read_bytes(), random.Random(kind)
    assert load(folder / name) is not None
    before, slowest, refused = peak_memory(), 0.0, 0
    for number in range(MUTATIONS):
        mutate = BYTES[number % len(BYTES)]
        data = mutate(original, chance, tmp_path)
        path = tmp_path / "spoilt"
        path.write_bytes(data)
        start = time.monotonic()
        result = outcome(load, path)
        slowest = max(slowest, time.monotonic() - start)
        assert result is None or data == original, mutate.__name__
        refused += result is None
    assert refused > 0.9 * MUTATIONS
    assert not (tmp_path / "ran").exists()
    assert slowest < 5
    grown = peak_memory() - before
    assert grown < 2**20, f"{grown} kB more"


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("kind", FILES)
def test_spoilt_content_under_a_right_seal_is_refused_or_usable(kind, folder, tmp_path):
    """Whoever can seal can also write a file that is right; nothing else may get through."""
    load, name, form = FILES[kind]
    (tmp_path / "original").write_bytes((folder / name).read_bytes())
    chance, images = random.Random(kind), bars(12)[0]
    refused = 0
    for _ in range(RESPELLED):
        (tmp_path / "changed").write_bytes(respelled(tmp_path / "original", form, chance))
        result = outcome(load, tmp_path / "changed")
        refused += result is None
        if isinstance(result, InvariantGPClassifier):
            with contextlib.suppress(ValueError):  # of scikit-learn, for other inputs
                outcome(result.predict_proba, images)
        elif isinstance(result, Learning):
            outcome(result.landscape(8, 2).at, result.z)
    print(f"{kind}: {refused} of {RESPELLED} refused")
    assert refused > 0.4 * RESPELLED


def amplified(change, folder, tmp_path):
    """A model file with a change that asks for far more than it holds."""
    _, tensors, config = read_sealed(folder / "model", "InvariantGPClassifier")
    tensors = dict(tensors)
    change(tensors, config)
    write_sealed(tmp_path / "large", "InvariantGPClassifier", tensors, config)
    return tmp_path / "large"


def empty(name, *shape):
    def change(tensors, config):
        tensors[f"model.{name}"] = torch.zeros(shape, dtype=tensors[f"model.{name}"].dtype)

    return change


def group(*parts):
    def change(tensors, config):
        config["model"]["orbit"] = {"kind": "compose", "parts": list(parts)}

    return change


def wide_text(tensors, config):
    config["arrays"]["classes_"] = ["<U9999", [""] * 100_000]


def own_folder(tensors, config):
    config["parameters"]["run"] = "/tmp"


FLIPS = {"kind": "SignFlips", "coordinates": list(range(16))}
CYCLES = [[*range(i, 200), *range(i)] for i in range(1, 200)]
SWAPS = [[*range(i), i + 1, i, *range(i + 2, 200)] for i in range(199)]


@pytest.mark.parametrize(
    "change",
    [
        *(empty("likelihood.raw_noise", 50_000_000, 0), empty("likelihood.raw_noise", 2**40, 0)),
        *(empty("posterior.packed", 0, 8000), empty("kernel.raw_lengthscale", 0, 200_000_000)),
        *(empty("orbit.ranges.raw", 0, 10**9), group(*[FLIPS] * 300)),
        group({"kind": "PermutationGroup", "generators": CYCLES + SWAPS, "dim": -1}, FLIPS),
        *(wide_text, own_folder),
    ],
)
def test_small_files_cannot_ask_for_much(change, folder, tmp_path):
    before, start = peak_memory(), time.monotonic()
    with pytest.raises(FileError):
        orbitgp.load(amplified(change, folder, tmp_path))
    assert time.monotonic() - start < 10
    assert peak_memory() - before < 2**19


@pytest.mark.parametrize("shape", [[0, 2**63], [0, 2**40, 2**40]])
def test_shapes_beyond_any_tensor(shape, tmp_path):
    seal = {"sha256": "0" * 64, "form": "InvariantGP", "version": 1, "config": {}}
    places = {"x": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}
    header = json.dumps({"__metadata__": {"orbitgp": json.dumps(seal)}, **places}).encode()
    data = struct.pack("<Q", len(header)) + header
    digest = hashlib.sha256(data).hexdigest().encode()
    (tmp_path / "file").write_bytes(data.replace(b"0" * 64, digest))
    with pytest.raises(FileError):
        orbitgp.load(tmp_path / "file")


def test_a_path_that_no_file_can_have():
    for path in ("x" * 5000, "a\0b"):
        with pytest.raises(FileError, match="cannot be opened"):
            orbitgp.load(path)
