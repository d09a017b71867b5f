"""Benchmarks keep their promises; the long ones only with `-m slow`, where they record results."""

import json
import subprocess
import sys

import pytest


def last_line(module):
    command = [sys.executable, "-m", module]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_statistics_at_size_fit_in_memory_and_do_not_grow():
    result = last_line("benchmarks.size")
    print(result)
    assert result["runs"][0]["peak_memory_mb"] < 8 * 1024
    assert (
        result["growth"] < 1.1
    )  # what an allocator leaves behind; 18,000 more inputs would add 25 %


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("module", ["benchmarks.step", "benchmarks.solve"])
def test_ratios(module):
    result = last_line(module)
    print(result)
    assert result["ratio_to_bare"] <= 2.0
    if module == "benchmarks.step":
        assert result["ratio_to_gpytorch"] < 1.0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_pass_scales():
    result = last_line("benchmarks.scale")
    print(result)
    weak, streaming = result["weak_scaling"], result["streaming"]
    assert weak["efficiency"] >= 0.9
    assert weak["message_bytes"][0] == weak["message_bytes"][1]
    assert [run["num_data"] for run in streaming["runs"]] == [10**4, 10**5, 10**6]
    assert 0.95 <= streaming["time_ratio"] <= 1.05
    assert streaming["memory_ratio"] <= 1.05
    for check in result["cost_model"]["checks"]:
        assert 0.5 <= check["measured_over_foretold"] <= 2.0
