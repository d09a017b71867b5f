"""Tables of README and docs say what the recorded results say."""

import json
import re

import pytest

from experiments import tables
from experiments.properties import spread_of
from orbitgp import Affine


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.name)
def test_the_page_is_made_from_the_results(page):
    text = page.read_text()
    assert tables.filled(text) == text, "run python -m experiments.tables"


def test_results_have_every_table():
    marks = re.findall(r"<!-- (\w+) -->", "".join(page.read_text() for page in tables.PAGES))
    assert set(tables.TABLES) == set(marks) - {"end"}


def test_values_of_seeds_are_put_together():
    assert tables.spread([]) == "–"
    assert tables.spread([1.5]) == "1.50"
    assert tables.spread([1.0, 2.0, 3.0], 1) == "2.0 ± 1.0"
    assert tables.table(["a", "b"], [[1, 2]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_tables_without_results(monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    lines = tables.made("mnist").splitlines()
    assert len(lines) == 6
    assert "–" in lines[-1]
    assert len(tables.made("few_labels").splitlines()) == 2


def test_ranges_that_are_not_identified_are_told_apart(monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    draws = [Affine(-0.1, 0.1) for _ in range(3)]
    draws[0].ranges.identified[1] = False
    together = zip(*(orbit.learned_ranges() for orbit in draws), strict=True)
    ranges, words = list(map(spread_of, together)), [orbit.describe() for orbit in draws]
    rows = {name: {"ranges": ranges, "described": words} for name in tables.MNIST}
    found = {"rows": rows, "commit": "a", "clean": True}
    (tmp_path / "property-range-spread-0.json").write_text(json.dumps(found))
    lines = tables.made("range_spread").splitlines()
    assert lines[2] == "| rotation (°) | 5.7 ± 0.0 | 3 of 3 | 5.7 ± 0.0 | 3 of 3 |"
    assert lines[3] == "| x-scale (×) | 1.11 ± 0.00 | 2 of 3 | 1.11 ± 0.00 | 2 of 3 |"


def order_result(family, evidence, nll, commit="a", **more):
    return {
        **{"data": "usps", "features": "pixels", "family": family, "seed": 0, "commit": commit},
        **{"evidence": evidence, "evidence_error": 1.0, "test_nll": nll, "test_nll_error": 0.01},
        **more,
    }


def test_results_of_different_commits_are_not_mixed(monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    for family, commit in (("none", "a"), ("affine", "a"), ("rotation", "b")):
        result = order_result(family, 1.0, 0.1, commit)
        (tmp_path / f"order-usps-pixels-{family}-0.json").write_text(json.dumps(result))
    with pytest.raises(ValueError, match=r"(?s)different commits.*rotation-0\.json: b"):
        tables.made("order")
    (tmp_path / "order-usps-pixels-rotation-0.json").unlink()
    assert "| usps | pixels | 0 |" in tables.made("order")
    changed = order_result("affine", 1.0, 0.1, clean=False)
    (tmp_path / "order-usps-pixels-affine-0.json").write_text(json.dumps(changed))
    with pytest.raises(ValueError, match="with changes"):
        tables.made("order")


def test_the_order_is_judged_as_it_is_said():
    none, rotation = order_result("none", 10.0, 0.3), order_result("rotation", 9.0, 0.2)
    assert tables.is_nested({"none": none, "rotation": rotation})  # within two errors
    assert not tables.is_nested({"none": none, "affine": order_result("affine", 5.0, 0.2)})
    assert tables.is_nested({"none": none, "mirror": order_result("mirror", 5.0, 0.2)})
    assert tables.agrees(rotation, rotation)
    assert not tables.agrees(none, rotation)
    assert tables.agrees(order_result("none", 1.0, 0.205), rotation)


def test_learned_policies_may_be_of_a_later_commit(monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    scores = {"test_error": 0.1, "test_nll": 0.2, "seconds_to_policy": 1.0, "clean": True}
    for policy, commit in (("none", "a"), ("hand", "a"), ("ours", "b")):
        result = {**scores, "commit": commit}
        (tmp_path / f"policy-mnist-1000-{policy}-0.json").write_text(json.dumps(result))
    assert "| mnist-1000 | error, % |" in tables.made("policies")
    (tmp_path / "policy-mnist-1000-rand-0.json").write_text(json.dumps({**scores, "commit": "b"}))
    with pytest.raises(ValueError, match=r"(?s)different commits.*rand-0\.json: b"):
        tables.made("policies")
