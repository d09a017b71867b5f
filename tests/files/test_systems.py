"""Files on other systems: folders that cannot be opened, files that are open, other encodings."""

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import orbitgp
from orbitgp import FileError, InvariantGPRegressor, JsonlLog
from orbitgp.sealed import LEFT_OVER, remove_leftovers, write_atomically
from tests.cli.conftest import ROOT
from tests.conftest import QUICK
from tests.files.crash import bars

PACKAGE = Path(orbitgp.__file__).parent


@pytest.mark.filterwarnings("ignore:nothing was learned")  # by 5 points
def test_folders_that_cannot_be_opened(tmp_path, monkeypatch):
    """As on Windows, which also has no sysconf: a fit is made, saved and read."""
    opened = os.open

    def refuse_folders(path, *arguments, **options):
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse_folders)
    monkeypatch.delattr(os, "sysconf", raising=False)
    images, labels = bars(12)
    given = {"settings": QUICK, "random_state": 0, "num_inducing": 5}
    model = InvariantGPRegressor(run=tmp_path / "run", **given).fit(images, labels)
    assert orbitgp.load(tmp_path / "run").evidence_ == model.evidence_


def refusing(times, monkeypatch):
    """A file that some other program has open, as often as it is to be replaced."""
    original, calls = os.replace, []

    def replace(*arguments):
        calls.append(arguments)
        if len(calls) <= times:
            raise PermissionError(13, "Access is denied")
        return original(*arguments)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr("orbitgp.sealed.PAUSES", (0.0, 0.0, 0.0))
    return calls


def test_a_file_that_is_open_elsewhere_is_replaced_later(tmp_path, monkeypatch):
    calls = refusing(3, monkeypatch)
    write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert len(calls) == 4


def test_a_file_that_stays_open_is_explained(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")
    refusing(4, monkeypatch)
    with pytest.raises(FileError, match=r"Access is denied.*close other programs that have this"):
        write_atomically(tmp_path / "file", b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


SLOWLY = """
import os, sys
from pathlib import Path
from orbitgp.sealed import write_atomically
replace = os.replace
def wait(*paths):
    print("written", flush=True)
    sys.stdin.readline()
    replace(*paths)
os.replace = wait
write_atomically(Path(sys.argv[1]), b"of the other process")
"""


def test_the_temporary_file_of_a_live_process_is_left_alone(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    other = subprocess.Popen([sys.executable, "-c", SLOWLY, str(path)], **pipes)
    assert other.stdout is not None
    assert other.stdout.readline() == "written\n"
    remove_leftovers(tmp_path)
    other.communicate("\n", timeout=60)
    assert other.returncode == 0
    assert path.read_bytes() == b"of the other process"


def test_only_old_temporary_files_of_ours_are_removed(tmp_path):
    end, now = f"{'0' * 16}.tmp", time.time()
    ages = {
        f"checkpoint.safetensors.{end}": LEFT_OVER + 60,
        f"settings.json.{end}": LEFT_OVER - 60,
        f"model.safetensors.{end}": -LEFT_OVER,  # of a machine whose clock is ahead
        "mine.tmp": 2 * LEFT_OVER,
    }
    for name, age in ages.items():
        (tmp_path / name).write_text("half")
        os.utime(tmp_path / name, (now - age, now - age))
    remove_leftovers(tmp_path)
    kept = {path.name for path in tmp_path.iterdir()}
    assert ages.keys() - kept == {f"checkpoint.safetensors.{end}"}


def test_a_log_has_the_same_bytes_on_all_systems(tmp_path, monkeypatch):
    """A line ends with one byte, also where text files have two, and letters are UTF-8."""
    original, given = Path.open, []

    def watched(path, *arguments, **options):
        given.append(options)
        return original(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", watched)
    JsonlLog(tmp_path / "log.jsonl").warned("−9° … ±1")
    assert given == [{"encoding": "utf-8", "newline": "\n"}]
    data = (tmp_path / "log.jsonl").read_bytes()
    assert json.loads(data.decode("utf-8"))["message"] == "−9° … ±1"


def texts_without_encoding(path):
    """Calls that open a text file in the encoding of the machine."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = {keyword.arg for keyword in node.keywords}
        owner = ast.unparse(node.func).rpartition(".")[0]
        modes = [a.value for a in node.args if isinstance(a, ast.Constant)]
        opens = name == "open" and owner not in ("gzip", "tarfile", "pillow", "archive", "os")
        opens = opens and owner != "folder" and "rb" not in modes and "wb" not in modes
        if (opens or name in ("read_text", "write_text")) and "encoding" not in given:
            yield f"{path}:{node.lineno}: {ast.unparse(node)}"


def test_texts_are_in_utf_8_on_all_systems():
    found = [line for path in PACKAGE.rglob("*.py") for line in texts_without_encoding(path)]
    assert not found


def test_a_machine_with_another_encoding(tmp_path):
    """A run is made, described and reported where texts are ASCII, which cp1252 extends."""
    other = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment = {**os.environ, **other, "OMP_NUM_THREADS": "1"}
    quick = ("--settings.max_steps", "1", "--settings.climb_size", "20")

    def orbitgp_prints(*arguments):
        command = [sys.executable, "-m", "orbitgp", *map(str, arguments)]
        process = subprocess.run(
            command, check=False, env=environment, capture_output=True, cwd=ROOT
        )
        assert process.returncode == 0, process.stderr.decode("utf-8")
        return process.stdout.decode("utf-8")

    rows = [f"{a},{a * a},größer" if a > 5 else f"{a},{a},klein" for a in range(20)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,label", *rows]) + "\n", encoding="utf-8")
    run = tmp_path / "run"
    orbitgp_prints("fit", "--data", tmp_path / "rows.csv", "--out", run, *quick)
    record = json.loads(orbitgp_prints("describe", run, "--json"))
    assert record["model"]["classes"] == ["größer", "klein"]
    assert "±" in orbitgp_prints("describe", run)
    orbitgp_prints("report", run)
    assert "größer" in (run / "report.html").read_text(encoding="utf-8")
