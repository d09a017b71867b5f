"""The README's example prints what it says, and its figures are the recorded ones."""

import contextlib
import io
import json
import re
import statistics
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_example_prints_what_it_says():
    code, expected = re.search(
        r"```python\n((?:(?!```).)*)```\n\n```text\n(.*?)```", README, re.DOTALL
    ).groups()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "README.md", "exec"), {})
    assert output.getvalue() == expected


@pytest.mark.usefixtures("untyped")
def test_scikit_learn_examples_run(tmp_path, monkeypatch):
    parts = re.findall(r"```python\n((?:from orbitgp|model = ).*?)```", README, re.DOTALL)
    first, second, third = parts
    code = f"{first}\nimport orbitgp\n{second}\nrun = model\n{third}"
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    images, labels = random.random((30, 6, 6)), np.repeat(["a", "b"], 15)
    images[15:, :3] += 1
    data = {"X_train": images, "y_train": labels, "X_test": images[::5]}
    data["loader"] = [(images[::2], labels[::2]), (images[1::2], labels[1::2])]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(code, "README.md", "exec"), data)
    assert "rotation" in output.getvalue()
    loaded = data["same"].predict_proba(images)
    np.testing.assert_array_equal(loaded, data["run"].predict_proba(images))
    assert data["model"].score(images, labels) == 1


def result(path):
    return json.loads((ROOT / path).read_text())


def test_digits_are_the_recorded_ones():
    names = {
        "mnist-pixels-affine-60000": "test_error",
        "mnist-oriented-affine+local-60000": "test_error",
        "mnist-oriented-affine+local-1000": "test_error",
        "few-labels-1000": "cnn_augmented_test_error",
    }
    errors = []
    for name, key in names.items():
        seeds = (ROOT / "experiments/results").glob(f"{name}-?.json")
        errors.append(statistics.mean(result(path)[key] for path in seeds))
    said = re.search(r"On MNIST's 60,000 digits.*?validation", README, re.DOTALL).group(0)
    assert re.findall(r"([\d.]+) %", said.replace("1.35 %", "")) == [f"{e:.2f}" for e in errors]


def test_figures_are_the_recorded_ones():
    step, solve = (result(f"benchmarks/results/{name}.json") for name in ("step", "solve"))
    ratios = re.findall(r"([\d.]+) × (?:the bare|a GPyTorch)", README)
    recorded = [step["ratio_to_bare"], step["ratio_to_gpytorch"], solve["ratio_to_bare"]]
    assert [float(ratio) for ratio in ratios] == [round(value, 2) for value in recorded]
    symmetric = result("experiments/results/symmetric-0.json")
    for name, row in (("invariant", "invariant"), ("non-invariant", "not invariant")):
        cells = re.search(rf"\| {row} \|(.*)\|", README).group(1).replace("*", "").split("|")
        fit = symmetric[name]
        expected = [
            *(f"{fit[key]:.4f}" for key in ("train_rmse", "test_rmse")),
            *(f"{fit[key]:.2f}" for key in ("log_evidence", "elbo")),
        ]
        assert [cell.strip() for cell in cells] == expected


def test_digits_and_molecules_are_the_recorded_ones_and_reach_the_goal():
    none, affine = (
        result(f"experiments/results/usps-{name}-0.json") for name in ("none", "affine")
    )
    for name, found in (("none", none), ("affine", affine)):
        cells = re.search(rf"\| {name} \|(.*)\|", README).group(1).replace("*", "").split("|")
        error = found["evidence_standard_error"]
        spread = f" ± {error:.0f}" if error else ""
        assert [cell.strip() for cell in cells] == [
            f"{found['test_error']:.2f} %",
            f"{found['test_ece']:.3f}",
            f"{found['evidence']:,.0f}{spread}",
            f"{found['seconds']:.0f}",
        ]
        assert found["seconds"] < 180
        assert found["test_ece"] <= 0.03
    assert affine["learned"] in README.replace("\n", " ")
    assert affine["test_error"] <= 0.8 * none["test_error"]
    assert affine["evidence"] > none["evidence"] + 4 * affine["evidence_standard_error"]
    molecules = result("experiments/results/molecules-0.json")
    assert f"{100 * molecules['coverage']:.1f} %" in README
    assert 0.93 <= min(molecules["coverage_by_output"]) <= max(molecules["coverage_by_output"])
    assert max(molecules["coverage_by_output"]) <= 0.97


def test_every_link_leads_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_page_on_scale_has_the_recorded_figures():
    page = (ROOT / "docs/scale.md").read_text()
    scale, kills = (result(f"benchmarks/results/{name}.json") for name in ("scale", "killed-ranks"))
    weak, streaming = scale["weak_scaling"], scale["streaming"]
    for check in scale["cost_model"]["checks"]:
        cells = [f"{check['num_points']:,}", str(check["num_samples"])]
        cells += [str(check[f"microseconds_{kind}"]) for kind in ("foretold", "measured")]
        assert f"| {' | '.join(cells)} | {check['measured_over_foretold']:.2f} |" in page
    assert f"single-thread processes: {weak['efficiency']}." in page
    assert f"{weak['message_bytes'][0]:,}, for" in page
    assert f"{streaming['time_ratio']} in time, {streaming['memory_ratio']} in memory" in page
    assert f"{kills['killed_runs']} runs with a random process killed" in page
    assert f"undisturbed one by {kills['largest_difference']} " in page
    assert weak["efficiency"] >= 0.9
    assert weak["message_bytes"][0] == weak["message_bytes"][1]
    assert 0.95 <= streaming["time_ratio"] <= 1.05
    assert streaming["memory_ratio"] <= 1.05
    assert kills["killed_runs"] == 10
    assert kills["largest_difference"] <= 1e-6
