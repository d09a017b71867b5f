"""summary.json, docs/benchmarks.md and its figure, from the recorded results.

python -m benchmarks.suite.summary
"""

import argparse
import json
from pathlib import Path

from benchmarks.suite.contests import Result, fractions
from benchmarks.suite.figure import draw
from benchmarks.suite.page import FIGURE, page
from benchmarks.suite.run import RESULTS

DOCS = Path(__file__).parents[2] / "docs"
FILE = "summary.json"


def recorded(folder: Path) -> list[Result]:
    """Every result, in the order of the names of their files."""
    paths = sorted(path for path in folder.glob("*.json") if path.name != FILE)
    return [json.loads(path.read_text()) for path in paths]


def summarise(folder: Path, docs: Path) -> None:
    """Write all three."""
    results = recorded(folder)
    summary = fractions(results)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps(summary, indent=2) + "\n")
    figure = draw(results, docs / FIGURE)
    (docs / "benchmarks.md").write_text(page(results, summary, figure=figure))
    print(json.dumps(summary))


def main() -> None:
    """Of the results in one folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path, default=DOCS)
    arguments = parser.parse_args()
    summarise(arguments.results, arguments.docs)


if __name__ == "__main__":
    main()
