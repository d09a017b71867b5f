"""Fitting: configuration, what is printed, what is kept, and all ways to be stopped."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from orbitgp.cli import main, schemas
from orbitgp.cli.fit import INFERENCES, ORBITS, SETTINGS, STOCHASTIC
from orbitgp.cli.options import read_options
from orbitgp.cli.task import decide
from orbitgp.errors import FileError
from orbitgp.estimators.base import INFERENCES as KINDS
from orbitgp.fit.settings import TrainingSettings
from orbitgp.orbits.names import NAMES
from orbitgp.stochastic.settings import StochasticSettings
from tests.cli.conftest import QUICK, ROOT, environment, orbitgp
from tests.cli.schema import conforms
from tests.files.crash import KILLED
from tests.processes import on_a_terminal


def options_of(images, folder):
    return ("--data", images, "--orbit", "affine", "--seed", 1, *QUICK, "--out", folder)


def test_json_and_nothing_else(fitted, images):
    run, record, process = fitted
    conforms(record, schemas.FitRecord)
    assert process.stdout.count("\n") == 1
    assert process.stderr == ""
    assert record["run"] == str(run)
    assert (record["state"], record["task"], record["steps"]) == ("fitted", "classification", 5)
    assert "3 distinct integers" in record["task_reason"]
    assert (record["num_data"], record["num_inducing"]) == (60, 30)
    assert record["classes"] == [0, 1, 2]
    assert (record["ranges"][0]["name"], record["ranges"][0]["unit"]) == ("rotation", "°")
    assert record["test"]["num_data"] == 20
    assert record["test"]["metrics"]["error"] <= 0.2


def test_what_is_on_the_line_overrides_the_file(fitted, images):
    run, _, _ = fitted
    kept = read_options(run)
    assert (kept.data, kept.orbit, kept.seed) == (str(images), "affine", 1)
    assert (kept.settings.climb_draws, kept.settings.max_steps) == (4, 4)
    assert kept.settings.climb_size == TrainingSettings().climb_size
    names = {"settings.json", "log.jsonl", "checkpoint.safetensors", "model.safetensors"}
    assert {path.name for path in run.iterdir()} == names | {
        *("command.json", "examples.safetensors", "test.safetensors")
    }


def test_killed_and_resumed_the_model_is_the_same(fitted, images, tmp_path):
    """Dead in the middle of writing a checkpoint; the folder alone is enough to go on."""
    run, whole, _ = fitted
    arguments = ("fit", *options_of(images, tmp_path / "run"))
    killed = orbitgp("SIGKILL", 9, *arguments, module="tests.cli.struck")
    assert killed.returncode == KILLED
    assert (tmp_path / "run/checkpoint.safetensors").exists()
    assert not (tmp_path / "run/model.safetensors").exists()
    unfinished = orbitgp("describe", tmp_path / "run", "--json")
    record = json.loads(unfinished.stdout)
    conforms(record, schemas.DescribeRecord)
    assert record["state"] == "unfinished"
    assert record["progress"]["step"] == 5
    refused = orbitgp("predict", tmp_path / "run", "--data", images)
    assert refused.returncode == 3
    assert f"orbitgp resume {tmp_path / 'run'}" in refused.stderr
    resumed = orbitgp("resume", tmp_path / "run", "--json")
    record = json.loads(resumed.stdout)
    conforms(record, schemas.FitRecord)
    assert record["state"] == "resumed"
    assert record["evidence"] == whole["evidence"]
    for name in ("model.safetensors", "test.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (run / name).read_bytes()


def test_ctrl_c_keeps_the_best_model_so_far(images, tmp_path, monkeypatch, capsys):
    original, calls = os.replace, []

    def impatient(*arguments):
        if str(tmp_path) in str(arguments[1]):  # modules that are compiled meanwhile do not count
            calls.append(arguments)
            if len(calls) == 4:
                raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(os, "replace", impatient)
    assert main(["fit", *map(str, options_of(images, tmp_path / "run")), "--json"]) == 0
    shown = capsys.readouterr()
    assert "Ctrl-C once more" in shown.err
    record = json.loads(shown.out)
    conforms(record, schemas.FitRecord)
    assert "interrupted" in record["stopped"]
    assert record["steps"] == 1


def test_ctrl_c_twice_stops_at_once(images, tmp_path):
    arguments = ("fit", *options_of(images, tmp_path / "run"), "--json")
    process = orbitgp("SIGINT", "4,5", *arguments, module="tests.cli.struck")
    assert process.returncode == 130
    record = json.loads(process.stdout)
    conforms(record, schemas.ErrorRecord)
    assert f"orbitgp resume {tmp_path / 'run'}" in record["error"]["message"]
    assert not (tmp_path / "run/model.safetensors").exists()


@pytest.mark.filterwarnings("ignore:the run began with")  # perhaps on more threads
def test_a_folder_is_read_back_or_refused(fitted, images, capsys):
    run, whole, _ = fitted
    before = (run / "command.json").read_bytes()
    same = [*map(str, options_of(images, run))]
    assert main(["fit", *same]) == 0
    again = capsys.readouterr().out
    for part in ("read back", whole["learned"], f"orbitgp report {run}", "error 0.00%"):
        assert part in again
    assert main(["fit", *same, "--seed", "2", "--json"]) == 2
    shown = capsys.readouterr()
    record = json.loads(shown.out)
    conforms(record, schemas.ErrorRecord)
    assert record["error"]["kind"] == "InputError"
    assert "holds another run" in shown.err
    assert shown.err.count("\n") == 1
    assert (run / "command.json").read_bytes() == before


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
def test_a_person_sees_a_bar_and_a_summary(table, tmp_path):
    run = tmp_path / "run"
    command = ("fit", "--data", table, "--target", "sum", "--out", run, *QUICK)
    place = {"cwd": ROOT, "env": environment()}
    code, seen = on_a_terminal("-m", "orbitgp", *command, columns=150, **place)
    assert code == 0, seen
    for part in ("regression: the labels are floats", "evidence ", "/5 ", "it/s"):
        assert part in seen
    for part in ("no invariance", "nats", "(fitted, 40 inputs)", f"orbitgp report {run}"):
        assert part in seen
    assert "test" not in [line.split(" ")[0] for line in seen.splitlines()]


def test_options_are_kept_for_any_folder(fitted, tmp_path, monkeypatch):
    """Paths are absolute, names stay names even beside a folder that is called so."""
    kept = read_options(fitted[0])
    (tmp_path / "digits").mkdir()
    monkeypatch.chdir(tmp_path)
    assert replace(kept, data="digits").anywhere().data == "digits"
    assert replace(kept, data="mine.csv").anywhere().data == str(tmp_path / "mine.csv")


@pytest.mark.parametrize(
    ("labels", "task"),
    [
        (np.array(["a", "b"]), "classification"),
        (np.array(["a", "b"], dtype=object), "classification"),
        (np.array([True, False]), "classification"),
        (np.arange(100), "classification"),
        (np.arange(101), "regression"),
        (np.array([0.0, 1.0]), "regression"),
        (np.zeros((3, 2), dtype=int), "regression"),
    ],
    ids=["text", "objects", "bools", "hundred", "more", "floats", "columns"],
)
def test_the_labels_decide(labels, task):
    assert decide(labels, "auto").task == task
    for asked in ("classification", "regression"):
        assert decide(labels, asked).task == asked


def test_stochastic_training_from_the_line(images, tmp_path):
    """Its own settings count, and are kept for `resume`."""
    own = ("--stochastic.num_steps", 20, "--stochastic.batch_size", 16, "--features", "pixels")
    run = orbitgp(
        *("fit", "--data", images, "--orbit", "rotation", "--out", tmp_path / "run"),
        *("--inference", "stochastic", "--num_inducing", 20, *own, "--json"),
    )
    record = json.loads(run.stdout)
    conforms(record, schemas.FitRecord)
    assert (record["evidence_kind"], record["steps"], record["num_inducing"]) == ("bound", 20, 20)
    kept = read_options(tmp_path / "run")
    assert (kept.inference, kept.stochastic.num_steps) == ("stochastic", 20)


def test_help_knows_all_settings_and_orbits():
    assert SETTINGS.keys() == vars(TrainingSettings()).keys()
    assert STOCHASTIC.keys() == vars(StochasticSettings()).keys()
    assert INFERENCES == KINDS
    assert ORBITS == NAMES


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"schema": "orbitgp.command/1"}', '{"schema": "orbitgp.command/3"}']
)
def test_a_damaged_command_file_is_refused(tmp_path, text):
    with pytest.raises(FileError, match="no step was taken"):
        read_options(tmp_path)
    (tmp_path / "command.json").write_text(text)
    with pytest.raises(FileError, match="cannot be read"):
        read_options(tmp_path)


def test_processes_of_a_launcher_share_a_fit(fitted, images, tmp_path):
    """Two processes that find each other by their environment; only the first one speaks."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    command = [sys.executable, "-m", "orbitgp", "fit", "--json"]
    command += map(str, options_of(images, tmp_path / "run"))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [
        subprocess.Popen(command, env={**environment(), **place, "RANK": str(rank)}, **pipes)
        for rank in range(2)
    ]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    record, whole = json.loads(outputs[0][0]), fitted[1]
    conforms(record, schemas.FitRecord)
    assert outputs[1][0] == ""
    assert (record["processes"], whole["processes"]) == (2, 1)
    assert record["evidence"] == pytest.approx(whole["evidence"], rel=1e-3)
    assert record["test"]["metrics"]["error"] == whole["test"]["metrics"]["error"]
