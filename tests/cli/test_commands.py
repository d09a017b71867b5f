"""What is done with a finished run."""

import csv
import io
import json
import shutil

import numpy as np
import pytest

from orbitgp import InvariantGPRegressor, SignFlips, export_policy, load, tolerated
from orbitgp.cli import main, schemas
from orbitgp.data.npz import read_npz
from orbitgp.evidence.ablation import read_ablation
from orbitgp.scores import read_test
from tests.cli.conftest import QUICK as QUICK_OPTIONS
from tests.cli.conftest import orbitgp
from tests.cli.schema import conforms
from tests.conftest import QUICK, without_checks_of_shapes
from tests.data.test_images import save


def in_process(capsys, *arguments):
    """Exit code and JSON, without a process of its own."""
    code = main([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
@without_checks_of_shapes()
def regression(tmp_path_factory):
    """A run that Python made, of two outputs."""
    folder = tmp_path_factory.mktemp("regression")
    x = np.random.default_rng(0).normal(size=(30, 2))
    y = np.stack([x.sum(1), x[:, 0]], 1)
    settings = QUICK
    InvariantGPRegressor(settings=settings, run=folder / "run", random_state=0).fit(x, y)
    np.savez(folder / "data.npz", x=x, y=y)
    return folder / "run", folder / "data.npz"


def test_evaluate(fitted, images):
    run, whole, _ = fitted
    process = orbitgp("evaluate", run, "--data", images, "--json")
    assert process.returncode == 0, process.stderr
    record = json.loads(process.stdout)
    conforms(record, schemas.EvaluateRecord)
    assert record["part"] == "test"
    assert record["metrics"] == whole["test"]["metrics"]
    assert read_test(record["test_file"]).metrics == record["metrics"]


def test_evaluate_another_part(fitted, regression, images, capsys):
    run, _, _ = fitted
    kept = (run / "test.safetensors").read_bytes()
    try:
        code, record = in_process(capsys, "evaluate", run, "--data", images, "--split", "train")
        assert (code, record["part"], record["num_data"]) == (0, "train", 60)
        assert (run / "test.safetensors").read_bytes() != kept
    finally:
        (run / "test.safetensors").write_bytes(kept)
    run, data = regression
    code, record = in_process(capsys, "evaluate", run, "--data", data)
    conforms(record, schemas.EvaluateRecord)
    assert (code, record["part"], record["task"]) == (0, "all", "regression")
    code, record = in_process(capsys, "evaluate", run, "--data", data, "--split", "test")
    assert (code, record["error"]["exit_code"]) == (2, 2)
    assert "no test part" in record["error"]["message"]
    model = run / "model.safetensors"
    code, record = in_process(capsys, "evaluate", model, "--data", data)
    assert (code, record["test_file"]) == (0, None)


def test_predict_as_csv(fitted, images):
    run, _, _ = fitted
    process = orbitgp("predict", run, "--data", images)
    assert process.returncode == 0, process.stderr
    rows = list(csv.DictReader(io.StringIO(process.stdout)))
    estimator, x = load(run), read_npz(images, "x_test")["x_test"]
    assert [int(row["label"]) for row in rows] == estimator.predict(x).tolist()
    found = [[float(row[f"probability_{name}"]) for name in range(3)] for row in rows]
    np.testing.assert_allclose(found, estimator.predict_proba(x), rtol=1e-12)


def test_predict_to_files(fitted, regression, images, tmp_path, capsys):
    run, _, _ = fitted
    out = tmp_path / "predictions.npz"
    code, record = in_process(capsys, "predict", run, "--data", images, "--out", out)
    conforms(record, schemas.PredictRecord)
    assert (code, record["out"], record["rows"]) == (0, str(out), None)
    arrays = read_npz(out)
    assert arrays["probability"].shape == (20, 3)
    np.testing.assert_array_equal(arrays["label"], arrays["probability"].argmax(1))
    np.testing.assert_array_equal(arrays["classes"], [0, 1, 2])
    run, data = regression
    out = tmp_path / "predictions.csv"
    code, record = in_process(capsys, "predict", run, "--data", data)
    conforms(record, schemas.PredictRecord)
    columns = ["mean_0", "mean_1", "standard_deviation_0", "standard_deviation_1"]
    assert record["columns"] == columns
    assert main(["predict", str(run), "--data", str(data), "--out", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    table = np.loadtxt(out, delimiter=",", skiprows=1)
    np.testing.assert_allclose(table, record["rows"])
    mean, deviation = load(run).predict(read_npz(data)["x"], return_std=True)
    np.testing.assert_allclose(table, np.hstack([mean, deviation]))
    code, record = in_process(capsys, "predict", run, "--data", data, "--out", "a.txt")
    assert (code, record["error"]["kind"]) == (2, "InputError")


def test_a_table_with_labels_asks_for_their_name(regression, table, capsys):
    run, _ = regression
    code, record = in_process(capsys, "predict", run, "--data", table)
    assert code == 2
    assert "--target" in record["error"]["message"]
    code, record = in_process(capsys, "predict", run, "--data", table, "--target", "sum")
    assert (code, record["num_data"]) == (0, 40)


def test_describe(fitted):
    run, whole, _ = fitted
    process = orbitgp("describe", run, "--json")
    assert process.returncode == 0, process.stderr
    record = json.loads(process.stdout)
    conforms(record, schemas.DescribeRecord)
    assert record["state"] == "finished"
    assert record["test"] == whole["test"]
    assert {name: whole[name] for name in record["model"]} == record["model"]


def test_describe_in_words(fitted, regression, capsys):
    run, whole, _ = fitted
    assert main(["describe", str(run)]) == 0
    text = capsys.readouterr().out
    for part in (whole["learned"], "3 classes (0, 1, 2)", f"{whole['evidence']:,.1f} ±", "nll"):
        assert part in text
    assert main(["describe", str(regression[0])]) == 0
    assert "no invariance" in capsys.readouterr().out


def test_report(fitted, tmp_path, capsys):
    run, _, _ = fitted
    process = orbitgp("report", run, "--out", tmp_path / "page.html")
    assert process.returncode == 0, process.stderr
    assert process.stdout == f"{tmp_path / 'page.html'}\n"
    assert "<html" in (tmp_path / "page.html").read_text(encoding="utf-8")
    code, record = in_process(capsys, "report", run, "--out", tmp_path / "again.html")
    conforms(record, schemas.ReportRecord)
    assert (code, record["report"]) == (0, str(tmp_path / "again.html"))


def test_ablate(fitted, images, tmp_path, capsys):
    whole = fitted[1]
    run = shutil.copytree(fitted[0], tmp_path / "run")
    code, record = in_process(capsys, "ablate", run, "--data", images, "--num_data", 30)
    conforms(record, schemas.AblateRecord)
    assert (code, record["num_data"], record["evidence_kind"]) == (0, 30, "exact")
    assert [worth["range"]["name"] for worth in record["worths"]] == [
        own["name"] for own in whole["ranges"]
    ]
    found = read_ablation(run / "ablation.json")
    assert [worth.removed for worth in found.worths] == [w["removed"] for w in record["worths"]]
    (tmp_path / "alone").mkdir()
    model = shutil.copy(run / "model.safetensors", tmp_path / "alone")
    assert main(["ablate", model, "--data", str(images), "--num_data", "30"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [*map(str, found.worths), f"next: orbitgp report {model}"]
    assert [path.name for path in (tmp_path / "alone").iterdir()] == ["model.safetensors"]


def test_export(fitted, tmp_path, capsys):
    run, _, _ = fitted
    orbit, out = load(run).orbit_, tmp_path / "policy.py"
    process = orbitgp("export", run, "--policy", "torchvision", "--out", out)
    assert process.returncode == 0, process.stderr
    assert process.stdout == f"{out}\n"
    assert out.read_text(encoding="utf-8") == export_policy(orbit, "torchvision").source
    code, record = in_process(capsys, "export", run, "--policy", "json")
    conforms(record, schemas.ExportRecord)
    assert (code, record["out"], record["left_out"]) == (0, None, [])
    assert json.loads(record["source"]) == export_policy(orbit, "json").make()
    assert record["steps"][0]["kind"] == "affine"
    code, record = in_process(capsys, "export", run, "--policy", "kornia", "--out", out)
    assert (code, record["out"], record["source"]) == (0, str(out), None)
    assert main(["export", str(run), "--policy", "kornia"]) == 0
    assert capsys.readouterr().out == export_policy(orbit, "kornia").source


def test_export_of_what_labels_tolerate(fitted, images, capsys):
    run, _, _ = fitted
    line = ("export", run, "--policy", "json", "--tolerated", images)
    code, record = in_process(capsys, *line)
    conforms(record, schemas.ExportRecord)
    data = read_npz(images)
    found = tolerated(load(run), data["x_train"], data["y_train"])
    assert (code, json.loads(record["source"])) == (0, export_policy(found.orbit, "json").make())
    assert found.names
    code, record = in_process(capsys, *line[:-1], "missing.npz")
    assert (code, record["error"]["kind"]) == (3, "FileError")


def test_export_of_a_predictor(fitted, tmp_path, capsys):
    run, _, _ = fitted
    path = tmp_path / "model.pt2"
    code, record = in_process(capsys, "export", run, "--predictor", path)
    conforms(record, schemas.PredictorRecord)
    assert (code, record["num_bytes"]) == (0, path.stat().st_size)
    code, record = in_process(capsys, "export", run, "--predictor", tmp_path / "model.h5")
    assert (code, "'model.h5'" in record["error"]["message"]) == (2, True)


@pytest.mark.parametrize(
    ("wanted", "unused"),
    [
        (("--predictor", "model.pt2"), "--tolerated data.npz --out policy.py --leave_out"),
        (("--policy", "json"), "--compact 0.01 --target y"),
    ],
)
def test_export_refuses_what_would_change_nothing(wanted, unused, capsys):
    code, record = in_process(capsys, "export", "run", *wanted, *unused.split())
    named = ", ".join(word for word in unused.split() if word.startswith("--"))
    assert (code, record["error"]["kind"]) == (2, "InputError")
    assert f"would change nothing here: {named};" in record["error"]["message"]


def test_export_of_what_cannot_be_expressed(tmp_path, capsys):
    x = np.random.default_rng(0).normal(size=(30, 2))
    model = InvariantGPRegressor(SignFlips(0), settings=QUICK, run=tmp_path / "run", random_state=0)
    model.fit(x, x[:, 1])
    code, record = in_process(capsys, "export", tmp_path / "run", "--policy", "kornia")
    assert (code, record["error"]["kind"]) == (2, "InputError")
    assert "--leave_out" in record["error"]["message"]
    line = ("export", tmp_path / "run", "--policy", "kornia", "--leave_out")
    code, record = in_process(capsys, *line)
    conforms(record, schemas.ExportRecord)
    assert (code, record["steps"], record["left_out"]) == (0, [], ["sign flips"])


def test_predictions_of_images_name_their_files(tmp_path, capsys):
    """A folder by class, a flat folder and a single image; features by their name."""
    random = np.random.default_rng(0)
    for number in range(16):
        pixels = random.integers(0, 40, (8, 8), dtype=np.uint8)
        pixels[:, 2 + number % 4] += 200 * (number % 2)
        save(tmp_path / f"cells/{'ill' if number % 2 else 'well'}/{number:02}.png", pixels)
        save(tmp_path / f"new/{number:02}.png", pixels)
    code, _ = in_process(
        *(capsys, "fit", "--data", tmp_path / "cells", "--out", tmp_path / "run"),
        *("--features", "oriented", "--likelihood", "gaussian", *QUICK_OPTIONS),
    )
    assert code == 0
    for data, files in (
        ("new", [f"{number:02}.png" for number in range(16)]),
        ("new/03.png", ["03.png"]),
        ("cells", [*(f"ill/{n:02}.png" for n in range(1, 16, 2)), *FIRST_WELL]),
    ):
        code, record = in_process(capsys, "predict", tmp_path / "run", "--data", tmp_path / data)
        assert code == 0
        assert record["columns"] == ["path", "label", "probability_ill", "probability_well"]
        assert [row[0] for row in record["rows"]] == files
    out = tmp_path / "p.npz"
    assert in_process(capsys, "predict", tmp_path / "run", "--data", tmp_path / "new", "--out", out)
    assert np.load(out)["path"][3] == "03.png"


FIRST_WELL = [f"well/{number:02}.png" for number in range(0, 16, 2)]


def test_options_that_do_not_suit_the_data(table, tmp_path, capsys):
    line = ("fit", "--data", table, "--target", "sum", "--out", tmp_path / "run")
    code, record = in_process(capsys, *line, "--likelihood", "softmax")
    assert code == 2
    assert "softmax is for classes, but the labels are floats" in record["error"]["message"]
    code, record = in_process(capsys, *line, "--features", "oriented")
    assert code == 2
    assert "--features oriented is for images" in record["error"]["message"]
