"""Streams over Parquet files, a row group at a time (extra `parquet`)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orbitgp.data.columns import target_place
from orbitgp.data.parquet import BUFFER, column_names, opened_parquet, row_pieces, split_columns
from orbitgp.data.stream import Batch, Stream, check_batch_size, check_rank
from orbitgp.errors import FileError, InputError


@dataclass(frozen=True)
class RowGroup:
    """Where the rows of a group stand in their file, and their batches in a pass."""

    path: Path
    group: int
    first_row: int
    first_number: int
    rows: int


@dataclass(frozen=True, eq=False)
class ParquetStream(Stream):
    """Parquet files with the same columns; `target` is the last column if it is None.

    A rank takes whole row groups, and no batch goes beyond one: write at least as many groups as
    there are ranks. In memory are a batch and, of each column, the page it comes from.
    """

    paths: str | Path | Sequence[str | Path]
    target: str | None
    batch_size: int
    groups: tuple[RowGroup, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_batch_size(self.batch_size)
        given = [self.paths] if isinstance(self.paths, str | Path) else self.paths
        paths = [Path(path) for path in given]
        if not paths:
            raise InputError("expected Parquet files; got none")
        object.__setattr__(self, "groups", tuple(_groups(paths, self.target, self.batch_size)))

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """The batches of the row groups r, r + world_size, … of all files."""
        check_rank(rank, world_size)
        return (batch for group in self.groups[rank::world_size] for batch in self._read(group))

    def _read(self, group: RowGroup) -> Iterator[Batch]:
        row, number = group.first_row, group.first_number
        with opened_parquet(group.path, buffer=BUFFER) as file:
            names = column_names(file, group.path)
            place = target_place(names, self.target, True, group.path)
            for table in row_pieces(file, group.group, self.batch_size):
                x, y = split_columns(table, names, place, group.path, first_row=row)
                assert y is not None
                yield Batch(x, y, number)
                row, number = row + len(x), number + 1
        if row != group.first_row + group.rows:
            raise FileError(
                f"{group.path}: row group {group.group} has {row - group.first_row} rows; it "
                f"said {group.rows}"
            )


def _groups(paths: list[Path], target: str | None, batch_size: int) -> Iterator[RowGroup]:
    number, schema = 0, None
    for path in paths:
        row = 0
        with opened_parquet(path) as file:
            target_place(column_names(file, path), target, True, path)
            schema = schema or file.schema_arrow
            if not schema.equals(file.schema_arrow):
                raise FileError(f"{path} has other columns than {paths[0]}; all need the same")
            for group in range(file.metadata.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                yield RowGroup(path, group, row, number, rows)
                row, number = row + rows, number + -(-rows // batch_size)
