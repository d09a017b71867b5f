"""How we measure: the contenders take turns in one run, and only ratios of medians are quoted.

Absolute times on a shared machine are noise; so is a ratio between two runs.
"""

import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from experiments.record import machine

RESULTS = Path(__file__).parent / "results"


def interleaved(
    contenders: Mapping[str, Callable[[], object]], repeats: int
) -> dict[str, list[float]]:
    """Seconds of each contender in each of `repeats` rounds, after one round to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for round_ in range(repeats + 1):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            if round_:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def report(
    name: str, seconds: dict[str, list[float]], settings: Mapping[str, object], command: str
) -> None:
    """Write `results/NAME.json` and print it in one line, the last."""
    medians = {key: statistics.median(values) for key, values in seconds.items()}
    result = {
        "benchmark": name,
        "ratio_to_bare": round(medians["orbitgp"] / medians["bare"], 3),
        "ratio_to_gpytorch": round(medians["orbitgp"] / medians["gpytorch"], 3)
        if "gpytorch" in medians
        else None,
        "seconds": {key: _spread(values) for key, values in seconds.items()},
        "settings": dict(settings),
        "command": command,
        "machine": machine(),
    }
    write_result(RESULTS / f"{name}.json", result)


def write_result(path: Path, result: Mapping[str, object]) -> None:
    """Into its file, and in one line, the last, on the screen."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result))


def _spread(values: list[float]) -> dict[str, float]:
    lower, median, upper = statistics.quantiles(values, n=4)
    return {"median": round(median, 4), "iqr": round(upper - lower, 4)}
