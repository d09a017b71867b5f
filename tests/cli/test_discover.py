"""`orbitgp discover`, on a table with a symmetry."""

import json

import numpy as np

from orbitgp import load
from orbitgp.cli import main, schemas
from tests.cli.schema import conforms


def test_a_symmetry_of_a_table(tmp_path, capsys):
    x = np.random.default_rng(0).uniform(-2, 2, (40, 2))
    rows = [f"{a},{b},{np.sin(a) + np.sin(b)}" for a, b in x]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["a,b,sum", *rows]) + "\n")
    line = ["discover", "--data", str(table), "--out", str(tmp_path / "runs")]
    assert main([*line, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    conforms(record, schemas.DiscoverRecord)
    assert record["names"] == ["swap of columns 0 and 1"]
    assert load(record["run"]).evidence_ == record["none"] + record["gain"]
    assert main(line) == 0
    text = capsys.readouterr()
    assert f"next: orbitgp report {record['run']}" in text.out
    assert "+ swap of columns 0 and 1" in text.err
