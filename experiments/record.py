"""How a result is recorded."""

import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
import torch

import orbitgp

RESULTS = Path(__file__).parent / "results"


def record(path: Path, command: str, seed: int, values: dict[str, Any]) -> None:
    """Write a result with all that is needed to get it again."""
    result = {
        "command": command,
        "seed": seed,
        **values,
        "versions": {"orbitgp": orbitgp.__version__, "torch": torch.__version__},
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "threads": torch.get_num_threads(),
            "capability": torch.backends.cpu.get_cpu_capability(),
            "python": platform.python_version(),
        },
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    print(f"wrote {path}")


def calibration_error(probabilities: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    """ECE: how far confidence and frequency of being right lie apart, averaged over bins."""
    confidence = probabilities.max(1)
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [abs((confidence - right)[place == b].sum()) for b in range(bins)]
    return float(sum(gaps) / len(right))
