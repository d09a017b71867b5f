"""A coverage-guided fuzzer for what is loaded from files: `make fuzz`.

The first byte chooses between the bytes of a file as they are, a change of one place under a seal
that is right again, and a model file with any JSON for its config. Anything but a typed error or a
loaded object is a finding.
"""

import contextlib
import json
import random
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["orbitgp"]):
    import orbitgp.blueprints.model
    import orbitgp.estimators.archive
    import orbitgp.files
    import orbitgp.sealed

import numpy as np

from orbitgp import FileError, InvariantGPClassifier, TrainingSettings, save
from orbitgp.sealed import read_sealed, write_sealed
from tests.files.mutations import BYTES, respelled

FORM = "InvariantGPClassifier"


def corpus(folder):
    """Small model files, and what they hold."""
    images = np.random.default_rng(0).random((8, 4, 4))
    settings = TrainingSettings(max_steps=2, scan_draws=4, climb_draws=4)
    for name in ("affine", "mirror"):
        model = InvariantGPClassifier(name, settings=settings, random_state=0)
        save(model.fit(images, [0, 1] * 4), folder / name)
    return folder / "affine"


def main():
    temporary = Path(tempfile.mkdtemp())
    original = corpus(temporary)
    content = original.read_bytes()
    _, tensors, config = read_sealed(original, FORM)
    seeds = temporary / "seeds"
    seeds.mkdir()
    (seeds / "file").write_bytes(b"\0" + content)
    (seeds / "change").write_bytes(b"\1" + b"seed")
    (seeds / "config").write_bytes(b"\2" + json.dumps(config).encode())
    path = temporary / "input"

    def one(data):
        mode, rest = data[:1], data[1:]
        chance = random.Random(rest)
        if mode == b"\1":
            path.write_bytes(respelled(original, FORM, chance))
        elif mode == b"\2":
            with contextlib.suppress(ValueError, RecursionError):
                write_sealed(path, FORM, tensors, json.loads(rest))
        elif mode == b"\3":
            path.write_bytes(chance.choice(BYTES)(content, chance, temporary))
        else:
            path.write_bytes(rest)
        with contextlib.suppress(FileError):
            orbitgp.files.load(path)
        assert not (temporary / "ran").exists(), "code was run"

    atheris.Setup([*sys.argv, str(seeds)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
