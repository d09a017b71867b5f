"""docs/results.md says what the recorded results say."""

import pytest

from experiments import tables


def test_the_page_is_made_from_the_results():
    text = tables.PAGE.read_text()
    assert tables.filled(text) == text, "run python -m experiments.tables"
    assert set(tables.TABLES) == {
        line[5:-4] for line in text.splitlines() if line.startswith("<!-- ") and "end" not in line
    }


def test_values_of_seeds_are_put_together():
    assert tables.spread([]) == "–"
    assert tables.spread([1.5]) == "1.50"
    assert tables.spread([1.0, 2.0, 3.0], 1) == "2.0 ± 1.0"
    assert tables.table(["a", "b"], [[1, 2]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


@pytest.mark.parametrize("name", ["mnist", "few_labels"])
def test_tables_name_every_row_even_without_results(name, monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    lines = tables.TABLES[name]().splitlines()
    assert len(lines) == {"mnist": 12, "few_labels": 6}[name]
    assert "–" in lines[-1]
