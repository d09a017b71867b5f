"""`orbitgp data list` and `orbitgp data check`: named sets and the state of their files."""

from collections.abc import Mapping
from typing import Any

from orbitgp.cli.codes import CHECK_FAILED, DONE
from orbitgp.cli.command import Argument, Command, Group
from orbitgp.cli.output import Output
from orbitgp.cli.schemas import CheckPart, DataCheckRecord, DataListRecord, SetPart
from orbitgp.errors import FileError

NAMES = Argument("names", "sets to check; all if none is named", nargs="*", metavar="NAME")


def run_list(options: Mapping[str, Any], output: Output) -> int:
    """`orbitgp data list`."""
    from orbitgp.data.named import data_folder, names

    del options
    sets = [set_part(name) for name in names()]
    folder = str(data_folder())
    record: DataListRecord = {"schema": "orbitgp.data-list/1", "folder": folder, "sets": sets}
    output.show(record, f"{_columns(sets)}\nunder {folder} (ORBITGP_DATA)")
    return DONE


def run_check(options: Mapping[str, Any], output: Output) -> int:
    """`orbitgp data check`."""
    from orbitgp.data.named import data_folder, files_of, names

    asked = options["names"] or names()
    for name in asked:
        files_of(name)  # names that are not known are refused before hours of reading
    sets = []
    for name in asked:
        sets.append(check_part(name))
        output.say(f"{name}: {sets[-1]['state']}{_advice(sets[-1])}")
    bad = sum(part["state"] != "ok" for part in sets)
    record: DataCheckRecord = {
        "schema": "orbitgp.data-check/1",
        "folder": str(data_folder()),
        "sets": sets,
    }
    output.show(record, f"{len(sets) - bad} of {len(sets)} sets are ok")
    return CHECK_FAILED if bad else DONE


def set_part(name: str) -> SetPart:
    """A set by its files; none is read."""
    from orbitgp.data.named import SOURCES, data_folder, files_of

    files = files_of(name)
    present = [data_folder() / file for file in files if (data_folder() / file).is_file()]
    return {
        "name": name,
        "state": "present" if len(present) == len(files) else "missing",
        "bytes": sum(path.stat().st_size for path in present),
        "files": files,
        "source": SOURCES[name.split("/")[0]],
    }


def check_part(name: str) -> CheckPart:
    """Whether the files of a set are those that were published."""
    from orbitgp.data.named import check

    try:
        check(name)
    except FileError as error:
        missing = set_part(name)["state"] == "missing"
        advice = str(error) if missing else f"{error}; get {set_part(name)['source']} again"
        return {"name": name, "state": "missing" if missing else "damaged", "advice": advice}
    return {"name": name, "state": "ok", "advice": None}


def _advice(part: CheckPart) -> str:
    return "" if part["advice"] is None else f": {part['advice']}"


def _columns(sets: list[SetPart]) -> str:
    width = max(len(part["name"]) for part in sets) + 2
    return "\n".join(
        f"{part['name']:<{width}}{part['state']:<9}{part['bytes'] / 1e6:>7.1f} MB  {part['source']}"
        for part in sets
    )


LIST = Command("list", "named sets, present or missing", (), run_list)
CHECK = Command("check", "compare the files of sets with their checksums", (NAMES,), run_check)
DATA = Group("data", "named sets of data, under $ORBITGP_DATA", (LIST, CHECK))
