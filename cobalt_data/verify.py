"""Whether a version is what it says it is: files, contents, ids and the links between rows.

The version's id covers the digests of all contents, so whoever trusts the id needs nothing else: a changed byte, a changed
value, an added or missing file, an id that does not follow from its row, a row whose problem is gone are all found. A shard
is read in small pieces with a bound on its size in memory, for it may have been made to burst.

Left out: whether programs still earn the verdicts that are stored; nothing is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cobalt_data.content import content_digest
from cobalt_data.dataset import Version
from cobalt_data.manifest import Manifest, Shard
from cobalt_data.rows import Problem, Prompt, Row, Trajectory
from cobalt_data.schemas import ID_COLUMNS, TABLES
from cobalt_data.sources import file_sha256

LARGEST_SHARD = 8 << 30  # bytes in memory
BATCH_ROWS = 256
TYPES: dict[str, type[Problem] | type[Trajectory] | type[Prompt]] = {
    "problems": Problem,
    "trajectories": Trajectory,
    "prompts": Prompt,
}
KEYS = ("problem_id", "trajectory_id")

Progress = Callable[[int], None]  # is told how many rows have been checked since it was last told


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong: where (the manifest, a file, a row) and what."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(slots=True)
class _Links:
    """The columns of a table that lead to other rows, and the sides; filled while its shards are checked."""

    columns: dict[str, list[pa.ChunkedArray]] = field(default_factory=dict)
    complete: bool = True

    def add(self, table: pa.Table) -> None:
        for column in {*KEYS, *ID_COLUMNS.values(), "split"}.intersection(table.column_names):
            self.columns.setdefault(column, []).append(table[column])

    def column(self, name: str) -> pa.Array:
        return pa.concat_arrays([chunk for part in self.columns.get(name, []) for chunk in part.chunks] or [_NOTHING])


_NOTHING = pa.array([], pa.string())


def verify(version: Version, progress: Progress | None = None) -> Iterator[Finding]:
    """Everything that is wrong with `version`, as it is found; nothing where it is sound."""
    if version.path.is_symlink():
        yield Finding(f"versions/{version.id}", "is a symbolic link; a version is a folder of its dataset")
    yield from verify_directory(version.path, version.manifest, progress)


def verify_directory(directory: Path, manifest: Manifest, progress: Progress | None = None) -> Iterator[Finding]:
    """The same for a version that does not yet stand in its place."""
    if manifest.id != manifest.expected_id:
        yield Finding("manifest.json", f"what it says makes version {manifest.expected_id}, not {manifest.id}")
    yield from _stray_files(directory, manifest)
    links = {name: _Links() for name in TABLES}
    for name in TABLES:
        for shard in manifest.tables.get(name, ()):
            table = yield from _check_shard(directory, name, shard)
            if table is None:
                links[name].complete = False
                continue
            links[name].add(table)
            yield from _check_rows(name, table)
            if progress is not None:
                progress(table.num_rows)
    yield from _check_links(links)


def _stray_files(directory: Path, manifest: Manifest) -> Iterator[Finding]:
    """Files that readers of a whole folder would take for shards, and folders that are really somewhere else."""
    named = {shard.path for shard in manifest.shards}
    for name in TABLES:
        folder = directory / name
        if folder.is_symlink():
            yield Finding(name, "is a symbolic link; a table is a folder of the version itself")
        elif folder.is_dir():
            for path in sorted(folder.iterdir()):
                if f"{name}/{path.name}" not in named:
                    yield Finding(f"{name}/{path.name}", "is not in the manifest; remove it")


def _check_shard(directory: Path, name: str, shard: Shard) -> Generator[Finding, None, Any]:
    """Yields what is wrong with the file of a shard and returns its table, or None where it cannot be trusted."""
    path = directory / shard.path
    problem = wrong_with_file(path, shard)
    if problem:
        yield Finding(shard.path, problem)
        return None
    try:
        table = _read(path, TABLES[name])
    except (pa.ArrowException, ValueError, OSError) as error:
        yield Finding(shard.path, f"cannot be read: {str(error).splitlines()[0][:200]}")
        return None
    if table.num_rows != shard.rows or content_digest(table) != shard.content:
        yield Finding(shard.path, "its rows are not those of the manifest")
        return None
    if pc.unique(table["split"]).to_pylist() != [shard.split]:
        yield Finding(shard.path, f"holds rows of another side than {shard.split}")
    return table


def wrong_with_file(path: Path, shard: Shard) -> str | None:
    if path.is_symlink():
        return "is a symbolic link; a shard is a file of the version itself"
    if not path.is_file():
        return "is missing"
    if path.stat().st_size != shard.bytes:
        return f"has {path.stat().st_size} bytes, not {shard.bytes}"
    sha256 = file_sha256(path)
    return None if sha256 == shard.sha256 else f"has the sha256 {sha256}, not {shard.sha256}"


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    """Raises ValueError where the file has another schema, or grows beyond all bounds as it is read."""
    batches, size = [], 0
    with pq.ParquetFile(path) as file:
        if not file.schema_arrow.equals(schema):
            raise ValueError("its columns are not those of the table")
        for batch in file.iter_batches(BATCH_ROWS):
            batch.validate(full=True)
            size += batch.nbytes
            if size > LARGEST_SHARD:
                raise ValueError(f"it holds more than {LARGEST_SHARD >> 30} GiB")
            batches.append(batch)
    return pa.Table.from_batches(batches, schema)


def _check_rows(name: str, table: pa.Table) -> Iterator[Finding]:
    """Each row must be what its own typed form writes: that covers its id and every column that follows from others."""
    for batch in table.to_batches(BATCH_ROWS):
        for row in batch.to_pylist():
            problem = wrong_with_row(name, row)
            if problem:
                yield Finding(f"{name} {row[ID_COLUMNS[name]]}", problem)


def wrong_with_row(name: str, row: Row) -> str | None:
    """Why a row with all columns of the table `name` is none that cobalt writes; None where it is one."""
    try:
        expected: dict[str, Any] = TYPES[name].from_row(row).to_row()
    except Exception as error:  # whatever a row of a stranger makes the parser do
        return f"is not a row of this table: {type(error).__name__}: {str(error).splitlines()[0][:200]}"
    wrong = [column for column, value in expected.items() if value != row[column]]
    if ID_COLUMNS[name] in wrong:
        return f"its content has the id {expected[ID_COLUMNS[name]]}"
    return f"does not agree with the rest of the row in {', '.join(wrong)}" if wrong else None


def _check_links(links: dict[str, _Links]) -> Iterator[Finding]:
    for name, key in ID_COLUMNS.items():
        counted = pc.value_counts(links[name].column(key))
        for repeated in counted.filter(pc.greater(counted.field("counts"), 1)).to_pylist():
            yield Finding(f"{name} {repeated['values']}", f"stands in {repeated['counts']} rows")
    for name, parent in (("trajectories", "problems"), ("prompts", "problems"), ("prompts", "trajectories")):
        if links[parent].complete and links[parent].columns:
            yield from _check_parents(name, links[name], parent, links[parent])


def _check_parents(name: str, children: _Links, parent: str, parents: _Links) -> Iterator[Finding]:
    """Every row's parent must be there, and on the same side. A null stands for no parent."""
    key = ID_COLUMNS[parent]
    wanted = children.column(key)
    place = pc.index_in(wanted, value_set=parents.column(key))
    side = parents.column("split").take(place)
    lost = pc.and_(pc.is_valid(wanted), pc.is_null(place))
    strayed = pc.fill_null(pc.not_equal(side, children.column("split")), False)
    for mask, what in ((lost, f"its {key} is none of the {parent}"), (strayed, f"is on another side than its {key}")):
        for row in children.column(ID_COLUMNS[name]).filter(mask).to_pylist():
            yield Finding(f"{name} {row}", what)
