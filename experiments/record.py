"""How a result is recorded."""

import json
from pathlib import Path
from typing import Any

import torch

import orbitgp
from benchmarks.timing import machine

RESULTS = Path(__file__).parent / "results"


def record(folder: Path, name: str, command: str, seed: int, values: dict[str, Any]) -> Path:
    """Write NAME-SEED.json with all that is needed to get the result again; returns its path."""
    result = {
        "command": f"{command} --seed {seed}",
        "seed": seed,
        **values,
        "versions": {"orbitgp": orbitgp.__version__, "torch": torch.__version__},
        "machine": machine(),
    }
    path = folder / f"{name}-{seed}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    print(f"wrote {path}")
    return path
