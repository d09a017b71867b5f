"""Every tutorial runs as it stands, and shows what it says."""

import os
import re
from pathlib import Path

import pytest

from tests.processes import python

ROOT = Path(__file__).parent.parent
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))
LONG = ("cells_by_patient", "colour_photographs", "molecules", "wearable_sensor")
"""Several fits each: the documentation runs them, and `-m slow`."""


def tutorial(path):
    marks = [pytest.mark.slow] if path.stem.removeprefix("plot_") in LONG else []
    return pytest.param(path, marks=marks, id=path.stem)


@pytest.mark.parametrize("path", [tutorial(path) for path in TUTORIALS])
def test_runs(path):
    run = python(path, cwd=ROOT, env={**os.environ, "MPLBACKEND": "Agg"})
    print(run.stdout)
    assert run.returncode == 0, run.stderr
    if path.stem != "plot_symmetric_function":
        worse, *_, better = (float(error) for error in re.findall(r"error ([\d.]+)", run.stdout))
        assert better < worse
    plain, *_, invariant = (
        float(nats)
        for nats in re.findall(r"(?:evidence|at least) (-?[\d.]+) (?:± \d+ )?nats", run.stdout)
    )
    assert invariant > plain
