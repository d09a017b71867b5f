"""The line itself: help, completion, named sets, exit codes."""

import hashlib
import json
import subprocess
import sys
import time

import pytest

from orbitgp import FileError, InputError, NumericalError
from orbitgp.cli import main, schemas
from orbitgp.cli.codes import code_of
from orbitgp.cli.output import Output
from orbitgp.data import named
from tests.cli.conftest import ROOT, environment, orbitgp
from tests.cli.schema import conforms

COMMANDS = ("fit", "resume", "evaluate", "predict", "describe", "report", "data", "completion")


@pytest.mark.parametrize("arguments", [("--help",), ("fit", "--help")], ids=["all", "fit"])
def test_help_is_there_at_once(arguments):
    """At most 0.3 s, the best of three fresh processes."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        process = orbitgp(*arguments)
        seconds.append(time.perf_counter() - start)
        assert process.returncode == 0
    assert min(seconds) < 0.3
    assert "exit codes: 0 done; 1 a check failed; 2 wrong usage" in process.stdout
    shown = COMMANDS if len(arguments) == 1 else ("--settings.max_steps", "--config", "--json")
    assert all(name in process.stdout for name in shown)


WATCH = """
import sys
from orbitgp.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print({"torch", "sklearn"} & sys.modules.keys(), file=sys.stderr)
"""


@pytest.mark.parametrize("line", ["predict --help", "data list", "describe nothing", "fit"])
def test_torch_is_not_imported_in_vain(line):
    command = [sys.executable, "-c", WATCH, *line.split()]
    process = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment()
    )
    assert process.stderr.splitlines()[-1] == "set()", process.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_all_commands(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in (*COMMANDS, "settings.max_steps", "quarter-turns"):
        assert word in script


def test_the_bash_script_completes():
    script = orbitgp("completion", "bash")
    assert script.returncode == 0, script.stderr
    ask = 'COMP_WORDS=(orbitgp de); COMP_CWORD=1; _shtab_orbitgp; echo "${COMPREPLY[@]}"'
    bash = subprocess.run(
        ["bash", "-c", f"{script.stdout}\n{ask}"], capture_output=True, text=True, check=True
    )
    assert bash.stdout == "describe\n", bash.stderr


def test_completion_without_shtab(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash", "--json"]) == 2
    assert (
        'pip install "orbitgp[completion]"'
        in json.loads(capsys.readouterr().out)["error"]["message"]
    )


def test_completion_as_json(capsys):
    assert main(["completion", "bash", "--json"]) == 0
    conforms(json.loads(capsys.readouterr().out), schemas.CompletionRecord)


def test_data_list(tmp_path):
    (tmp_path / "usps").mkdir()
    (tmp_path / "usps/usps.npz").write_bytes(bytes(1500))
    process = orbitgp("data", "list", "--json", ORBITGP_DATA=str(tmp_path))
    assert process.returncode == 0, process.stderr
    record = json.loads(process.stdout)
    conforms(record, schemas.DataListRecord)
    states = {part["name"]: (part["state"], part["bytes"]) for part in record["sets"]}
    assert states.keys() == set(named.names())
    assert states.pop("usps") == ("present", 1500)
    assert set(states.values()) == {("missing", 0)}
    text = orbitgp("data", "list", ORBITGP_DATA=str(tmp_path)).stdout.splitlines()
    assert len(text) == len(record["sets"]) + 1
    assert str(tmp_path) in text[-1]


def test_data_check_finds_what_is_damaged_or_missing(tmp_path):
    (tmp_path / "usps").mkdir()
    (tmp_path / "usps/usps.npz").write_bytes(b"not that")
    process = orbitgp("data", "check", "usps", "qm7", "--json", ORBITGP_DATA=str(tmp_path))
    assert process.returncode == 1, process.stderr
    record = json.loads(process.stdout)
    conforms(record, schemas.DataCheckRecord)
    assert [part["state"] for part in record["sets"]] == ["damaged", "missing"]
    assert "again" in record["sets"][0]["advice"]
    assert "ORBITGP_DATA" in record["sets"][1]["advice"]
    everything = orbitgp("data", "check", ORBITGP_DATA=str(tmp_path))
    assert everything.returncode == 1
    assert f"0 of {len(named.names())} sets are ok" in everything.stdout
    assert orbitgp("data", "check", "qm8").returncode == 2


def test_data_check_is_content(tmp_path, monkeypatch, capsys):
    (tmp_path / "usps").mkdir()
    (tmp_path / "usps/usps.npz").write_bytes(b"published")
    digest = hashlib.sha256(b"published").hexdigest()
    monkeypatch.setenv("ORBITGP_DATA", str(tmp_path))
    monkeypatch.setattr(named, "checksums", lambda: {"usps/usps.npz": digest})
    assert main(["data", "check", "usps"]) == 0
    assert capsys.readouterr().out == "usps: ok\n1 of 1 sets are ok\n"


@pytest.mark.parametrize(
    ("line", "code", "part"),
    [
        ("", 2, "orbitgp --help"),
        ("fot", 2, "'fot'"),
        ("fit --data x", 2, "fit.out"),
        ("fit --data x --out y --orbit spiral", 2, "spiral"),
        ("fit --data x --out y --settings.max_steps many", 2, "settings.max_steps"),
        ("fit --data x --out y --settings.max_steps 0", 2, "must be positive"),
        ("fit --data x --out y --image_size 8", 2, "--image_size"),
        ("fit --dat x --out y", 2, "orbitgp fit --help"),
        ("fit --data mnits --out y", 2, "did you mean mnist"),
        ("fit --data nowhere.npz --out y", 3, "nowhere.npz does not exist"),
        ("fit --config nowhere.yaml", 3, "nowhere.yaml"),
        ("data", 2, "orbitgp data --help"),
        ("data check --nme", 2, "orbitgp data check --help"),
        ("resume nowhere", 3, "nowhere is not a folder"),
        ("describe nowhere", 3, "nowhere does not exist"),
        ("report nowhere", 3, "nowhere"),
        ("completion csh", 2, "csh"),
    ],
    ids=lambda value: str(value).replace(" ", "_") if isinstance(value, str) else str(value),
)
def test_errors_are_one_line_with_their_code(line, code, part, capsys):
    assert main(line.split()) == code
    plain = capsys.readouterr()
    assert plain.out == ""
    assert plain.err.startswith("orbitgp: ")
    assert plain.err.count("\n") == 1
    assert part in plain.err
    assert main([*line.split(), "--json"]) == code
    record = json.loads(capsys.readouterr().out)
    conforms(record, schemas.ErrorRecord)
    assert record["error"]["exit_code"] == code
    assert main([*line.split(), "--debug"]) == code
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("x"), 2),
        (FileError("x"), 3),
        (PermissionError("x"), 3),
        (NumericalError("x"), 4),
        (ZeroDivisionError("x"), 70),
        (KeyboardInterrupt("x"), 130),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exit_codes(error, code, monkeypatch, capsys):
    """A defect of ours shows where it is; all else is one line."""

    def fail():
        raise error

    assert code_of(error) == code
    monkeypatch.setattr(named, "names", fail)
    assert main(["data", "list"]) == code
    shown = capsys.readouterr().err
    assert shown.endswith("orbitgp: x\n")
    assert ("Traceback" in shown) == (code == 70)


def test_a_closed_pipe_is_no_defect(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "orbitgp", "data", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=environment(),
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("image_size: [8]", "[8]"),
        ("orbit: spiral", "spiral"),
        ("data: [", "parsing"),
        ("q: 1", "q"),
    ],
    ids=["size", "choice", "yaml", "key"],
)
def test_what_a_file_says_is_checked_too(text, part, tmp_path, capsys):
    (tmp_path / "fit.yaml").write_text(f"{text}\nout: y\n")
    assert main(["fit", "--config", str(tmp_path / "fit.yaml"), "--data", "x"]) == 2
    assert part in capsys.readouterr().err


def test_numbers_that_are_not_finite_are_null(capsys):
    Output(True).show({"a": float("inf"), "b": [float("nan"), 1.5], "c": (1, "x")}, "")
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 1.5], "c": [1, "x"]}


def test_python_m_and_version():
    process = orbitgp("--version")
    assert process.stdout.startswith("orbitgp 0.")
    assert process.returncode == 0
