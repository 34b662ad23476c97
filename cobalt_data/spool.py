"""Rows that need not fit into memory: whatever order they come in, they come out in the order of a version, (split, id).

A `Spool` keeps rows in memory up to a bound; beyond it they lie on disk as sorted runs, which are merged when they are read.
The runs live in the directory for temporary files (TMPDIR) and go when the spool goes. Equal ids are not told apart here:
whoever writes the rows refuses them.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cobalt_data.dataset import table_from_rows
from cobalt_data.schemas import ID_COLUMNS, TABLES
from cobalt_data.staging import clear_disk_errors

BYTES_IN_MEMORY = 256 << 20  # of rows that wait to become a run
ROWS_PER_PIECE = 1024  # that a run is read by; all runs have one piece in memory at a time

Key = tuple[str, str]


class Spool:
    """Rows of the table `name`, to be added in any order and then read as often as needed."""

    def __init__(self, name: str, tables: Iterable[pa.Table] = ()) -> None:
        self.name = name
        self.num_rows = 0
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._runs: list[Path] = []
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        for table in tables:
            self.add(table)

    @classmethod
    def of_rows(cls, name: str, rows: Iterable[Mapping[str, Any]]) -> Spool:
        """Takes the rows a piece at a time. Raises InputError naming the field where one does not fit the table."""
        spool, remaining = cls(name), iter(rows)
        while piece := list(islice(remaining, ROWS_PER_PIECE)):
            spool.add(table_from_rows(name, piece))
        return spool

    def add(self, table: pa.Table) -> None:
        """Raises CobaltError where the disk is full."""
        if not table.num_rows:
            return
        schema = TABLES[self.name]
        self._waiting.append(table.select(schema.names).cast(schema))
        self.num_rows += table.num_rows
        self._waiting_bytes += table.nbytes
        if self._waiting_bytes > BYTES_IN_MEMORY:
            self._write_run()

    def ordered(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """All rows in the order of (split, id), a piece at a time; `columns` must have these two."""
        runs = [_read_run(self.name, run, columns) for run in self._runs]
        if self._waiting:
            runs.append(_pieces(self._sorted(columns)))
        yield from merged(self.name, runs)

    def to_pylist(self) -> list[dict[str, Any]]:
        return [row for piece in self.ordered() for row in piece.to_pylist()]

    def _sorted(self, columns: Sequence[str] | None = None) -> pa.Table:
        table = pa.concat_tables(self._waiting)
        table = table if columns is None else table.select(columns)
        return table.take(pc.sort_indices(table, sort_keys=_sort_keys(self.name)))

    def _write_run(self) -> None:
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="cobalt-spool-")
        path = Path(self._directory.name) / f"{len(self._runs)}.arrow"
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with clear_disk_errors(path), pa.ipc.new_file(str(path), TABLES[self.name], options=options) as file:
            for piece in _pieces(self._sorted()):
                file.write_table(piece.combine_chunks())
        self._runs.append(path)
        self._waiting, self._waiting_bytes = [], 0


def merged(name: str, streams: Sequence[Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """One ordered stream of several, each in the order of (split, id)."""
    heads = [head for stream in streams if (head := _Head(name, stream)).fill()]
    while len(heads) > 1:
        bound = min(head.keys[-1] for head in heads)
        parts = [part for head in heads if (part := head.take_up_to(bound)).num_rows]
        table = pa.concat_tables(parts)
        yield table if len(parts) == 1 else table.take(pc.sort_indices(table, sort_keys=_sort_keys(name)))
        heads = [head for head in heads if head.fill()]
    for head in heads:
        yield head.table
        yield from head.stream


class _Head:
    """The foremost rows of a stream that have not been merged yet."""

    def __init__(self, name: str, stream: Iterator[pa.Table]) -> None:
        self.stream = stream
        self.table: pa.Table = None
        self.keys: list[Key] = []
        self._id = ID_COLUMNS[name]

    def fill(self) -> bool:
        """Makes sure of at least one row; False where there is none left."""
        while not self.keys:
            table = next(self.stream, None)
            if table is None:
                return False
            self.table, self.keys = table, keys_of(table, self._id)
        return True

    def take_up_to(self, bound: Key) -> pa.Table:
        end = bisect_right(self.keys, bound)
        taken, self.table, self.keys = self.table.slice(0, end), self.table.slice(end), self.keys[end:]
        return taken


def keys_of(table: pa.Table, id_column: str) -> list[Key]:
    return list(zip(table["split"].to_pylist(), table[id_column].to_pylist(), strict=True))


def _sort_keys(name: str) -> list[tuple[str, str]]:
    return [("split", "ascending"), (ID_COLUMNS[name], "ascending")]


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, ROWS_PER_PIECE):
        yield table.slice(start, ROWS_PER_PIECE)


def _read_run(name: str, path: Path, columns: Sequence[str] | None) -> Iterator[pa.Table]:
    wanted = [TABLES[name].get_field_index(column) for column in columns or TABLES[name].names]
    options = pa.ipc.IpcReadOptions(included_fields=sorted(wanted))
    with pa.OSFile(str(path)) as source, pa.ipc.open_file(source, options=options) as file:
        for index in range(file.num_record_batches):
            yield pa.Table.from_batches([file.get_batch(index)]).select(columns or TABLES[name].names)
