"""Writing a version: its tables completed, cut into shards, hashed, and described by a manifest.

A process killed at any point leaves the previous version whole (`cobalt_data.staging`). `latest` moves only if it still stands
where it stood when the parent was opened: of two processes that write at once, the second keeps its version and is told so.

Shard boundaries are drawn by the ids of the rows, not by counting them, so that adding or removing a row rewrites one shard
and leaves the others, which the new version then shares with its parent.
"""

from __future__ import annotations

import datetime
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cobalt_data.card import write_card
from cobalt_data.content import content_digest
from cobalt_data.dataset import Version, latest_id, load_version
from cobalt_data.errors import InputError
from cobalt_data.inheritance import inherit
from cobalt_data.manifest import SIDE, Content, Counts, Manifest, Shard, content_of, version_id
from cobalt_data.references import parse_target
from cobalt_data.schemas import ID_COLUMNS, TABLES
from cobalt_data.sources import file_sha256
from cobalt_data.staging import clear_disk_errors, publish, staging_directory

ROWS_PER_SHARD = 16_384  # on average
ROWS_PER_GROUP = 2_048  # keeps row groups within what the dataset viewer of the Hub reads


@dataclass(frozen=True, slots=True)
class Change:
    """What a verb makes of a version: the tables it replaces, and what identifies and explains the result.

    `arguments` are canonical: what the outcome depends on and nothing else. `recorded` is kept but is not identity.
    """

    operation: str
    arguments: Mapping[str, Any]
    seed: int | None
    tables: Mapping[str, pa.Table]
    counts: Mapping[str, Counts]
    recorded: Mapping[str, Any] = field(default_factory=dict)


def commit(change: Change, parents: Sequence[Version] = (), dataset: str | Path | None = None) -> Version:
    """Writes `change` as a version of `dataset` (by default the first parent's) and returns it.

    Tables that the change does not name are carried over from the first parent. Raises InputError where a version without
    parents would hide an existing dataset, DatasetMoved where another process moved `latest`, CobaltError on a full disk.
    """
    if dataset is None and parents[0].origin:
        raise InputError(f"{parents[0].origin} is on the Hub: write to a dataset of your own with -o")
    target = parse_target(dataset) if dataset is not None else parents[0].dataset
    tables, counts = _complete(change, parents)
    at_home = bool(parents) and target.resolve() == parents[0].dataset.resolve()
    latest_before = parents[0].latest_when_opened if at_home else latest_id(target)
    with clear_disk_errors(target), staging_directory(target) as staging:
        shards = {name: tuple(_write_shards(name, tables[name], staging, parents)) for name in TABLES if name in tables}
        parent_ids = tuple(parent.id for parent in parents)
        manifest = Manifest(
            id=version_id(content_of(shards), change.operation, change.arguments, change.seed, parent_ids),
            parents=parent_ids,
            operation=change.operation,
            arguments=change.arguments,
            seed=change.seed,
            counts=counts,
            tables=shards,
            code_version=metadata.version("cobalt-rl"),
            created_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            recorded={**change.recorded, **_whereabouts(parents, target)},
        )
        manifest.save(staging)
        write_card(staging, manifest)
        publish(target, staging, manifest, latest_before, at_home)
    return load_version(target, manifest.id, latest_id(target))


def foresee(change: Change, parents: Sequence[Version]) -> Content:
    """What the version that `commit` would make holds, found without writing anything."""
    tables, _ = _complete(change, parents)
    return {
        name: [(split, part.num_rows, content_digest(part)) for split, _, part in _parts(name, tables[name])]
        for name in TABLES
        if name in tables
    }


def _whereabouts(parents: Sequence[Version], target: Path) -> dict[str, Any]:
    """Where parents that another dataset holds are found, seen from `target`."""
    elsewhere = [parent for parent in parents if parent.dataset.resolve() != target.resolve()]
    if not elsewhere:
        return {}
    places = {parent.id: parent.origin or os.path.relpath(parent.dataset, target) for parent in elsewhere}
    return {"parents_at": places}


def _complete(change: Change, parents: Sequence[Version]) -> tuple[dict[str, pa.Table], dict[str, Counts]]:
    """All tables of the new version, orphans removed and sides inherited, and the counts that say so."""
    carried = {name: parents[0].table(name) for name in TABLES if parents and parents[0].has(name)}
    given = {**carried, **change.tables}
    tables, orphans = inherit(given)
    counts = dict(change.counts)
    for name, reasons in orphans.items():
        before = counts.get(name, Counts(given[name].num_rows, given[name].num_rows))
        counts[name] = Counts(before.rows_in, tables[name].num_rows, {**before.dropped, **reasons})
    return tables, counts


def _write_shards(name: str, table: pa.Table, staging: Path, parents: Sequence[Version]) -> Iterator[Shard]:
    """Writes the table ordered by (split, id); a shard that a parent has already becomes a second name of that file."""
    known = {
        shard.content: (parent.path / shard.path, shard)
        for parent in parents
        for shard in parent.manifest.tables.get(name, ())
    }
    (staging / name).mkdir()
    for split, index, part in _parts(name, table):
        path = f"{name}/{split}-{index:05d}.parquet"
        content = content_digest(part)
        if content in known and _link(known[content][0], staging / path):
            shard = known[content][1]
            yield Shard(path, split, shard.rows, shard.bytes, shard.sha256, content)
            continue
        pq.write_table(part, staging / path, compression="zstd", row_group_size=ROWS_PER_GROUP)
        data_sha256 = _sync_and_hash(staging / path)
        yield Shard(path, split, part.num_rows, (staging / path).stat().st_size, data_sha256, content)


def _parts(name: str, table: pa.Table) -> Iterator[tuple[str, int, pa.Table]]:
    """The table in the order that it is stored in, cut into what becomes its shards: side, number within it, rows."""
    key = ID_COLUMNS[name]
    table = table.select(TABLES[name].names).cast(TABLES[name])
    table = table.take(pc.sort_indices(table, sort_keys=[("split", "ascending"), (key, "ascending")]))
    _refuse_repeated_ids(name, table[key])
    _refuse_strange_sides(name, table["split"])
    return _shard_bounds(table, key)


def _shard_bounds(table: pa.Table, key: str) -> Iterator[tuple[str, int, pa.Table]]:
    """Splits the ordered table where the split changes and before every row whose id falls on a boundary."""
    start, index, split = 0, 0, None
    splits, ids = table["split"].to_pylist(), table[key].to_pylist()
    for row in range(1, len(ids) + 1):
        side_ends = row == len(ids) or splits[row] != splits[start]
        if side_ends or zlib.crc32(ids[row].encode()) % ROWS_PER_SHARD == 0:
            index = index + 1 if splits[start] == split else 0
            split = splits[start]
            yield split, index, table.slice(start, row - start)
            start = row


def _refuse_repeated_ids(name: str, ids: pa.ChunkedArray) -> None:
    counted = pc.value_counts(ids)
    repeated = counted.filter(pc.greater(pc.struct_field(counted, 1), 1))
    if len(repeated):
        first = repeated[0].as_py()
        raise InputError(f"{name}: id {first['values']} stands in {first['counts']} rows; ids must be unique")


def _refuse_strange_sides(name: str, splits: pa.ChunkedArray) -> None:
    for split in pc.unique(splits).to_pylist():
        if not SIDE.fullmatch(split):
            raise InputError(f"{name}: split {split[:80]!r} is no name: use letters, digits and _, at most 64 of them")


def _link(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links: the shard is written again
        return False
    return True


def _sync_and_hash(path: Path) -> str:
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return file_sha256(path)
