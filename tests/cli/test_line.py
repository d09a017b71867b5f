"""The line itself: help, completion, data, exit codes."""

import json
import subprocess
import sys
import time

import pytest

from orbitgp import FileError, InputError, NumericalError
from orbitgp.cli import main, schemas
from orbitgp.cli.exit_codes import code_of
from orbitgp.cli.fit import FIT
from orbitgp.cli.output import Output
from orbitgp.estimators.classifier import LIKELIHOODS
from orbitgp.orbits.names import NAMES
from tests.cli.conftest import ROOT, environment, orbitgp
from tests.cli.schema import conforms

COMMANDS = (
    "fit",
    "resume",
    "evaluate",
    "predict",
    "describe",
    "report",
    "export",
    "check-data",
    "completion",
)


def timed(*arguments):
    """A new interpreter, which has imported nothing, and how long it took."""
    start = time.perf_counter()
    process = subprocess.run(
        [sys.executable, *arguments],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(),
    )
    return process, time.perf_counter() - start


@pytest.mark.parametrize("arguments", [("--help",), ("fit", "--help")], ids=["all", "fit"])
def test_help_is_there_at_once(arguments):
    """In less time than importing the parser of lines takes, best of three new interpreters each.

    Help needs 0.12 to 0.25 s and that import 0.35 to 0.65 s on one machine, as it pleases; numpy
    0.5, torch more than a second. A line that imported one of them could not be so fast.
    """
    help_seconds, import_seconds = [], []
    for _ in range(3):
        process, seconds = timed("-m", "orbitgp", *arguments)
        help_seconds.append(seconds)
        import_seconds.append(timed("-c", "import jsonargparse")[1])
    assert min(help_seconds) < 0.8 * min(import_seconds), (help_seconds, import_seconds)
    assert "exit codes: 0 done; 2 wrong usage" in process.stdout
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


@pytest.mark.parametrize(
    "line",
    ["predict --help", "check-data --help", "describe nothing", "export x --policy json", "fit"],
)
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


def test_choices_are_those_of_the_estimators():
    """Help must not import what is slow, so the names are written twice."""
    choices = {argument.name: argument.choices for argument in FIT.arguments}
    assert choices["--orbit"] == NAMES
    assert set(choices["--likelihood"]) == set(LIKELIHOODS)


def test_completion_as_json(capsys):
    assert main(["completion", "bash", "--json"]) == 0
    conforms(json.loads(capsys.readouterr().out), schemas.CompletionRecord)


def test_check_data_says_what_would_be_read(images, table):
    process = orbitgp("check-data", "--data", images, "--json")
    assert process.returncode == 0, process.stderr
    record = json.loads(process.stdout)
    conforms(record, schemas.CheckDataRecord)
    assert (record["num_data"], record["num_test"]) == (60, 20)
    assert sum(record["classes"].values()) == 60
    assert record["task"] == "classification"
    text = orbitgp("check-data", "--data", "digits").stdout
    assert "1,000 inputs to learn from, 797 to test with" in text
    assert "images of 8 × 8 pixels, values 0 … 16" in text
    assert "0 (99), 1 (102)" in text
    text = orbitgp("check-data", "--data", table, "--target", "sum").stdout
    assert "regression: the labels are floats" in text
    assert "classes" not in text


@pytest.mark.parametrize(
    ("line", "code", "part"),
    [
        ("", 2, "orbitgp --help"),
        ("fot", 2, "'fot'"),
        ("fit --data x", 2, "required: --out"),
        ("fit --data x --out y --orbit spiral", 2, "spiral"),
        ("fit --data x --out y --orbit mirror+spiral", 2, "mirror+spiral"),
        ("fit --data x --out y --settings.max_steps many", 2, "settings.max_steps"),
        ("fit --data x --out y --settings.max_steps 0", 2, "must be positive"),
        ("fit --data x --out y --image_size 8", 2, "--image_size"),
        ("fit --dat x --out y", 2, "orbitgp fit --help"),
        ("fit --data mnits --out y", 2, "possible are `digits`"),
        ("fit --data nowhere.npz --out y", 3, "nowhere.npz does not exist"),
        ("fit --config nowhere.yaml", 3, "nowhere.yaml"),
        ("check-data", 2, "orbitgp check-data --help"),
        ("check-data --nme", 2, "orbitgp check-data --help"),
        ("resume nowhere", 3, "nowhere is not a folder"),
        ("describe nowhere", 3, "nowhere does not exist"),
        ("report nowhere", 3, "nowhere"),
        ("export nowhere --policy kornia", 3, "nowhere does not exist"),
        ("export nowhere --policy pandas", 2, "pandas"),
        ("export nowhere", 2, "--policy LIBRARY"),
        ("export nowhere --policy json --predictor a.onnx", 2, "--predictor FILE"),
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

    def fail(*_):
        raise error

    assert code_of(error) == code
    monkeypatch.setattr("orbitgp.cli.data.checked", fail)
    assert main(["check-data", "--data", "digits"]) == code
    shown = capsys.readouterr().err
    assert shown.endswith("orbitgp: x\n")
    assert ("Traceback" in shown) == (code == 70)


def test_a_closed_pipe_is_no_defect(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "orbitgp", "check-data", "--data", "digits"],
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
