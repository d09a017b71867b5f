"""Commands as processes, small data, and runs that several tests look at."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from tests.files.crash import bars
from tests.processes import python

ROOT = Path(__file__).parents[2]
QUICK = (
    *("--settings.max_steps", "4", "--settings.scan_draws", "4", "--settings.climb_draws", "4"),
    *("--num_inducing", "30"),
)


def environment():
    kept = {name: value for name, value in os.environ.items() if name != "ORBITGP_DATA"}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def orbitgp(*arguments, module="orbitgp", **more):
    """A command as a process of its own."""
    return python("-m", module, *arguments, cwd=ROOT, env={**environment(), **more})


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """60 images of three classes and 20 to test with."""
    path = tmp_path_factory.mktemp("images") / "bars.npz"
    x, y = bars(80)
    np.savez(path, x_train=x[:60], y_train=y[:60], x_test=x[60:], y_test=y[60:])
    return path


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    """40 rows with a number to predict, in the middle."""
    path = tmp_path_factory.mktemp("table") / "sums.csv"
    x = np.random.default_rng(0).normal(size=(40, 2))
    rows = [f"{a},{a + 2 * b},{b}" for a, b in x]
    path.write_text("\n".join(["a,sum,b", *rows]) + "\n")
    return path


@pytest.fixture(scope="session")
def fitted(tmp_path_factory, images):
    """A finished run by way of a configuration file, one of whose options is overridden."""
    folder = tmp_path_factory.mktemp("fitted")
    config = folder / "fit.yaml"
    lines = ["orbit: affine", "num_inducing: 30", "seed: 7", "settings:", "  max_steps: 4"]
    config.write_text(
        "\n".join([f"data: {images}", *lines, "  scan_draws: 4", "  climb_draws: 1000", ""])
    )
    process = orbitgp(
        *("fit", "--config", config, "--settings.climb_draws", 4, "--seed", 1),
        *("--out", folder / "run", "--json"),
    )
    assert process.returncode == 0, process.stderr
    return folder / "run", json.loads(process.stdout), process
