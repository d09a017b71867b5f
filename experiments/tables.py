"""The tables of docs/results.md, made from the recorded results.

python -m experiments.tables

Each stands between `<!-- NAME -->` and `<!-- end -->`; the text around them is left alone.
"""

import json
import re
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.record import RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "results.md"

Row = Sequence[object]


def results(pattern: str) -> list[dict[str, Any]]:
    """Recorded results by name, those of all seeds in order."""
    return [json.loads(path.read_text()) for path in sorted(RESULTS.glob(f"{pattern}.json"))]


def table(head: Row, rows: Sequence[Row]) -> str:
    """In Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def spread(values: Sequence[float], digits: int = 2) -> str:
    """One value, or the mean of several and their standard deviation; – for none."""
    if not values:
        return "–"
    mean = f"{statistics.mean(values):,.{digits}f}"
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{mean} ± {deviation:.{digits}f}" if len(values) > 1 else mean


def of(found: Sequence[dict[str, Any]], name: str, digits: int = 2) -> str:
    """That value in all of these results."""
    return spread([result[name] for result in found], digits)


def mnist() -> str:
    """The paper's table, and beyond it."""
    paper = {"none": "2.15", "rotation": "2.08", "affine": "1.35", "local": "1.47"}
    rows = []
    for features in ("pixels", "oriented"):
        for orbit in ("none", "rotation", "affine", "local", "affine+local"):
            found = results(f"mnist-{features}-{orbit}-60000-*")
            seconds = [result["seconds"]["total"] / 60 for result in found]
            rows.append(
                [
                    f"{features}, {orbit}",
                    paper.get(orbit, "–") if features == "pixels" else "–",
                    of(found, "test_error"),
                    of(found, "test_nll", 4),
                    of(found, "test_ece", 4),
                    of(found, "elbo", 0),
                    of(found, "elbo_standard_error", 0),
                    spread(seconds, 1),
                    len(found),
                ]
            )
    scores = ["paper, %", "error, %", "NLL", "ECE", "ELBO", "its error"]
    return table(["features, orbit", *scores, "fit, min", "seeds"], rows)


def few_labels() -> str:
    """Test errors with few labels, beside others on the same draws."""
    others = {"cnn": "CNN", "cnn_augmented": "CNN, augmented by hand", "svgp": "SVGP", "svm": "SVM"}
    rows = []
    for count in (300, 1000, 3000, 10_000):
        ours = results(f"mnist-oriented-affine+local-{count}-*")
        theirs = results(f"few-labels-{count}-*")
        errors = [of(theirs, f"{name}_test_error") for name in others]
        rows.append([f"{count:,}", of(ours, "test_error"), *errors, max(len(ours), len(theirs))])
    return table(["images", "orbitgp", *others.values(), "draws"], rows)


def hand_set() -> str:
    """Learned ranges and five that were set by hand."""
    rows = [
        [name, row["test_error"], row["test_nll"], f"{row['elbo']:,.0f}"]
        for result in results("mnist-hand-set-*")
        for name, row in result["rows"].items()
    ]
    return table(["ranges", "error, %", "NLL", "ELBO"], rows)


def tangent() -> str:
    """Deformations as a warp and to first order."""
    rows = []
    for result in results("mnist-tangent-*"):
        for name, row in result["rows"].items():
            scores = [row["test_error"], row["test_nll"], f"{row['elbo']:,.0f}"]
            rows.append([f"{result['num_data']:,}", name, *scores, row["microseconds_for_a_draw"]])
    return table(["images", "deformation", "error, %", "NLL", "ELBO", "µs for a draw"], rows)


def starts() -> str:
    """Where stage one ends from each start."""
    rows = []
    for result in results("mnist-starts-*"):
        for row in result["named"] + result["starts"]:
            dropped = "yes" if row["dropped_by_screen"] else "no"
            below = f"{100 * row['below_best']:.2f}"
            rows.append([result["ends"], row["start"], row["lengthscale_factor"]])
            rows[-1] += [f"{row['elbo']:,.0f}", below, dropped, row["recoveries"]]
    head = ["ends", "start", "lengthscale ×", "ELBO", "below the best, %", "dropped by the screen"]
    return table([*head, "recoveries"], rows)


def gradient_noise() -> str:
    """What orbit samples are worth in a gradient."""
    rows = [
        [result["features"], row["num_samples"], row["orbit_part"], row["times_the_least"]]
        for result in results("mnist-gradient-noise-*")
        for row in result["rows"]
    ]
    return table(["features", "S", "orbit noise, part of all", "variance × seconds"], rows)


def growth() -> str:
    """Test error as one size of a solve grows, the others as usual."""
    symbols = {"num_points": "M", "num_samples": "S", "num_averaged": "J", "num_data": "N"}
    rows = []
    for result in results("mnist-growth-*"):
        for name, symbol in symbols.items():
            for point in result[name]:
                scores = point["test_error"], f"{point['seconds']:.1f}"
                rows.append([result["features"], symbol, f"{point[name]:,}", *scores])
    return table(["features", "what grows", "to", "error, %", "s"], rows)


def likelihoods() -> str:
    """Gaussian codes, Pólya-Gamma, softmax and broken sticks."""
    found = []
    for result in results("likelihoods-*"):
        labels = result["data"], result.get("orbit", "affine")
        for name, row in result["likelihoods"].items():
            found.append((*labels, name, row["num_inducing"], row["seconds"], row))
    for orbit in ("affine", "affine+local"):  # the same, as the first table has it
        for row in results(f"mnist-pixels-{orbit}-60000-0"):
            sizes = row["settings"]["num_inducing"], row["seconds"]["total"]
            found.append(("mnist-60000", orbit, "gaussian", *sizes, row))
    rows = []
    for *labels, num_inducing, seconds, row in sorted(found, key=lambda entry: entry[:3]):
        scores = [row["test_error"], row["test_nll"], row["test_ece"], f"{row['elbo']:,.0f}"]
        rows.append([*labels, *scores, num_inducing, round(seconds)])
    return table(["data", "orbit", "likelihood", "error, %", "NLL", "ECE", "ELBO", "M", "s"], rows)


def partial_rotation() -> str:
    """Figure 3 of the paper in numbers."""
    rows = []
    for angle in (90, 180):
        for kind in ("", "-recognition"):
            found = results(f"partial-rotation-{angle}-*[0-9]{kind}-[0-9]")
            found = sorted(found, key=lambda result: result["start"])
            label = "network" if kind else "carried"
            runs = [(f"±{r['start']}°", f"±{r['learned_angle']}°", r) for r in found]
            runs += [("no invariance", "–", r["without_invariance"]) for r in found[:1]]
            for start, learned, result in runs:
                errors = result["test_error"], result.get("test_error_of_inducing_variables", "–")
                rows.append([f"±{angle}°", start, label, learned, *errors])
                rows[-1] += [f"{result[name]:,.0f}" for name in ("elbo_of_points", "elbo")]
    head = ["turned by", "start", "local parameters", "learned", "error, %", "of q(u), %"]
    return table([*head, "ELBO of points", "ELBO"], rows)


TABLES: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (
        *(mnist, few_labels, hand_set, tangent, starts, gradient_noise),
        *(growth, likelihoods, partial_rotation),
    )
}


def filled(text: str) -> str:
    """The page with every table made anew."""
    return re.sub(
        r"<!-- (\w+) -->\n.*?<!-- end -->",
        lambda match: f"<!-- {match[1]} -->\n{TABLES[match[1]]()}\n<!-- end -->",
        text,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
