"""`orbitgp describe`: what a run learned, by its folder alone."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orbitgp.cli.command import RUN, Command
from orbitgp.cli.exit_codes import DONE
from orbitgp.cli.learned import learned_part, learned_rows, scores_part, scores_text
from orbitgp.cli.output import Output, table
from orbitgp.cli.runs import load_run
from orbitgp.cli.schemas import DescribeRecord, LearnedPart, ProgressPart, ScoresPart


def run(options: Mapping[str, Any], output: Output) -> int:
    """`orbitgp describe`."""
    folder = Path(options["run"])
    record = unfinished(folder) if is_unfinished(folder) else finished(folder)
    output.show(record, words(record))
    return DONE


def is_unfinished(folder: Path) -> bool:
    """Whether a run was begun here and has no model yet."""
    return (folder / "settings.json").exists() and not (folder / "model.safetensors").exists()


def finished(folder: Path) -> DescribeRecord:
    """By the model and the last test."""
    return {
        "schema": "orbitgp.describe/1",
        "run": str(folder),
        "state": "finished",
        "model": learned_part(load_run(folder)),
        "progress": None,
        "test": last_test(folder),
        "files": files_in(folder),
    }


def unfinished(folder: Path) -> DescribeRecord:
    """By the log."""
    return {
        "schema": "orbitgp.describe/1",
        "run": str(folder),
        "state": "unfinished",
        "model": None,
        "progress": progress(folder / "log.jsonl"),
        "test": None,
        "files": files_in(folder),
    }


def last_test(folder: Path) -> ScoresPart | None:
    """What `fit` or `evaluate` found last."""
    from orbitgp.scores import read_test

    path = folder / "test.safetensors"
    return scores_part(read_test(path)) if path.exists() else None


def progress(log: Path) -> ProgressPart | None:
    """The newest evaluation in a log, whose last line may be half a line."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    for line in reversed(lines):
        try:
            row = json.loads(line)
            if row["event"] == "evaluated":
                return {
                    "step": int(row["step"]),
                    "evidence": float(row["evidence"]),
                    "num_data": int(row["num_data"]),
                    "learned": str(row["learned"]),
                }
        except (ValueError, LookupError, TypeError):
            continue
    return None


def files_in(folder: Path) -> list[str]:
    """Names of the files of a run."""
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def words(record: DescribeRecord) -> str:
    """The record for people."""
    model, now = record["model"], record["progress"]
    if model is None:
        rows = {"state": "unfinished"}
        if now is not None:
            evidence = f"{now['evidence']:,.1f} nats, of {now['num_data']:,} inputs"
            rows |= {"step": str(now["step"]), "evidence": evidence}
            rows["learned"] = f"{now['learned']} (so far)"
        return table({**rows, "next": f"orbitgp resume {record['run']}"})
    rows = {"task": task_words(model), **learned_rows(model)}
    if record["test"] is not None:
        rows["test"] = scores_text(record["test"])
    return table(rows)


def task_words(model: LearnedPart) -> str:
    """Kind and classes, as many as a line holds."""
    if model["classes"] is None:
        return "regression"
    names = ", ".join(map(str, model["classes"]))
    shown = names if len(names) <= 60 else f"{names[:57]}…"
    return f"classification of {len(model['classes'])} classes ({shown})"


DESCRIBE = Command("describe", "what a run learned, in words", (RUN,), run)
