"""The README's examples run and print what they say, and its figures are the recorded ones."""

import contextlib
import io
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from tests.processes import python

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)


def blocks(kind):
    return [text for name, text in BLOCKS if name == kind]


def numbers(text):
    return [float(found.replace("−", "-")) for found in re.findall(r"[−+-]?\d+\.?\d*", text)]


def test_first_example_prints_what_it_says():
    """The same words; numbers may differ by rounding from one processor to the next."""
    environment = {name: value for name, value in os.environ.items() if name != "ORBITGP_DATA"}
    run = python("-c", blocks("python")[0], env=environment)
    assert run.returncode == 0, run.stderr
    (said,) = blocks("text")
    assert re.sub(r"[\d.]+", "#", run.stdout) == re.sub(r"[\d.]+", "#", said), run.stdout
    none, affine = run.stdout.splitlines()[:2]
    expected = said.splitlines()
    for line, other in ((none, expected[0]), (affine, expected[1])):
        np.testing.assert_allclose(numbers(line)[:2], numbers(other)[:2], rtol=0.05)
    assert numbers(affine)[0] < numbers(none)[0]
    assert numbers(affine)[1] > numbers(none)[1]


@pytest.mark.usefixtures("untyped")
def test_own_transformation_runs():
    random = np.random.default_rng(0)
    labels = np.arange(40) % 2
    series = np.exp(random.normal(size=(40, 1))) * np.where(
        labels[:, None], np.sin(np.arange(12)), np.cos(np.arange(12))
    )
    names = {"series": series, "labels": labels}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(blocks("python")[1], "README.md", "exec"), names)
    assert "gain" in names["model"].orbit_.describe()
    assert names["model"].score(series, labels) > 0.9


def result(path):
    return json.loads((ROOT / path).read_text())


def test_speeds_are_the_recorded_ones():
    page = (ROOT / "docs/results.md").read_text()
    step = result("benchmarks/results/step.json")
    ratios = re.findall(r"([\d.]+)\s+×\s+(?:the\s+bare|a\s+GPyTorch)", page)
    recorded = [step["ratio_to_bare"], step["ratio_to_gpytorch"]]
    assert [float(ratio) for ratio in ratios] == [round(value, 2) for value in recorded]


def test_every_link_leads_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if not target.startswith(("http", "gallery/")):  # the site makes its gallery
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
