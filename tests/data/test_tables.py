"""CSV and Parquet: numbers by name, and errors that name the place."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orbitgp import FileError, InputError
from orbitgp.data.tables import read_table, read_table_inputs


def csv(folder, text):
    path = folder / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def parquet(folder, **columns):
    path = folder / "table.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def test_csv_with_the_last_column_as_target(tmp_path):
    path = csv(tmp_path, '\ufeffa,"b, c",y\r\n1,2.5,0\r\n\r\n"3",-4e2,10\r\n')
    data = read_table(path)
    np.testing.assert_array_equal(data.x, [[1, 2.5], [3, -400]])
    assert data.x.dtype == np.float64
    assert data.y.tolist() == [0, 10]
    assert data.y.dtype == np.int64


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2"], np.array([1, 2], np.int64)),
        (["1", "2.0"], np.array([1.0, 2.0])),
        (["1", "99999999999999999999"], np.array([1.0, 1e20])),
        (["1", "cat"], np.array(["1", "cat"])),
        (["1_0", "2"], np.array(["1_0", "2"])),
    ],
)
def test_kinds_of_labels(cells, expected, tmp_path):
    data = read_table(csv(tmp_path, f"y,x\n{cells[0]},1\n{cells[1]},2\n"), target="y")
    assert data.y.dtype == expected.dtype
    np.testing.assert_array_equal(data.y, expected)
    np.testing.assert_array_equal(data.x, [[1], [2]])


def test_inputs_need_no_target(tmp_path):
    path = csv(tmp_path, "a,b,y\n1,2,3\n")
    np.testing.assert_array_equal(read_table_inputs(path), [[1, 2, 3]])
    np.testing.assert_array_equal(read_table_inputs(path, target="a"), [[2, 3]])
    np.testing.assert_array_equal(read_table_inputs(path, target="absent"), [[1, 2, 3]])
    with pytest.raises(InputError, match=r"no column 'absent'; .* one of a, b, y"):
        read_table(path, target="absent")
    path = parquet(tmp_path, a=[1.0], y=["cat"])
    np.testing.assert_array_equal(read_table_inputs(path, target="y"), [[1]])
    with pytest.raises(FileError, match=r"column 'y' holds string; .*name it as the target"):
        read_table_inputs(path)


BAD_CSV = {
    "empty": ("", "line 1: expected the names"),
    "no names": ("1,2\n3,4\n", "line 1: expected the names"),
    "no rows": ("a,y\n", "has no rows"),
    "semicolons": ("a;y\n1;2\n", "separate columns by commas"),
    "index of pandas": (",a,y\n0,1,2\n", "column 1 has no name.*index=False"),
    "two of a name": ("a,a,y\n0,1,2\n", "two columns are called 'a'"),
    "target alone": ("y\n1\n", "no column beside its target 'y'"),
    "short row": ("a,b,y\n1,2,3\n1,2\n", "line 3: 2 values below 3 names"),
    "text": ("a,b,y\n1,2,3\n\n1,two,3\n", "line 4, column 'b': 'two' is not a finite number"),
    "gap": ("a,b,y\n1,,3\n", "line 2, column 'b': the value is missing"),
    "nan": ("a,b,y\n1,nan,3\n", "line 2, column 'b': 'nan' is not a finite number"),
    "underscore": ("a,y\n1_0,3\n", "column 'a': '1_0' is not"),
    "no label": ("a,y\n1, \n", "line 2, column 'y': the target is missing"),
    "long label": ("a,y\n1," + "z" * 300 + "\n", "the target has 300 characters"),
    "not UTF-8": (b"a,y\n\xff,3\n", "expected UTF-8 text"),
    "open quote": ('a,y\n"1,3\n', "cannot be read as CSV"),
    "long field": ("a,y\n" + "1" * 200_000 + ",3\n", "field larger than"),
}


@pytest.mark.parametrize("name", BAD_CSV)
def test_csv_errors_name_the_place(name, tmp_path):
    text, reason = BAD_CSV[name]
    path = csv(tmp_path, text)
    with pytest.raises(FileError, match=f"{re.escape(str(path))}.*{reason}"):
        read_table(path)


def test_the_column_after_the_target_is_named(tmp_path):
    with pytest.raises(FileError, match="line 2, column 'b': 'x' is not"):
        read_table(csv(tmp_path, "y,a,b\n0,1,x\n"), target="y")


def test_big_numbers_are_finite(tmp_path):
    data = read_table(csv(tmp_path, "a,b,y\n1e308,1e308,3\n"))
    np.testing.assert_array_equal(data.x, [[1e308, 1e308]])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([1, 2], np.array([1, 2], np.int64)),
        ([1.5, 2.0], np.array([1.5, 2.0])),
        (["a", "bc"], np.array(["a", "bc"])),
        (pa.array(["a", "bc"]).dictionary_encode(), np.array(["a", "bc"])),
        (pa.array([3, 1], pa.uint8()), np.array([3, 1], np.int64)),
    ],
    ids=["int", "float", "string", "categories", "uint8"],
)
def test_parquet_tables(labels, expected, tmp_path):
    path = parquet(
        tmp_path, y=labels, a=[1, 2], b=pa.array([0.5, 1], pa.float32()), c=[True, False]
    )
    data = read_table(path, target="y")
    np.testing.assert_array_equal(data.x, [[1, 0.5, 1], [2, 1, 0]])
    assert data.x.dtype == np.float64
    assert data.y.dtype == expected.dtype
    np.testing.assert_array_equal(data.y, expected)


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int16()), pa.large_list(pa.float64()), pa.list_(pa.float32(), 3)]
)
def test_parquet_series(kind, tmp_path):
    series = pa.array([[1, 2, 3], [4, 5, 6]], kind)
    data = read_table(parquet(tmp_path, series=series, y=["a", "b"]))
    np.testing.assert_array_equal(data.x, [[1, 2, 3], [4, 5, 6]])
    assert data.x.dtype == np.float64


BAD_PARQUET = {
    "gap": ({"a": [1, None, 2], "y": [1, 2, 3]}, "column 'a', row 1: the value is missing"),
    "nan": ({"a": [1, np.nan], "y": [1, 2]}, "column 'a', row 1: nan is not a finite number"),
    "text": ({"a": ["x"], "y": [1]}, "column 'a' holds string"),
    "no label": ({"a": [1], "y": [None]}, "column 'y', row 0: the value is missing"),
    "dates": ({"a": [1], "y": pa.array([1], pa.date32())}, "numbers or strings; got date32"),
    "ragged": ({"a": [[1, 2], [3]], "y": [1, 2]}, "row 1: a list of 1 values .* first has 2"),
    "gap in list": ({"a": [[1, 2], [3, None]], "y": [1, 2]}, "column 'a', row 1: the value"),
    "nested": ({"a": [[[1]]], "y": [1]}, "column 'a' holds list"),
    "two series": ({"a": [[1]], "b": [[1]], "y": [1]}, "or one column of lists; got a, b, y"),
    "mixed": ({"a": [[1]], "b": [1], "y": [1]}, "or one column of lists"),
    "no rows": ({"a": pa.array([], pa.float64()), "y": pa.array([], pa.int8())}, "has no rows"),
    "index": ({"a": [1], "y": [1], "__index_level_0__": [0]}, "an index of pandas"),
}


@pytest.mark.parametrize("name", BAD_PARQUET)
def test_parquet_errors_name_the_place(name, tmp_path):
    columns, reason = BAD_PARQUET[name]
    path = parquet(tmp_path, **columns)
    with pytest.raises(FileError, match=f"{re.escape(str(path))}.*{reason}"):
        read_table(path)


def test_a_small_file_cannot_claim_millions_of_rows(tmp_path):
    path, rows = tmp_path / "table.parquet", 5_000_000
    table = pa.table({name: np.zeros(rows, np.int8) for name in "ay"})
    pq.write_table(table, path, row_group_size=rows, max_rows_per_page=rows, write_batch_size=rows)
    with pytest.raises(FileError, match=r"10000000 values in a file of \d+ bytes cannot be"):
        read_table(path)


def test_columns_that_pandas_has_counted(tmp_path):
    """A frame without names is written with 0, 1, 2, … for them."""
    path = tmp_path / "new.csv"
    path.write_text("0,1,2\n3,4,5\n")
    assert read_table_inputs(path).tolist() == [[3, 4, 5]]
    path.write_text("0,1,3\n3,4,5\n")
    with pytest.raises(FileError, match="line 1: expected the names of the columns"):
        read_table_inputs(path)
