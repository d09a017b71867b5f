"""The tables of README and docs, made from the recorded results.

python -m experiments.tables

Each stands between `<!-- NAME -->` and `<!-- end -->`; the text around them is left alone.
"""

import itertools
import json
import math
import re
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.atom_order import ORBITS
from experiments.discoveries import DATA as DISCOVERIES
from experiments.feature_choice import FEATURES as FEATURE_MAPS
from experiments.feature_choice import NAMES as FEATURE_DATA
from experiments.feature_network import FEATURES as NETWORK_FEATURES
from experiments.known import FAMILIES as KNOWN
from experiments.order import IMAGE_DATA, IMAGE_FAMILIES, LEARNED, SERIES, SERIES_FAMILIES
from experiments.policies import DATA as POLICY_DATA
from experiments.policies import POLICIES
from experiments.record import RESULTS
from orbitgp.evidence.ablation import worth_from
from orbitgp.orbits.ranges import Range

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("results", "paper", "when_not")),
]

FAMILIES = (*IMAGE_FAMILIES, "shift")
MAX_SEEDS = 10

Row = Sequence[object]


class Results:
    """Recorded results by name, and the commits that those which were read belong to."""

    def __init__(self) -> None:
        self.commits: dict[str, dict[str, str]] = {}

    def __call__(self, pattern: str, part: str = "") -> list[dict[str, Any]]:
        """Those of all seeds, in order; each part of a table may have a commit of its own."""
        found = []
        for path in sorted(RESULTS.glob(f"{pattern}.json")):
            found.append(json.loads(path.read_text()))
            commit, clean = found[-1].get("commit"), found[-1].get("clean", True)
            commits = self.commits.setdefault(part, {})
            commits[path.name] = f"{commit}{'' if clean else ' with changes'}"
        return found

    def check(self, name: str) -> None:
        """Refuse a table whose rows belong to different versions of the code."""
        for commits in self.commits.values():
            if len(set(commits.values())) > 1:
                rows = "\n".join(f"  {file}: {commit}" for file, commit in commits.items())
                raise ValueError(
                    f"the table {name!r} would mix results of different commits; run all of its "
                    f"experiments at one commit, or remove the files of the others:\n{rows}"
                )


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


MNIST = {
    "pixels": ("none", "affine"),
    "oriented": ("none", "affine+local"),
}
PAPER = {"none": "2.15", "rotation": "2.08", "affine": "1.35", "local": "1.47"}


def mnist(results: Results) -> str:
    """The paper's table, and beyond it."""
    rows = []
    for features, orbits in MNIST.items():
        for orbit in orbits:
            found = results(f"mnist-{features}-{orbit}-60000-*")
            minutes = [result["seconds"]["total"] / 60 for result in found]
            rows.append(
                [
                    f"{features}, {orbit}",
                    PAPER.get(orbit, "–") if features == "pixels" else "–",
                    of(found, "test_error"),
                    of(found, "test_nll", 4),
                    of(found, "test_ece", 4),
                    of(found, "elbo", 0),
                    spread(minutes, 1),
                    len(found),
                ]
            )
    scores = ["paper, %", "error, %", "NLL", "ECE", "bound, nats"]
    return table(["features, orbit", *scores, "fit, min", "seeds"], rows)


OTHERS = {
    "cnn": "CNN",
    "cnn_augmented": "CNN, augmented by hand",
    "svgp": "SVGP (GPyTorch)",
    "svm": "SVM",
}


def few_labels(results: Results) -> str:
    """Test errors with few labels, beside others on the same draws."""
    rows = []
    for count in (300, 1000, 3000):
        ours = results(f"mnist-oriented-affine+local-{count}-*")
        theirs = results(f"few-labels-{count}-*")
        errors = [of(theirs, f"{name}_test_error") for name in OTHERS]
        if ours and theirs:
            rows.append([f"{count:,}", of(ours, "test_error"), *errors, len(ours)])
    return table(["labels", "orbitgp", *OTHERS.values(), "draws"], rows)


def usps(results: Results) -> str:
    """With and without a learned affine invariance."""
    rows = []
    for orbit in ("none", "affine"):
        for found in results(f"usps-{orbit}-0"):
            error = found["evidence_standard_error"]
            evidence = f"{found['evidence']:,.0f}" + (f" ± {error:.0f}" if error else "")
            scores = [f"{found[f'test_{name}']:.4f}" for name in ("nll", "ece")]
            rows.append([orbit, found["test_error"], *scores, evidence, round(found["seconds"])])
    return table(["orbit", "error, %", "NLL", "ECE", "evidence, nats", "fit, s"], rows)


def symmetric(results: Results) -> str:
    """Figure 2 of the paper."""
    rows = []
    for found in results("symmetric-*"):
        for name in ("invariant", "non-invariant"):
            errors = [f"{found[name][key]:.4f}" for key in ("train_rmse", "test_rmse")]
            nats = [f"{found[name][key]:.2f}" for key in ("log_evidence", "elbo")]
            rows.append([found["seed"], name, *errors, *nats])
    return table(["seed", "model", "train RMSE", "test RMSE", "log evidence", "bound"], rows)


def molecules(results: Results) -> str:
    """Two energies with intervals."""
    rows = []
    for found in results("molecules-*"):
        scores = (found["mean_absolute_error"], found["coverage_by_output"])
        for name, error, covered in zip(found["outputs"], *scores, strict=True):
            rows.append([name, error, f"{100 * covered:.1f}"])
    return table(["energy", "mean absolute error, kcal/mol", "95 % intervals hold, %"], rows)


def atom_order(results: Results) -> str:
    """What the order of atoms, and rotations, are worth."""
    rows = []
    for name in ORBITS:
        # was added later, and has a commit of its own
        for found in results(f"atom-order-{name}-[0-9]", name if name == "shuffled" else ""):
            evidence = f"{found['evidence']:,.0f} ± {found['evidence_error']:.0f}".replace("-", "−")
            error = f"{found['mean_absolute_error']:.2f} ± {found['error_of_that']:.2f}"
            covered = f"{100 * found['coverage']:.1f}"
            rows.append([name, found["num_draws"], evidence, error, covered])
    head = ["atoms", "draws", "evidence, nats", "mean absolute error, kcal/mol"]
    return table([*head, "95 % intervals hold, %"], rows)


def feature_choice(results: Results) -> str:
    """Evidence and test error of each feature map, and whether the default took a good one."""
    rows = []
    for data in FEATURE_DATA:
        for found in results(f"choice-{data}-default-*"):
            others = [
                one
                for features in FEATURE_MAPS
                if features != "default"
                for one in results(f"choice-{data}-{features}-{found['seed']}")
            ]
            best = min(others, key=lambda one: one["error"])
            cells = [
                f"{one['evidence']:,.0f}, {100 * one['error']:.1f}".replace("-", "−")
                for one in others
            ]
            near = found["error"] <= best["error"] + best["error_error"]
            default = f"{found['chosen']}, {100 * found['error']:.1f}"
            rows.append([data, found["seed"], *cells, default, "yes" if near else "no"])
    head = ["data", "seed", *(name for name in FEATURE_MAPS if name != "default")]
    return table([*head, "default", "within a standard error of the best"], rows)


def feature_network(results: Results) -> str:
    """What a network that was trained by the evidence is worth as features."""
    rows = []
    for data in POLICY_DATA:
        for features in NETWORK_FEATURES:
            found = results(f"feature-{data}-{features}-*")
            if found:
                evidence = of(found, "evidence", 0).replace("-", "−")
                scores = [spread([100 * one["test_error"] for one in found], 1)]
                rows.append([data, features, evidence, *scores, of(found, "test_nll", 3)])
    return table(["data", "features", "evidence, nats", "error, %", "NLL"], rows)


def order(results: Results) -> str:
    """Evidence and test NLL of every family, and whether the evidence points to the NLL."""
    rows = []
    for data in (*SERIES, *IMAGE_DATA):
        for features in ("series", "pixels", "oriented"):
            for seed in range(MAX_SEEDS):
                found = results(f"order-{data}-{features}-*-{seed}")
                if found:
                    rows.append(_order_row(data, features, seed, found))
    head = ["data", "features", "seed", *(f"{family}: nats, NLL" for family in FAMILIES)]
    return table([*head, "most evidence, least NLL", "nested", "agrees"], rows)


def _order_row(data: str, features: str, seed: int, found: list[dict[str, Any]]) -> Row:
    by_family = {result["family"]: result for result in found}
    cells = []
    for family in FAMILIES:
        result = by_family.get(family)
        value = result and f"{result['evidence']:,.0f} ± {result['evidence_error']:.0f}"
        cells.append(f"{value}, {result['test_nll']:.3f}" if result else "–")
    most = max(found, key=lambda result: result["evidence"])
    least = min(found, key=lambda result: result["test_nll"])
    names = f"{most['family']}, {least['family']}"
    verdicts = (is_nested(by_family), agrees(most, least))
    return [data, features, seed, *cells, names, *("yes" if good else "no" for good in verdicts)]


def is_nested(found: dict[str, dict[str, Any]]) -> bool:
    """Whether no learned family has less evidence than one it contains, by two errors."""
    for chain in (LEARNED, SERIES_FAMILIES):
        known = [found[family] for family in chain if family in found]
        for smaller, larger in itertools.combinations(known, 2):
            error = math.hypot(smaller["evidence_error"], larger["evidence_error"])
            if larger["evidence"] < smaller["evidence"] - 2 * error:
                return False
    return True


def agrees(most: dict[str, Any], least: dict[str, Any]) -> bool:
    """Whether the most evidence has the least test NLL, within a standard error of it."""
    return most["test_nll"] <= least["test_nll"] + least["test_nll_error"]


def known_symmetry(results: Results) -> str:
    """A function of four inputs that no permutation changes."""
    rows = []
    for result in results("property-known-symmetry-*"):
        values = result["rows"]
        gap = max(abs(row["evidence"] - row["gpytorch"]) for row in values.values())
        evidence = [f"{values[group]['evidence']:.1f}" for group in ("none", "C4", "S4")]
        covered = f"{100 * values['S4']['coverage95']:.1f}"
        rows.append([result["seed"], *evidence, covered, f"{gap:.0e}"])
    head = ["seed", "none", "cyclic shifts", "all permutations", "its intervals hold, %"]
    return table([*head, "largest difference to GPyTorch"], rows)


def any_start(results: Results) -> str:
    """A shift in time from ranges of very different widths."""
    rows = [
        [
            start,
            f"±{row['learned']:.3f}",
            f"{row['evidence']:.1f}",
            f"{100 * row['test_error']:.0f}",
        ]
        for result in results("property-any-start-*")
        for start, row in result["rows"].items()
    ]
    return table(["start", "learned", "evidence, nats", "error, %"], rows)


def digits(results: Results) -> str:
    """Three families that contain each other, on digits of scikit-learn."""
    rows = []
    for result in results("property-digits-*"):
        for size, values in result["rows"].items():
            cells = [
                f"{row['evidence']:,.0f} ± {row['evidence_error']:.0f}, {row['test_nll']:.3f}"
                for row in values.values()
            ]
            rows.append([size, *cells, "yes" if is_nested(values) else "no"])
    return table(["labels", *(f"{name}: nats, NLL" for name in LEARNED[:3]), "nested"], rows)


def range_spread(results: Results) -> str:
    """Learned ranges over draws of the same number of digits."""
    rows: dict[str, list[str]] = {}
    recorded = results("property-range-spread-*")
    for found in (result["rows"][features] for result in recorded for features in MNIST):
        for own in found["ranges"]:
            digits = 1 if own["unit"] and not own["logarithmic"] else 2
            told = f"{own['identified']} of {len(found['described'])}"
            end = f"{own['mean']:.{digits}f} ± {own['spread']:.{digits}f}"
            title = Range(own["name"], own["unit"], own["part"], math.nan, math.nan).title
            # a smoothness cannot be set to zero, so nothing is said of it
            rows.setdefault(title, []).extend([end, "–" if own["name"] == "smoothness" else told])
    head = ["upper end of"]
    for features in MNIST if rows else []:
        head += [features, "identified"]
    return table(head, [[name, *cells] for name, cells in rows.items()])


def known(results: Results) -> str:
    """Draws whose invariance was found, by the family that they were drawn with."""
    rows = []
    for family in KNOWN:
        found = results(f"known-{family}-*")
        right = [result["right"] for result in found]
        claimed = max((max(r["nats"], r["compared_nats"]) for r in found), default=0.0)
        nats = [result["nats"] for result in found]
        most = f"{claimed:.1f}" if family == "none" else "–"
        rows.append([family, f"{sum(right)} of {len(right)}", spread(nats, 1), most])
    head = ["drawn with", "found by both", "nats more than none", "most nats claimed"]
    return table(head, rows)


def intervals(results: Results) -> str:
    """How often the interval of a range holds the true width."""
    found = results("interval-*")
    if not found:
        return table(["draws", "inside"], [])
    inside = sum(result["inside"] for result in found)
    lows, highs = ([result["interval"][k] for result in found] for k in (0, 1))
    share = f"{inside} of {len(found)}"
    width, ends = found[0]["width"], (spread(lows), spread(highs))
    return table(
        ["true width", "draws", "interval holds it", "lower end", "upper end"],
        [[width, len(found), share, *ends]],
    )


def discoveries(results: Results) -> str:
    """What `discover` finds in real images, what each is worth, and the seconds it took."""
    rows = []
    for data in DISCOVERIES:
        for found in results(f"discovery-{data}-*"):
            records = ({n: v for n, v in w.items() if n != "identified"} for w in found["worths"])
            worths = [worth for worth in map(worth_from, records) if worth.identified]
            rows.append(
                [
                    data,
                    found["features"],
                    ", ".join(found["found"]) or "none",
                    "; ".join(map(str, worths)) or "–",
                    f"{found['nats']:,.0f}",
                    f"{found['seconds']:.0f}",
                ]
            )
    head = ["data", "features", "found", "worth to 300 images", "nats, all images", "seconds"]
    return table(head, rows)


def compact(results: Results) -> str:
    """Size, time and errors of smaller predictors."""
    rows = [
        [
            f"{row['averages']:,}",
            f"{row['moved']:.4f}",
            row["megabytes"],
            row["milliseconds"],
            row["test_error"],
            row["test_nll"],
        ]
        for found in results("compact-*")
        for row in found["rows"]
    ]
    head = ["averages", "training predictions moved", "MB", "ms", "test error, %", "test NLL"]
    return table(head, rows)


def policies(results: Results) -> str:
    """Test errors of a network, by the augmentation that it was trained with.

    The learned policies depend on all of the library, the others on the network alone.
    """
    rows = []
    for data in POLICY_DATA:
        cells = [
            results(f"policy-{data}-{policy}-*", part="ours" if policy == "ours" else "others")
            for policy in POLICIES
        ]
        if any(cells):
            errors = [[100 * result["test_error"] for result in found] for found in cells]
            nlls = [[result["test_nll"] for result in found] for found in cells]
            rows.append([data, "error, %", *(spread(values, 2) for values in errors)])
            rows.append([data, "NLL", *(spread(values, 3) for values in nlls)])
            seconds = [[result["seconds_to_policy"] for result in found] for found in cells]
            rows.append([data, "seconds to policy", *(spread(values, 0) for values in seconds)])
    return table(["data", "", *POLICIES], rows)


def partial_rotation(results: Results) -> str:
    """Figure 3 of the paper: the learned angle of each seed, by the number of digits."""
    rows = []
    for angle in (90, 180):
        found = results(f"partial-rotation-{angle}-*")
        for same in zip(*(result["rows"] for result in found), strict=True):
            inducing = same[0]["num_inducing"]
            rows.append(
                [
                    f"±{angle}°",
                    f"{same[0]['num_data']:,}",
                    "–" if inducing is None else f"{inducing:,}",
                    same[0]["orbit"],
                    of(same, "learned_angle", 1),
                    of(same, "test_error"),
                    of(same, "evidence", 0),
                ]
            )
    head = ["true angle", "digits", "inducing variables", "orbit", "learned angle, °"]
    return table([*head, "error, %", "evidence, nats"], rows)


METHODS = ("stochastic", "default")
PAPER_MODELS = {
    "3": ("rbf-90", "rotation-90", "rbf-180", "rotation-180"),
    "4": ("rbf", "rotation", "affine", "local"),
    "5": (
        *("rbf", "rotation-from-10", "rotation-from-90", "rotation-from-179"),
        *("fixed-rotation", "affine"),
    ),
}
PAPER_ERRORS = {"rbf": "2.15", "rotation": "2.08", "affine": "1.35", "local": "1.47"}


def _paper(figure: str, results: Results) -> str:
    """A figure by the paper's own method and by the default; they may be of two commits."""
    rows = []
    for model in PAPER_MODELS[figure]:
        for method in METHODS:
            found = results(f"paper-{figure}-{model}-{method}-*", method)
            theirs = PAPER_ERRORS[model] if figure == "4" else ""
            kinds = "/".join(sorted({result["evidence_kind"] for result in found}))
            words = "; ".join(sorted({result["learned"] for result in found}))
            scores = (of(found, "test_error"), of(found, "bound", 0), kinds)
            minutes = (of(found, "minutes", 1), len(found))
            rows.append([model, *([theirs] if theirs else []), method, *scores, *minutes, words])
    head = ["error, %", "evidence, nats", "kind", "minutes", "seeds", "learned"]
    own = ["paper, %"] if figure == "4" else []
    return table(["model", *own, "method", *head], rows)


def paper_3(results: Results) -> str:
    """Even or odd digits, turned by up to ±90° or ±180°."""
    return _paper("3", results)


def paper_4(results: Results) -> str:
    """MNIST, beside the errors that the paper has."""
    return _paper("4", results)


def paper_5(results: Results) -> str:
    """Digits at any angle."""
    return _paper("5", results)


TABLES: dict[str, Callable[[Results], str]] = {
    function.__name__: function
    for function in (
        *(known_symmetry, any_start, digits, range_spread, order),
        *(usps, mnist, few_labels, symmetric, molecules, atom_order),
        *(partial_rotation, paper_3, paper_4, paper_5),
        *(known, intervals, discoveries, compact, policies),
        *(feature_choice, feature_network),
    )
}


def made(name: str) -> str:
    """One table, of results that belong to one commit."""
    results = Results()
    text = TABLES[name](results)
    results.check(name)
    return text


def filled(text: str) -> str:
    """The page with every table made anew."""
    return re.sub(
        r"<!-- (\w+) -->\n.*?<!-- end -->",
        lambda match: f"<!-- {match[1]} -->\n{made(match[1])}\n<!-- end -->",
        text,
        flags=re.DOTALL,
    )


def write() -> None:
    """All pages anew."""
    for page in PAGES:
        page.write_text(filled(page.read_text()))


if __name__ == "__main__":
    write()
