"""Kill a random process of a run at a random moment; torchrun starts all again, and they go on.

`python -m tests.distributed.kills 10` records the result in benchmarks/results/killed-ranks.json.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from benchmarks.timing import RESULTS, machine, write_result
from tests.files.crash import bars

NUM_DATA = 600
OPTIONS = ("--orbit", "affine", "--num_inducing", "100", "--settings.climb_size", "100")


def start(folder, data, world_size):
    """A run of its own, whose processes torchrun looks after."""
    # without a store of its own, a restart with gloo may wait for ever
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(world_size), "--max-restarts", "5", "-m", "orbitgp", "fit"]
    command += ["--data", str(data), "--out", str(folder), *OPTIONS, "--settings.max_steps", "12"]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*command, "--json"], env=environment, **quiet)


def workers(parent):
    """Process ids of the workers that a process has now, in the order of their ranks."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
            if int(fields[1]) == parent and fields[0] != "Z":
                settings = dict(
                    entry.split("=", 1)
                    for entry in (place / "environ").read_text(encoding="utf-8").split("\0")
                    if "=" in entry
                )
                found[int(settings["RANK"])] = int(place.name)
        except (OSError, KeyError, IndexError):  # gone meanwhile, or not a worker
            continue
    return [found[rank] for rank in sorted(found)]


def finish(run, seconds=600):
    """The record that the run printed."""
    output, errors = run.communicate(timeout=seconds)
    assert run.returncode == 0, errors[-2000:]
    return json.loads(output.splitlines()[-1])


def killed_run(folder, data, world_size, moment, chance):
    """A run of which one process is killed after some seconds; whether it was still there."""
    run = start(folder, data, world_size)
    time.sleep(moment)
    there = workers(run.pid)
    if there:
        os.kill(chance.choice(there), signal.SIGKILL)
    record = finish(run)
    lines = [
        json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    resumed = sum(line.get("message") == "the run goes on where it stood" for line in lines)
    return bool(there), resumed, record


def largest_difference(first, second):
    """Of any number in two model files, relative to the largest of its tensor."""
    files = [load_file(folder / "model.safetensors") for folder in (first, second)]
    assert files[0].keys() == files[1].keys()
    gaps = [0.0]
    for name, value in files[0].items():
        first, second = value.astype(np.float64), files[1][name].astype(np.float64)
        np.testing.assert_array_equal(np.isfinite(first), np.isfinite(second))
        few = np.isfinite(first)
        scale = np.abs(first[few]).max(initial=1e-300)
        gaps.append(np.abs(first[few] - second[few]).max(initial=0.0) / scale)
    return float(max(gaps))


def kill_test(num_runs, folder, world_size=2, seed=0):
    """Each run is killed once; all must end with the undisturbed model."""
    chance, data = random.Random(seed), folder / "bars.npz"
    images, labels = bars(NUM_DATA)
    np.savez(data, x=images, y=labels)
    begin = time.monotonic()
    expected = finish(start(folder / "undisturbed", data, world_size))
    seconds = time.monotonic() - begin
    runs, starts = [], 0
    while len(runs) < num_runs:
        place, starts = folder / f"killed-{starts}", starts + 1
        moment = chance.uniform(0.1, 0.95) * seconds
        there, resumed, record = killed_run(place, data, world_size, moment, chance)
        gap = largest_difference(place, folder / "undisturbed")
        if not there:  # it was over before, or not yet there
            continue
        runs.append({"resumed": resumed, "difference": gap})
        print(f"killed after {moment:.1f} s of {seconds:.1f}: {runs[-1]}", flush=True)
        assert gap <= 1e-6
        assert record["num_data"] == expected["num_data"] == NUM_DATA
        assert record["evidence"] == expected["evidence"]
        assert record["processes"] == world_size
    return runs


def main():
    num_runs = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as temporary:
        runs = kill_test(num_runs, Path(temporary))
    result = {
        "killed_runs": len(runs),
        "gone_on_from_a_checkpoint": sum(run["resumed"] > 0 for run in runs),
        "largest_difference": max(run["difference"] for run in runs),
        "world_size": 2,
        "seed": 0,
        "command": f"python -m tests.distributed.kills {num_runs}",
        "machine": machine(),
    }
    write_result(RESULTS / "killed-ranks.json", result)


if __name__ == "__main__":
    main()
