"""Tables: CSV and Parquet files with named columns, one of which may be the target."""

import csv
import math
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from orbitgp.data.columns import check_label, label_array, target_place
from orbitgp.data.labelled import LabelledData
from orbitgp.data.parquet import read_parquet
from orbitgp.errors import FileError, InputError


def read_table(path: Path, *, target: str | None = None) -> LabelledData:
    """A CSV or Parquet file: `target` (the last column by default) is y, all others x [n, D].

    A Parquet file may have one column of lists of equal length instead, a series: x [n, T].
    """
    x, y = _reader(path)(path, target=target, labelled=True)
    if y is None or not len(y):
        raise FileError(f"{path} has no rows below its names of columns")
    return LabelledData(x, y)


def read_table_inputs(path: Path, *, target: str | None = None) -> np.ndarray:
    """The inputs of a CSV or Parquet file: all columns but `target`, which need not be there."""
    return _reader(path)(path, target=target, labelled=False)[0]


def read_csv(
    path: Path, *, target: str | None = None, labelled: bool = True
) -> tuple[np.ndarray, np.ndarray | None]:
    """x [n, D] and y of a CSV file with a line of names; y is None where it is not asked for."""
    values, labels = array("d"), []
    rows = _rows(path)
    header = next(rows, (1, []))[1]
    place = target_place(_names(header, path), target, labelled, path)
    inputs = [name for number, name in enumerate(header) if number != place]
    for line, row in rows:
        spot = f"{path}: line {line}"
        if len(row) != len(header):
            raise FileError(f"{spot}: {len(row)} values below {len(header)} names of columns")
        if place is not None:
            labels.append(check_label(row.pop(place), f"{spot}, column {header[place]!r:.80}"))
        numbers = [_number(cell) for cell in row]
        if not all(map(math.isfinite, numbers)):
            raise _cell_error(row, inputs, numbers, spot)
        values.extend(numbers)
    x = np.frombuffer(values, np.float64).reshape(-1, len(inputs))
    return x, label_array(labels) if labelled else None


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Lines with their numbers, empty ones aside."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for row in reader:
                if row:
                    yield reader.line_num, row
    except (OSError, UnicodeError, csv.Error) as error:
        raise FileError(
            f"{path} cannot be read as CSV: {error}; expected UTF-8 text, separated by commas"
        ) from None


def _names(header: list[str], path: Path) -> list[str]:
    """The names of columns, if the first line has them."""
    counted = [str(number) for number in range(len(header))]  # names that pandas gives
    if not header or (header != counted and all(math.isfinite(_number(name)) for name in header)):
        raise FileError(f"{path}: line 1: expected the names of the columns; got {header!s:.80}")
    if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
        raise FileError(f"{path}: line 1: separate columns by commas; got {header[0]!r:.80}")
    for number, name in enumerate(header, 1):
        if not name.strip():
            raise FileError(
                f"{path}: line 1: column {number} has no name; name it, or leave it out (pandas: "
                "to_csv(index=False))"
            )
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise FileError(f"{path}: line 1: two columns are called {twice!r:.80}")
    return header


def _number(cell: str) -> float:
    """Return the number in a cell, or nan for anything else, such as 1_000."""
    try:
        return math.nan if "_" in cell else float(cell)
    except ValueError:
        return math.nan


def _cell_error(row: list[str], names: list[str], numbers: list[float], spot: str) -> FileError:
    """Name the first cell that is not a finite number."""
    place = next(n for n, number in enumerate(numbers) if not math.isfinite(number))
    cell = row[place]
    what = f"{cell!r:.80} is not a finite number" if cell.strip() else "the value is missing"
    return FileError(
        f"{spot}, column {names[place]!r:.80}: {what}; every column but the target holds numbers"
    )


def _reader(path: Path):
    match path.suffix.lower():
        case ".csv":
            return read_csv
        case ".parquet":
            return read_parquet
    raise InputError(f"{path}: a table is a .csv or a .parquet file")
