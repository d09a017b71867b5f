"""Every figure and table of the paper, from recorded results or from scratch, in docs/paper.md.

python -m experiments.paper [--run]

Without `--run` figures 3 and 5 are drawn, and the tables made, from what is in
`experiments/results/`; with it, all experiments are run first, which takes about two hours.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from experiments import partial_rotation, rotated, tables
from experiments.record import RESULTS

ANGLES = (90, 180)
RUNS = (
    "symmetric --seed 0",
    *(f"partial_rotation --angle {angle}" for angle in ANGLES),
    *(f"mnist --orbit {orbit} --budget 600" for orbit in ("none", "rotation", "affine", "local")),
    "rotated",
)
"""What is run, as arguments of `python -m experiments.…`."""


def recorded(pattern: str) -> list[dict[str, Any]]:
    """Results by the name of their files."""
    return [json.loads(path.read_text()) for path in sorted(RESULTS.glob(f"{pattern}.json"))]


def draw_figures(folder: Path) -> list[Path]:
    """Figures 3 and 5, as far as there are results."""
    drawn = []
    for angle in ANGLES:
        found = {one["seed"]: one["rows"] for one in recorded(f"partial-rotation-{angle}-*")}
        if found:
            drawn.append(folder / f"partial-rotation-{angle}.png")
            partial_rotation.draw(found, angle, drawn[-1])
    results = recorded("rotated-*")
    if results:
        drawn.append(folder / "rotated.png")
        draw_rotated(results, drawn[-1])
    return drawn


def draw_rotated(results: list[dict[str, Any]], path: Path) -> None:
    """Test error and evidence of each model, a dot for each seed."""
    import matplotlib.pyplot as plt

    names = list(rotated.MODELS)
    figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), sharey=True, layout="constrained")
    labels = {"test_error": "test error (%)", "evidence": "evidence (nats)"}
    for ax, (key, label) in zip(axes, labels.items(), strict=True):
        places = [names.index(result["model"]) for result in results]
        ax.scatter([result[key] for result in results], places, alpha=0.7)
        ax.set(xlabel=label, yticks=range(len(names)), yticklabels=names)
        ax.grid(axis="x", alpha=0.3)
    axes[0].invert_yaxis()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Run if asked to, then draw and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", action="store_true", help="run all experiments first")
    if parser.parse_args().run:
        for run in RUNS:
            module, *options = run.split()
            subprocess.run([sys.executable, "-m", f"experiments.{module}", *options], check=True)
    for path in draw_figures(RESULTS):
        print(f"drew {path.name}")
    tables.write()


if __name__ == "__main__":
    main()
