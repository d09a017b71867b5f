"""One result for each data set, size, method and seed: `DATA-N-METHOD-SEED.json`.

python -m benchmarks.suite.run [--data ...] [--sizes ...] [--method ...] [--seeds ...] [--out ...]

Cells that are there already are not run again. A cell that fails records why, and stops no other;
delete its file to try it again. Small sizes and first seeds of all data come first.
"""

import argparse
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.suite.methods import METHODS, Method, methods_for
from experiments.prediction import scores
from experiments.record import record
from experiments.splits import SEEDS, SIZES, SOURCES, Source, load, sizes_of

RESULTS = Path(__file__).parent / "results"


class Cell(NamedTuple):
    """What one result is of."""

    source: Source
    size: int
    method: Method
    seed: int

    @property
    def name(self) -> str:
        """As its file has it, before the seed."""
        return f"{self.source.name}-{self.size}-{self.method.name}"

    @property
    def command(self) -> str:
        """What runs it, before the seed."""
        size = "" if self.source.kind == "series" else f" --sizes {self.size}"
        options = f"--data {self.source.name}{size} --method {self.method.name}"
        return f"python -m benchmarks.suite.run {options}"

    def path(self, folder: Path) -> Path:
        """Its file."""
        return folder / f"{self.name}-{self.seed}.json"


def cells(
    data: Sequence[str] = (),
    sizes: Sequence[int] = (),
    methods: Sequence[str] = (),
    seeds: Sequence[int] = SEEDS,
) -> list[Cell]:
    """Those that are asked for, all if nothing is, in the order in which they are run."""
    found: list[tuple[int, int, Cell]] = []
    for source in SOURCES:
        for rank, size in enumerate(sizes_of(source, tuple(sizes or SIZES))):
            for method in methods_for(source):
                asked = (not data or source.name in data) and (
                    not methods or method.name in methods
                )
                found += [(rank, s, Cell(source, size, method, s)) for s in seeds if asked]
    return [cell for *_, cell in sorted(found, key=lambda each: (each[0] + each[1], each[0]))]


def run(cell: Cell) -> dict[str, Any]:
    """What is recorded of a cell."""
    about = {"data": cell.source.name, "size": cell.size, "method": cell.method.name}
    start = time.perf_counter()
    try:
        found = _measured(cell)
    except Exception as error:  # whatever a method raises is its result
        traceback.print_exc()
        found = {"failed": f"{type(error).__name__}: {error}"[:500]}
    return {**about, **found, "seconds": round(time.perf_counter() - start, 1)}


def _measured(cell: Cell) -> dict[str, Any]:
    split = load(cell.source, cell.size, cell.seed)
    prediction = cell.method.run(split, seed=cell.seed)
    tested = {"num_train": len(split.x), "num_test": len(split.x_test)}
    return {**tested, **scores(prediction, split.y_test), **prediction.about}


def remaining(asked: Sequence[Cell], folder: Path) -> Iterator[Cell]:
    """Cells without a file when their turn comes."""
    return (cell for cell in asked if not cell.path(folder).exists())


def main() -> None:
    """All cells that were chosen, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = {"data": [s.name for s in SOURCES], "method": [m.name for m in METHODS]}
    for option, choices in names.items():
        parser.add_argument(f"--{option}", nargs="*", choices=choices, default=[])
    parser.add_argument("--sizes", type=int, nargs="*", default=[])
    parser.add_argument("--seeds", "--seed", type=int, nargs="*", default=list(SEEDS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    for cell in remaining(cells(given.data, given.sizes, given.method, given.seeds), given.out):
        record(given.out, cell.name, cell.command, cell.seed, run(cell))


if __name__ == "__main__":
    main()
