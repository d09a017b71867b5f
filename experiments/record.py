"""How a result is recorded."""

import json
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import torch

import orbitgp

RESULTS = Path(__file__).parent / "results"


def code_version() -> dict[str, Any]:
    """The commit that a result belongs to, and whether anything was changed since."""

    def git(*words: str) -> str:
        command = ["git", *words]
        run = subprocess.run(command, cwd=RESULTS, capture_output=True, text=True, check=False)
        return run.stdout.strip() if run.returncode == 0 else ""

    folders = (":/src", ":/experiments", ":/benchmarks")
    changed = git("status", "--porcelain", "--untracked-files=no", "--", *folders)
    lines = [line for line in changed.splitlines() if "/results/" not in line]
    commit = git("rev-parse", "HEAD") or None
    return {"commit": commit, "clean": commit is not None and not lines}


def machine() -> dict[str, object]:
    """Return the CPU and the versions that a result was measured with."""
    return {
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "gpytorch": gpytorch.__version__,
    }


def _processor() -> str:
    """Return the name that its maker gives it, if PyTorch knows it, or the architecture."""
    capabilities = getattr(torch.cpu, "get_capabilities", dict)()
    return str(capabilities.get("cpu_name") or platform.machine())


def record(folder: Path, name: str, command: str, seed: int, values: dict[str, Any]) -> Path:
    """Write NAME-SEED.json with all that is needed to get the result again; returns its path."""
    result = {
        "command": f"{command} --seed {seed}",
        "seed": seed,
        **values,
        "versions": {library.__name__: library.__version__ for library in (orbitgp, torch, np)},
        "machine": machine(),
        **code_version(),
    }
    path = folder / f"{name}-{seed}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    print(f"wrote {path}")
    return path


def record_once(
    folder: Path, name: str, command: str, seed: int, run: Callable[[], dict[str, Any]]
) -> None:
    """Run and record, unless this code has already written the result."""
    path = folder / f"{name}-{seed}.json"
    if path.exists():
        found, version = json.loads(path.read_text()), code_version()
        if version["clean"] and found.get("clean") and found.get("commit") == version["commit"]:
            return
    values = run()
    print({"seed": seed, **values}, flush=True)
    record(folder, name, command, seed, values)
