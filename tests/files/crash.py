"""Kill a run with SIGKILL at random moments, go on each time, and compare the last file.

`python -m tests.files.crash 50` is `make crash-test`: half of the kills come at a random time, half
in the middle of writing a file (before or after it was flushed, before or after it was renamed).
"""

import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks.timing import RESULTS, machine
from orbitgp import InvariantGPClassifier, TrainingSettings
from tests.processes import FORKS

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows SIGTERM ends a process at once
KILLED = KILL if os.name == "nt" else -KILL
SETTINGS = TrainingSettings(max_steps=6, climb_size=50, climb_draws=8)


def bars(num_data):
    random = np.random.default_rng(0)
    images, labels = 0.3 * random.random((num_data, 8, 8)), random.integers(3, size=num_data)
    for image, label in zip(images, labels, strict=True):
        place = random.integers(1, 7)
        image[[(place, slice(None)), (slice(None), place), (place, place)][label]] += 1
    return images, labels


def work(folder, kill):
    """Fit in a folder, and die there if told how."""
    torch.set_num_threads(1)
    if kill is not None:
        threading.Timer(*kill[1:], die).start() if kill[0] == "time" else die_in_call(*kill)
    model = InvariantGPClassifier("affine", settings=SETTINGS, run=folder, random_state=1)
    model.fit(*bars(60))


def die():
    os.kill(os.getpid(), KILL)


def die_in_call(name, number, before):
    """At the n-th call of os.fsync or os.replace, just before or just after it."""
    original, calls = getattr(os, name), [0]

    def call(*arguments):
        calls[0] += 1
        if calls[0] == number and before:
            die()
        result = original(*arguments)
        if calls[0] == number:
            die()
        return result

    setattr(os, name, call)


def run(folder, kill=None):
    """Whether a process of its own came to the end."""
    process = FORKS.Process(target=work, args=(folder, kill))
    process.start()
    process.join()
    assert process.exitcode in (0, KILLED), f"exit code {process.exitcode}"
    return process.exitcode == 0


def crash_test(num_kills, folder, seed=0):
    """Returns the bytes of the undisturbed model and those of every run that was killed."""
    chance, kills, rounds = random.Random(seed), 0, 0
    start = time.monotonic()
    assert run(folder / "undisturbed")
    seconds = time.monotonic() - start
    expected = (folder / "undisturbed" / "model.safetensors").read_bytes()
    while kills < num_kills:
        rounds += 1
        place = folder / f"killed-{rounds}"
        for _ in range(10):
            kill = chance.choice(
                [
                    ("time", chance.uniform(0, seconds)),
                    ("fsync", chance.randrange(1, 12), chance.random() < 0.5),
                    ("replace", chance.randrange(1, 8), chance.random() < 0.5),
                ]
            )
            if kills == num_kills or run(place, kill):
                break
            kills += 1
        assert run(place)
        assert (place / "model.safetensors").read_bytes() == expected, f"round {rounds} differs"
        left = list(place.glob("*.tmp"))
        for path in left:
            os.utime(path, (0, 0))  # a day later it is nobody's
        assert not left or run(place)
        assert not list(place.glob("*.tmp")), "a temporary file was left"
    return kills, rounds


def main():
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        kills, rounds = crash_test(int(sys.argv[1]), Path(temporary))
    result = {
        "kills": kills,
        "runs": rounds,
        "byte_identical": True,  # or the run above would have ended with an error
        "seconds": round(time.monotonic() - start),
        "seed": 0,
        "command": f"python -m tests.files.crash {kills}",
        "machine": machine(),
    }
    (RESULTS / "crash-test.json").write_text(json.dumps(result, indent=2) + "\n")
    print(f"{kills} kills in {rounds} runs: every model file is byte for byte the undisturbed one")


if __name__ == "__main__":
    main()
