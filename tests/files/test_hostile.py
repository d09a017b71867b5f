"""Spoilt files give a typed error or are proven identical: no crash, no hang, no code, no waste."""

import contextlib
import random
import resource
import time

import numpy as np
import pytest
import torch

import orbitgp
from orbitgp import InvariantGPClassifier, OrbitGPError, TrainingSettings
from orbitgp.training.callbacks import Callback
from orbitgp.training.checkpoint import FORM, FileCheckpoint
from orbitgp.training.run import Run
from tests.files.mutations import BYTES, respelled

MUTATIONS = 1000


class Stop(Callback):
    """Ends a run in the middle, as a kill would."""

    def stepped(self, step):
        if step == 15:
            raise RuntimeError("stopped")


def bars(num_data):
    images = 0.1 * np.random.default_rng(0).random((num_data, 5, 5))
    images[::2, 2] = 1
    images[1::2, :, 2] = 1
    return images, np.array(["lying", "standing"] * (num_data // 2))


def classifier(**parameters):
    settings = TrainingSettings(max_steps=20, evaluate_every=5)
    return InvariantGPClassifier("affine", settings=settings, random_state=0, **parameters)


@pytest.fixture(scope="module")
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
    return classifier()._run(images, codes, likelihood, 0.2, 12, generator)


def load_model(path):
    return orbitgp.load(path)


def load_checkpoint(path):
    run = new_run()
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
    original, chance = (folder / name).read_bytes(), random.Random(kind)
    assert load(folder / name) is not None
    before, slowest, refused = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0.0, 0
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
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 2**20, f"{grown} kB more"


@pytest.mark.parametrize("kind", FILES)
def test_spoilt_content_under_a_right_seal_is_refused_or_usable(kind, folder, tmp_path):
    """Whoever can seal can also write a file that is right; nothing else may get through."""
    load, name, form = FILES[kind]
    (tmp_path / "original").write_bytes((folder / name).read_bytes())
    chance, images = random.Random(kind), bars(12)[0]
    refused = 0
    for _ in range(MUTATIONS // 2):
        (tmp_path / "changed").write_bytes(respelled(tmp_path / "original", form, chance))
        result = outcome(load, tmp_path / "changed")
        refused += result is None
        if isinstance(result, InvariantGPClassifier):
            with contextlib.suppress(ValueError):  # of scikit-learn, for other inputs
                outcome(result.predict_proba, images)
        elif isinstance(result, Run) and result.training is not None:
            outcome(result.training.advance, Callback())
    print(f"{kind}: {refused} of {MUTATIONS // 2} refused")
    assert refused > 0.4 * MUTATIONS // 2
