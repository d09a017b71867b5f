"""Every tutorial runs as it stands, and shows what it says."""

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
        [sys.executable, str(path)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    print(run.stdout)
    if path.stem == "learn_a_range":
        plain, affine = (int(nats) for nats in re.findall(r"at least (-?\d+)", run.stdout))
        assert affine > plain
        worse, better = (float(error) for error in re.findall(r"error ([\d.]+)", run.stdout))
        assert better < worse
