"""`orbitgp compare`, whole and as the jobs of an array."""

from orbitgp.cli import main, schemas
from tests.cli.schema import conforms
from tests.cli.test_commands import in_process


def test_jobs_of_an_array_then_the_table(images, tmp_path, capsys):
    line = ("compare", "--data", images, "--orbits", "none", "mirror", "--out", tmp_path / "runs")
    alone = []
    for place in range(2):
        code, record = in_process(capsys, *line, "--trial-index", place)
        conforms(record, schemas.CompareRecord)
        assert code == 0
        assert record["num_data"] == 60
        alone += record["candidates"]
    assert [candidate["name"] for candidate in alone] == ["none", "mirror"]
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("model.safetensors")}
    code, record = in_process(capsys, *line)
    conforms(record, schemas.CompareRecord)
    names = [candidate["name"] for candidate in record["candidates"]]
    assert sorted(names) == ["mirror", "none"]
    assert {c["name"]: c["evidence"] for c in alone} == {
        c["name"]: c["evidence"] for c in record["candidates"]
    }
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    assert main([*map(str, line)]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("candidate")


def test_an_index_that_no_candidate_has(images, tmp_path, capsys):
    line = ("compare", "--data", images, "--orbits", "none", "--out", tmp_path / "runs")
    code, record = in_process(capsys, *line, "--trial_index", 3)
    assert code == 2
    assert "--trial_index is 0 to 0 (0 none); got 3" in record["error"]["message"]


def test_features_multiply_the_candidates(images, table, tmp_path, capsys):
    features = ("--features", "pixels", "oriented")
    line = ("compare", "--data", images, "--orbits", "none", "--out", tmp_path / "runs", *features)
    code, record = in_process(capsys, *line, "--trial_index", 1)
    assert (code, record["candidates"][0]["name"]) == (0, "none, oriented")
    line = ("compare", "--data", table, "--out", tmp_path / "other", *features)
    code, record = in_process(capsys, *line)
    assert code == 2
    assert "--features oriented is for images" in record["error"]["message"]
