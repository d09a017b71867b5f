"""Reports of whole runs: what they say, what they leave out, and that they are safe to open."""

import json
import math
import re
import shutil
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

import orbitgp
from orbitgp import Affine, FileError, InvariantGPClassifier, InvariantGPRegressor
from orbitgp.estimators.folder import ENDED, RESUMED
from orbitgp.evidence.ablation import Ablation, Worth, write_ablation
from orbitgp.evidence.trials import Finding
from orbitgp.orbits.ranges import Range
from orbitgp.reports import page as page_module
from orbitgp.reports import write_report
from orbitgp.reports.history import read_history
from orbitgp.reports.page import render
from orbitgp.reports.record import read_record
from orbitgp.reports.sizes import sizes
from orbitgp.reports.training import training
from orbitgp.scores import evaluate, write_test
from tests.conftest import QUICK, without_checks_of_shapes
from tests.reports.pages import parse

SCRIPT = "<script>alert('x')</script>"

pytestmark = pytest.mark.filterwarnings("ignore:nothing was learned")


def bars(num_data):
    random = np.random.default_rng(0)
    images, codes = 0.6 * random.random((num_data, 8, 8)), np.arange(num_data) % 2
    for image, code in zip(images, codes, strict=True):
        image[(slice(None), 3) if code else 3] += random.uniform(0, 1)
    return images, np.array([SCRIPT, "standing & still"])[codes]


def louder(x, gain):
    return x * torch.exp(gain)


def fitted(folder, kind, orbit, X, y, **given):
    model = kind(orbit, settings=QUICK, random_state=0, run=folder, **given)
    return model.fit(X, y)


def identify(model, which, folder):
    """As if the data had told these ranges, and no others."""
    for part in model.orbit_.modules():
        if isinstance(part, orbitgp.UniformRange):
            part.identified[:] = which
    orbitgp.save(model, folder / "model.safetensors")


@pytest.fixture(scope="module")
@without_checks_of_shapes()
def runs(tmp_path_factory):
    """A run of each sort, tested where the name says so."""
    home = tmp_path_factory.mktemp("runs")
    images, labels = bars(70)
    model = fitted(home / "a<b>", InvariantGPClassifier, "affine", images[:30], labels[:30])
    identify(model, True, home / "a<b>")
    files = [f"<{place}>.png" for place in range(40)]
    test = evaluate(model, images[30:], labels[30:], files=files)
    write_test(test, home / "a<b>/test.safetensors")
    X = np.random.default_rng(1).uniform(-1, 1, size=(60, 2))
    y = np.stack([50 + X.sum(1), X.prod(1)], 1)
    swap = orbitgp.coordinate_swap(0, 1, 2)
    model = fitted(home / "values", InvariantGPRegressor, swap, X[:40], y[:40])
    write_test(evaluate(model, X[40:], y[40:]), home / "values/test.safetensors")
    series = np.random.default_rng(2).normal(size=(20, 32))
    loud = orbitgp.FunctionOrbit(louder, orbitgp.UniformRange(-0.1, 0.1), names=["<i>gain</i>"])
    fitted(home / "given", InvariantGPClassifier, loud, series, np.arange(20) % 2)
    turned = InvariantGPClassifier(orbitgp.Rotation.full(), settings=QUICK, random_state=0)
    turned.set_params(run=home / "told").fit(images[:20], labels[:20])
    unsure = fitted(home / "unsure", InvariantGPClassifier, "affine", images[:20], labels[:20])
    shutil.copytree(home / "unsure", home / "unknown")
    identify(unsure, torch.tensor([1, 0, 0, 1, 1, 1], dtype=torch.bool), home / "unsure")
    identify(unsure, False, home / "unknown")
    both = orbitgp.compose(orbitgp.Mirror(), orbitgp.Rotation(-0.2, 0.2))
    model = fitted(home / "both", InvariantGPClassifier, both, images[:20], labels[:20])
    identify(model, True, home / "both")
    return home


def page(run, tmp_path):
    html = write_report(run, tmp_path / "out.html").read_text()
    return html, parse(html)


def test_the_report_of_a_tested_classifier(runs, tmp_path):
    html, parsed = page(runs / "a<b>", tmp_path)
    model = orbitgp.load(runs / "a<b>")
    assert "<title>a&lt;b&gt; · orbitgp report</title>" in html
    for words in (
        "The model has learned that an image keeps its class when it is turned by up to",
        f"{model.evidence_:,.1f}".replace("-", "−"),
        *("Inputs and their orbits", "Learned ranges", "Confusions", "Calibration"),
        *("Worst mistakes", "The value is exact", "model.safetensors", "@inproceedings"),
        *("30 images of 8 × 8 pixels", "2 classes", "standing & still (15)", "Sensitivity"),
        *("Specificity", "Each class", ">.png", "bars are 95 % intervals"),
        *("Brier", "rose no further", "shared by all inputs", "torch", SCRIPT),
    ):
        assert words in parsed.text, words
    pictures = [attrs for tag, attrs in parsed.tags if tag == "img"]
    shown = int((model.predict(bars(70)[0][30:]) != bars(70)[1][30:]).sum())
    assert len(pictures) == 12 * 9 + min(shown, 24)
    assert html.count('class="plot small"') == 6


def test_nothing_is_run_or_fetched(runs, tmp_path):
    for run in ("a<b>", "values", "given"):
        html, parsed = page(runs / run, tmp_path)
        assert {tag for tag, _ in parsed.tags}.isdisjoint({"script", "link", "iframe", "object"})
        for tag, attrs in parsed.tags:
            assert not any(name.startswith("on") for name in attrs), (tag, attrs)
            assert (attrs.get("src") or "data:").startswith("data:image/png;base64,"[:5])
            assert attrs.get("href", "https://arxiv.org/abs/1808.05563").endswith("1808.05563")
        assert set(re.findall(r"https?://[^\s\"'<}]+", html)) == {
            "https://arxiv.org/abs/1808.05563"
        }
        assert "url(" not in html
        assert "@import" not in html


def test_what_users_wrote_is_text(runs, tmp_path):
    for run in ("a<b>", "given"):
        html, _ = page(runs / run, tmp_path)
        assert "<script" not in html
        assert "<i>gain" not in html
        assert "a<b>" not in html


def test_templates_escape_everything():
    assert page_module.ENVIRONMENT.autoescape is True
    for name in page_module.ENVIRONMENT.list_templates():
        source, _, _ = page_module.ENVIRONMENT.loader.get_source(page_module.ENVIRONMENT, name)
        assert not re.search(r"\|\s*safe|autoescape", source), name


def test_pictures_have_words(runs, tmp_path):
    _, parsed = page(runs / "a<b>", tmp_path)
    for tag, attrs in parsed.tags:
        if tag == "img":
            assert "alt" in attrs
        if tag == "svg" and "plot" in (attrs.get("class") or ""):
            assert attrs["role"] == "img"
            assert attrs["aria-label"]


def test_the_same_folder_gives_the_same_bytes(runs, tmp_path):
    first = write_report(runs / "a<b>")
    assert first == runs / "a<b>/report.html"
    before = first.read_bytes()
    shutil.copytree(runs / "a<b>", tmp_path / "a<b>")
    assert write_report(tmp_path / "a<b>").read_bytes() == before
    assert write_report(str(runs / "a<b>")).read_bytes() == before
    assert not list((runs / "a<b>").glob("*.tmp"))
    first.unlink()


def test_the_report_of_a_regression(runs, tmp_path):
    html, parsed = page(runs / "values", tmp_path)
    for words in ("swap of positions 0 and 1", "Predictions of output 2", "Calibration of inter"):
        assert words in parsed.text
    assert "Inputs of 2 numbers are not drawn" in parsed.text
    for words in ("Confusions", "Worst mistakes", "Learned ranges", "has learned"):
        assert words not in parsed.text
    # the log knows standardised targets only, and the page none of them
    best = max(point.per_input for point in orbitgp.load(runs / "values").evidence_curve_)
    assert f'<td class="num">{best:,.3f}</td>'.replace("-", "−") in html


def test_an_orbit_of_the_users_own_is_not_drawn(runs, tmp_path):
    html, parsed = page(runs / "given", tmp_path)
    assert "code of your own" in parsed.text
    assert "changed in <i>gain</i> by" in parsed.text
    assert html.count('class="spark"') == 12
    assert "orbitgp evaluate given --data" in parsed.text
    assert 'id="test"' not in html


def test_ranges_that_were_given_are_not_called_learned(runs, tmp_path):
    _, parsed = page(runs / "told", tmp_path)
    assert "The model was told that an image keeps its class when it is turned by any angle" in (
        parsed.text
    )
    assert "not set by hand" not in parsed.text


def test_what_is_frozen_at_nothing_is_not_told(runs, tmp_path):
    free = {"learn_low": [True, *[False] * 5], "learn_high": [True, *[False] * 5]}
    parts = Affine([-0.2, *[0.0] * 5], [0.2, *[0.0] * 5], **free)
    record = read_record(runs / "told")
    ranges = replace(record, fitted=replace(record.fitted, orbit=parts)).ranges
    assert [found.title for found in ranges] == ["rotation (°)"]


def test_evidence_of_ranges_is_kept_apart_from_a_bound_of_another_likelihood(runs):
    record = read_record(runs / "told")
    settings = {"parameters": {"likelihood": "softmax"}}
    for found, apart in ((record, False), (replace(record, settings=settings), True)):
        html = render("training.html.jinja", record=found, training=training(found))
        assert ("It cannot be compared with the bound" in html) == apart
        assert ("The evidence of all data is" in html) != apart
    assert replace(record, settings={"parameters": []}).likelihood == "gaussian"


def test_symmetries_beside_ranges_are_told(runs, tmp_path):
    _, parsed = page(runs / "both", tmp_path)
    assert "either way. It assumes a symmetry, which was given: mirror" in parsed.text


def test_an_unfinished_run_is_reported_so_far(runs, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(runs / "a<b>", run)
    for name in ("model", "examples", "test"):
        (run / f"{name}.safetensors").unlink()
    lines = (run / "log.jsonl").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if '"started"' in line)
    message = json.dumps({"time": 1.8e9, "event": "warned", "message": "it <fell>"})
    (run / "log.jsonl").write_text("\n".join([*lines[: start + 3], message, lines[-1][:9]]))
    html, parsed = page(run, tmp_path)
    for words in (
        "This run is not finished",
        "So far the model has learned",
        "it <fell>",
        "not finished",
        "Evidence",
    ):
        assert words in parsed.text
    assert "it <fell>" not in html
    assert html.count('class="plot small"') == 6
    assert "orbitgp evaluate" not in parsed.text
    (run / "log.jsonl").unlink()
    _, parsed = page(run, tmp_path)
    assert "Nothing has been learned yet" in parsed.text
    assert "The log of this run is empty" in parsed.text


def test_a_log_with_anything_in_it(runs, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(runs / "values", run)
    (run / "model.safetensors").unlink()
    point = {"event": "evaluated", "evidence": 1.0, "num_data": 4, "learned": "<u>"}
    odd_range = asdict(Range("<q>", "<r>", 0, float("nan"), 1e308))
    odd = [
        *(1, None, [], {"event": "started"}, {"time": "x", "event": "started", "max_steps": 1}),
        {"time": 1e300, "event": "started", "max_steps": None},
        *({"time": 1.0, "step": step, **point} for step in (float("nan"), 10**400, -1, 1.5, "1")),
        {"time": 1.0, "step": 3, **point, "ranges": [odd_range]},
        {"time": 1.0, "step": 4, **point, "evidence": float("inf"), "ranges": {"a": [1]}},
        *({"time": 1.0, "step": 5, **point, "num_data": size} for size in (0, 10**400, "4", None)),
        {"time": 1.0, "step": 6, **point, "evidence": 10**400},
    ]
    (run / "log.jsonl").write_text("\n".join(map(json.dumps, odd)) + "\n\xff{")
    html, _ = page(run, tmp_path)
    assert "<u>" not in html
    assert "&lt;q&gt;" in html
    assert "<q>" not in html
    assert "<r>" not in html


TURN, GAIN = Range("rotation", "°", 0, -12.0, 12.0), Range("<i>gain</i>", "", 0, -0.1, 0.3)
KEPT = Ablation(
    [
        Worth("rotation", TURN, (9.0, 15.2), 412.3, 9.1, 100.0, 90.0),
        Worth("<i>gain</i>", GAIN, (0.0, 1.0), 1.5, 1.0, 0.5, 0.5),
        Worth("mirror", None, None, -7.2, 0.0),
        Worth("odd", None, None, math.inf, math.nan),
    ],
    300,
)


def test_what_each_transformation_is_worth(runs, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(runs / "told", run)
    _, parsed = page(run, tmp_path)
    assert "What each transformation" not in parsed.text
    write_ablation(KEPT, run)
    html, parsed = page(run, tmp_path)
    for words in (
        *("What each transformation is worth", "of 300 training inputs is lost", "412 ± 9 nats"),
        *("rotation ±12° (9° to 15°)", "not identified", "7 nats more without it", "412.3 ± 9.1"),
        "The evidence is exact and that of one-hot labels.",
        *("100.0", "<i>gain</i> −0.1 … 0.3 (0 to 1)", "ablation.json"),
    ):
        assert words in parsed.text, words
    assert "<i>gain" not in html
    assert html.count('class="level"') == len(KEPT.worths)
    assert html.count('<line class="error"') == len(KEPT.worths) - 1
    write_ablation(replace(KEPT, worths=[]), run)
    assert "What each transformation" not in page(run, tmp_path)[1].text
    (run / "ablation.json").write_text("[]")
    with pytest.raises(FileError, match=r"ablation\.json cannot be read"):
        page(run, tmp_path)


def found(name, gap, kind="exact", parts=(250, 500, 1000), likelihood="gaussian"):
    by_size = {size: gap * size for size in parts}
    evidence, kinds = by_size[parts[-1]], {"kind": kind, "likelihood": likelihood}
    if kind == "bound" and likelihood == "gaussian":
        del by_size[parts[-1]]
    about = {"num_data": parts[-1], "learned": "", "ranges": (), "seconds": 1.0}
    return Finding(name, evidence, 0.1, **kinds, **about, by_draws=(gap,), by_size=by_size)


def keep(run, finding, **settings):
    run.mkdir(exist_ok=True)
    (run / "finding.json").write_text(json.dumps(asdict(finding)))
    path = run / "settings.json"
    known = json.loads(path.read_text()) if path.exists() else {"seed": 0, "version": 1}
    path.write_text(json.dumps(known | settings))


def test_candidates_beside_a_run(runs, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(runs / "told", run)
    keep(run, found("turned", -1.0))
    assert "number of inputs" not in page(run, tmp_path)[1].text
    data = {"data_sha256": json.loads((run / "settings.json").read_text())["data_sha256"]}
    keep(tmp_path / "a", found("<b>best</b>", -0.5, kind="bound"), **data)
    keep(tmp_path / "b", found("odd", math.nan), **data)
    keep(tmp_path / "c", found("other data", -0.1), data_sha256="")
    keep(tmp_path / "d", found("fewer inputs", -0.1, parts=(250, 500)), **data)
    keep(tmp_path / "e", found("turned", -0.1), **data)
    keep(tmp_path / "g", found("log-odds", -0.1, likelihood="softmax"), **data)
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "finding.json").write_text("{")
    html, parsed = page(run, tmp_path)
    for words in ("Evidence and the number of inputs", "<b>best</b>", "a lower bound", "−500.0"):
        assert words in parsed.text, words
    assert "<b>best" not in html
    drawing = sizes(read_record(run)).drawing
    assert drawing.count('class="dot other"') == 2
    assert drawing.count('class="dot"') == 2  # of all inputs the best is a bound, and this is not
    assert "so no curve includes it" in parsed.text
    assert "≤ −500.0" in parsed.text
    assert "n = 250" in parsed.text
    assert "−125.0" in parsed.text  # of 250 inputs
    for words in ("other data", "fewer inputs", "log-odds"):
        assert words not in parsed.text
    for name, gap in (("turned", -1.0), ("other", -0.5)):
        keep(
            run if name == "turned" else tmp_path / "a",
            found(name, gap, "bound", (250, 500), "softmax"),
            **data,
        )
    _, parsed = page(run, tmp_path)
    assert "All values are lower bounds for the likelihood “softmax”" in parsed.text
    assert sizes(read_record(run)).drawing.count('class="dot"') == 2
    (run / "finding.json").write_text("{")
    with pytest.raises(FileError, match=r"finding\.json cannot be read"):
        page(run, tmp_path)


def test_time_that_a_run_lay_still_does_not_count(tmp_path):
    point = {"event": "evaluated", "evidence": 1.0, "num_data": 4, "learned": ""}
    rows = [
        {"time": 100, "event": "started", "max_steps": 9},
        {"time": 103, "step": 0, **point},
        {"time": 5000, "event": "announced", "message": RESUMED},
        {"time": 5001, "event": "started", "max_steps": 9},
        {"time": 5002, "step": 0, **point, "evidence": 2.0},
        {"time": 5004, "event": "finished", "reason": "done"},
        {"time": 5010, "event": "announced", "message": ENDED},
        {"time": 9000, "event": "announced", "message": RESUMED},
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    history = read_history(tmp_path / "log.jsonl")
    assert (history.began, history.seconds, history.resumed) == (100, 13, 1)
    (phase,) = history.phases
    assert [point.evidence for point in phase.curve] == [2.0]
    assert (phase.seconds, phase.reason) == (7, "done")


def test_what_is_no_run_is_refused(runs, tmp_path):
    with pytest.raises(FileError, match=r"not the folder of a run: it has no settings\.json"):
        write_report(tmp_path)
    with pytest.raises(FileError, match="not the folder of a run"):
        write_report(tmp_path / "nowhere")
    with pytest.raises(FileError, match="cannot be written"):
        write_report(runs / "values", tmp_path / "no" / "report.html")
    shutil.copytree(runs / "values", tmp_path / "run")
    (tmp_path / "run/test.safetensors").write_bytes(b"damaged")
    with pytest.raises(FileError, match="is not a file that orbitgp wrote"):
        write_report(tmp_path / "run")


def test_ranges_that_are_not_identified_are_told_apart(runs, tmp_path):
    _, parsed = page(runs / "unsure", tmp_path)
    assert "when it is turned by up to" in parsed.text
    assert "times its width" not in parsed.text
    words = "Not identified, since each is worth less than 2 nats of evidence: x-scale and y-scale."
    assert words in parsed.text
    _, parsed = page(runs / "unknown", tmp_path)
    assert "The data do not say how far an image may be changed" in parsed.text
