"""Every tutorial runs as it stands, and shows what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_runs(path):
    run = subprocess.run(
        [sys.executable, str(path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "MPLBACKEND": "Agg"},
    )
    print(run.stdout)
    if path.stem != "plot_symmetric_function":
        worse, better = (float(error) for error in re.findall(r"error ([\d.]+)", run.stdout))
        assert better < worse
    plain, invariant = (
        float(nats)
        for nats in re.findall(r"(?:evidence|at least) (-?[\d.]+) (?:± \d+ )?nats", run.stdout)
    )
    assert invariant > plain
