"""Rows that are cobalt's already: problems, trajectories and prompts in the columns of `cobalt_data.schemas`.

The source is a file of one table, recognised by its columns, or a directory with a file or a folder of files per table, such
as a version of a dataset. Every row must be what its own typed form would write, ids included, and every test one that its
judge can use; so what is imported passes `cobalt data verify`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from cobalt_data.errors import InputError
from cobalt_data.importers.fields import BadRow, Fields, flag, record, wrong_type
from cobalt_data.importers.reader import SourceRow, read_rows, refuse_special_files
from cobalt_data.manifest import SIDE
from cobalt_data.row_checks import TYPES, wrong_with_row
from cobalt_data.rows import Problem, Prompt, Trajectory
from cobalt_data.schemas import CHAT, ID_COLUMNS, TABLES
from sandbox.judging import check

_WORDS = {
    pa.string(): "text",
    pa.int32(): "a whole number of 32 bits",
    pa.int64(): "a whole number of 64 bits",
    pa.float64(): "a number",
    pa.bool_(): "true or false",
    CHAT: "a list of messages with role and content",
}
SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz")


def own_rows(source: Path) -> Iterator[SourceRow]:
    """Raises InputError where the source holds no such tables."""
    refuse_special_files(source)
    if not source.is_dir():
        yield from in_tables(read_rows(source))
        return
    found = False
    for name in TABLES:
        for path in _files(source, name):
            found = True
            for row in read_rows(path):
                yield replace(row, table=name)
    if not found:
        expected = ", ".join(f"{name}.parquet" for name in TABLES)
        raise InputError(f"{source} holds none of {expected} (or .jsonl): name a file, or a directory of tables")


def in_tables(rows: Iterable[SourceRow]) -> Iterator[SourceRow]:
    """The rows, each with the table whose columns it has most of."""
    return (replace(row, table=_table_of(row)) for row in rows)


def to_typed(row: SourceRow, fields: Fields) -> Problem | Trajectory | Prompt:
    """Raises BadRow where the row is not one of its table."""
    wanted = set(TABLES[row.table].names)
    if missing := sorted(wanted - fields.keys()):
        raise BadRow(
            "missing field", f"field {missing[0]!r} is missing: a row of {row.table} has {len(wanted)} columns"
        )
    if unknown := sorted(fields.keys() - wanted):
        raise BadRow("unknown field", f"field {unknown[0]!r} is no column of {row.table}: remove it")
    wrong = wrong_with_row(row.table, fields)
    if wrong:
        raise BadRow(
            "not sound", f"{str(fields[ID_COLUMNS[row.table]])[:80]!r} {wrong}: it is no row that cobalt wrote"
        )
    _check_columns(row.table, fields)
    typed = TYPES[row.table].from_row(fields)
    if not isinstance(typed, Trajectory):
        _check_tests(typed)
    return typed


def _check_columns(table: str, fields: Fields) -> None:
    """Raises BadRow where a value is none that its column can hold, or the side none that a file could be named after."""
    for column in TABLES[table]:
        value = fields[column.name]
        fits = value is not None or column.nullable
        with contextlib.suppress(ValueError, TypeError, OverflowError):  # what Arrow says of a value of another type
            if fits and pa.array([value], column.type)[0].as_py() == value:  # it cuts off fractions and unknown keys
                continue
        raise wrong_type(column.name, value, _WORDS[column.type])
    if not SIDE.fullmatch(fields["split"]):
        raise wrong_type("split", fields["split"], "a name of letters, digits and _, at most 64 of them")


def _check_tests(typed: Problem | Prompt) -> None:
    for index, test in enumerate(typed.tests):
        flag(record(test, f"tests[{index}]"), "public", f"tests[{index}].")
        try:
            check(test, typed.judge)
        except InputError as error:
            raise BadRow("bad test", f"field 'tests' holds no valid test at {index} ({error}): correct it") from None


def _table_of(row: SourceRow) -> str:
    if isinstance(row.fields, BadRow):
        return "problems"
    return max(TABLES, key=lambda name: len(row.fields.keys() & set(TABLES[name].names)))  # type: ignore[union-attr]


def _files(source: Path, name: str) -> list[Path]:
    folder = source / name
    inside = sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIXES)) if folder.is_dir() else []
    beside = [path for suffix in SUFFIXES if (path := source / f"{name}{suffix}").exists()]
    return [*beside, *inside]
