"""Parquet files, read with pyarrow (extra `parquet`) after a look at what they claim to hold."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from orbitgp.data.columns import check_label, target_place
from orbitgp.errors import FileError, InputError

MAX_RATIO = 1000
"""Values for each byte of a file; a column with any news in it stays far below."""
FREE = 2**20
"""Values that a file may have however small it is."""
PIECE = 2**14
"""Rows that are read at once."""
BUFFER = 2**16
"""Bytes of each column that a stream reads ahead."""


def read_parquet(
    path: Path, *, target: str | None = None, labelled: bool = True
) -> tuple[np.ndarray, np.ndarray | None]:
    """x [n, D], or [n, T] from one column of lists, and y; y is None where it is not asked for."""
    with opened_parquet(path) as file:
        names = column_names(file, path)
        place = target_place(names, target, labelled, path)
        return split_columns(_whole(file, path), names, place, path, labelled=labelled)


@contextmanager
def opened_parquet(path: Path, *, buffer: int = 0) -> Iterator[Any]:
    """A pyarrow ParquetFile whose claims are not absurd; whatever pyarrow raises names the file.

    With a `buffer`, columns are read page by page. Without, they are read as wholes, and a page
    that claims more bytes than there are is given no room.
    """
    pq = _pyarrow()
    try:
        with pq.ParquetFile(
            path,
            buffer_size=buffer,
            pre_buffer=False,
            page_checksum_verification=True,
            thrift_string_size_limit=2**24,
            thrift_container_size_limit=2**20,
        ) as file:
            _check_claims(file.metadata, path)
            yield file
    except (FileError, InputError):
        raise
    except Exception as error:  # malformed bytes make pyarrow raise almost anything
        raise FileError(
            f"{path} cannot be read as a Parquet file: {type(error).__name__}: {error!s:.200}"
        ) from None


def column_names(file: Any, path: Path) -> list[str]:
    """The names of the columns, if each has its own and none is an index of pandas."""
    names = file.schema_arrow.names
    if len(set(names)) < len(names):
        raise FileError(f"{path}: two columns have one name among {', '.join(names)[:200]}")
    for name in names:
        if name.startswith("__index_level_"):
            raise FileError(
                f"{path} has an index of pandas among its columns; leave it out: "
                "to_parquet(index=False)"
            )
    return names


def row_pieces(file: Any, group: int, batch_size: int) -> Iterator[Any]:
    """A row group as pyarrow tables of `batch_size` rows; the last may have fewer."""
    import pyarrow as pa

    rest = file.schema_arrow.empty_table()
    for piece in file.iter_batches(batch_size, row_groups=[group], use_threads=False):
        rest = pa.concat_tables([rest, pa.Table.from_batches([piece])])
        while rest.num_rows >= batch_size:
            yield rest.slice(0, batch_size)
            rest = rest.slice(batch_size)
    if rest.num_rows:
        yield rest


def split_columns(
    table: Any,
    names: list[str],
    place: int | None,
    path: Path,
    *,
    labelled: bool = True,
    first_row: int = 0,
) -> tuple[np.ndarray, np.ndarray | None]:
    """x and y of a pyarrow table; `first_row` is where it stands in its file."""
    table.validate(full=True)
    inputs = [
        _numbers(table.column(number), f"{path}: column {name!r:.80}", first_row)
        for number, name in enumerate(names)
        if number != place
    ]
    if len({values.ndim for values in inputs}) > 1 or (inputs[0].ndim == 2 and len(inputs) > 1):
        raise FileError(
            f"{path}: inputs are columns of numbers, or one column of lists; got "
            f"{', '.join(names)[:200]}"
        )
    x = inputs[0] if inputs[0].ndim == 2 else np.stack(inputs, 1)
    if place is None or not labelled:
        return x, None
    return x, _labels(table.column(place), f"{path}: column {names[place]!r:.80}", first_row)


def _check_claims(metadata: Any, path: Path) -> None:
    """Refuse numbers of rows that disagree, or that no file of this size would have.

    What a row group says of its columns is not asked for: on malformed statistics of sizes,
    pyarrow 25 ends the interpreter there.
    """
    rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    if not metadata.num_columns:
        raise FileError(f"{path} has no columns")
    if min(rows, default=0) < 0 or sum(rows) != metadata.num_rows:
        raise FileError(f"{path}: {metadata.num_rows} rows in groups of {rows!s:.80}")
    size, values = path.stat().st_size, metadata.num_rows * metadata.num_columns
    if values > FREE + MAX_RATIO * size:
        raise FileError(f"{path}: {values} values in a file of {size} bytes cannot be")


def _whole(file: Any, path: Path) -> Any:
    """Return the whole file as a pyarrow table; refuse one that unpacks to absurdly many bytes."""
    import pyarrow as pa

    pieces, size, limit = [], 0, 8 * (FREE + MAX_RATIO * path.stat().st_size)
    for piece in file.iter_batches(PIECE, use_threads=False):
        pieces.append(piece)
        size += piece.nbytes
        if size > limit:
            raise FileError(f"{path} unpacks to more than {limit} bytes; split the file")
    table = pa.Table.from_batches(pieces, file.schema_arrow)
    if table.num_rows != file.metadata.num_rows:
        raise FileError(f"{path} has {table.num_rows} rows; it said {file.metadata.num_rows}")
    return table


def _numbers(column: Any, place: str, first_row: int, width: int = 1) -> np.ndarray:
    """A column as [n] or, of lists, [n, T]; float64, without gaps; `width` values are a row."""
    import pyarrow as pa

    _refuse_gaps(column, place, first_row, width)
    kind = column.type
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if any(check(kind) for check in lists) and not any(check(kind.value_type) for check in lists):
        return _series(column, place, first_row)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise FileError(
            f"{place} holds {kind!s:.80}; every column but the target holds numbers: leave it "
            "out, or name it as the target"
        )
    values = column.to_numpy().astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise FileError(
            f"{place}, row {first_row + bad[0] // width}: {values[bad[0]]} is not a finite "
            "number; fill it in, or leave the row out"
        )
    return values


def _series(column: Any, place: str, first_row: int) -> np.ndarray:
    import pyarrow.compute

    pc: Any = pyarrow.compute  # its functions are made when it is imported
    if not len(column):
        return np.zeros((0, 0))
    lengths = pc.list_value_length(column).to_numpy()
    bad = np.flatnonzero(lengths != lengths[0])
    if len(bad):
        raise FileError(
            f"{place}, row {first_row + bad[0]}: a list of {lengths[bad[0]]} values where the "
            f"first has {lengths[0]}; cut or fill them to one length"
        )
    flat, width = pc.list_flatten(column), max(int(lengths[0]), 1)
    return _numbers(flat, place, first_row, width).reshape(len(column), int(lengths[0]))


def _labels(column: Any, place: str, first_row: int) -> np.ndarray:
    """Whole numbers as int64, numbers as float64, strings as they are."""
    import pyarrow as pa

    _refuse_gaps(column, place, first_row)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.int64()).to_numpy()
    if pa.types.is_floating(kind):
        return _numbers(column, place, first_row)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise FileError(f"{place}: a target holds numbers or strings; got {kind!s:.80}")
    labels = column.to_pylist()
    return np.array(
        [check_label(label, f"{place}, row {first_row + n}") for n, label in enumerate(labels)],
        dtype=str,
    )


def _refuse_gaps(column: Any, place: str, first_row: int, width: int = 1) -> None:
    if column.null_count:
        row = first_row + int(np.argmax(column.is_null().to_numpy())) // width
        raise FileError(f"{place}, row {row}: the value is missing; fill it in, or leave it out")


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError(
            'Parquet files are read with pyarrow: pip install "orbitgp[parquet]"'
        ) from None
    return pq
