"""Writing a version: its tables completed, cut into shards, hashed, and described by a manifest.

A process killed at any point leaves the previous version whole (`cobalt_data.staging`). `latest` moves only if it still stands
where it stood when the parent was opened: of two processes that write at once, the second keeps its version and is told so.

Tables are streamed: what is in memory at a time is a shard (`cobalt_data.shards`), the ids of all rows, and of rows that must
be sorted what a `Spool` keeps. A table that neither the change nor inheriting touches is shared without reading its values.
"""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa

from cobalt_data.card import write_card
from cobalt_data.content import content_digest
from cobalt_data.dataset import Version, latest_id, load_version, open_version
from cobalt_data.errors import InputError
from cobalt_data.inheritance import KEY_COLUMNS, Family
from cobalt_data.manifest import Content, Counts, Manifest, Shard, content_of, version_id
from cobalt_data.references import parse_target, refuse_unwritable
from cobalt_data.schemas import ID_COLUMNS, TABLES, schema_of
from cobalt_data.shards import cut_shards, share_shard, write_shards
from cobalt_data.spool import Spool, keys_of, merged
from cobalt_data.staging import clear_disk_errors, publish, staging_directory

PLACES = "parents_at"  # what a manifest calls the places of versions that another dataset holds


@dataclass(frozen=True, slots=True)
class Change:
    """What a verb makes of a version: the tables it replaces, and what identifies and explains the result.

    A table that is named in `tables` is replaced. Of every other, the rows with the ids in `removed` go and those in `added`
    come, which costs no memory for the rows that stay. What was made from a row that goes is removed without being named.
    `arguments` are canonical: what the outcome depends on and nothing else. `recorded` is kept but is not identity, and so is
    where the versions lie that were `consulted` beside the parents.
    """

    operation: str
    arguments: Mapping[str, Any]
    seed: int | None
    tables: Mapping[str, pa.Table | Spool]
    counts: Mapping[str, Counts]
    recorded: Mapping[str, Any] = field(default_factory=dict)
    added: Mapping[str, pa.Table | Spool] = field(default_factory=dict)
    removed: Mapping[str, Collection[str]] = field(default_factory=dict)
    consulted: Sequence[Version] = ()


def commit(change: Change, parents: Sequence[Version] = (), dataset: str | Path | None = None) -> Version:
    """Writes `change` as a version of `dataset` (by default the first parent's) and returns it.

    Tables that the change does not name are carried over from the first parent. Raises InputError where a version without
    parents would hide an existing dataset, DatasetMoved where another process moved `latest`, CobaltError on a full disk.
    """
    target = target_of(parents, dataset)
    at_home = bool(parents) and target.resolve() == parents[0].dataset.resolve()
    latest_before = parents[0].latest_when_opened if at_home else latest_id(target)
    with clear_disk_errors(target), staging_directory(target) as staging:
        tables, counts = _write_tables(change, parents, staging)
        parent_ids = tuple(parent.id for parent in parents)
        manifest = Manifest(
            id=version_id(content_of(tables), change.operation, change.arguments, change.seed, parent_ids),
            parents=parent_ids,
            operation=change.operation,
            arguments=change.arguments,
            seed=change.seed,
            counts=counts,
            tables=tables,
            code_version=metadata.version("cobalt-rl"),
            created_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            recorded={**change.recorded, **_whereabouts([*parents, *change.consulted], target)},
        )
        manifest.save(staging)
        write_card(staging, manifest)
        publish(target, staging, manifest, latest_before, at_home)
    return load_version(target, manifest.id, latest_id(target))


def target_of(parents: Sequence[Version], dataset: str | Path | None) -> Path:
    """The dataset that a change of `parents` goes to. Raises InputError where that can be none, or cannot be written to."""
    if dataset is not None:
        return parse_target(dataset)
    if parents[0].origin:
        raise InputError(f"{parents[0].origin} is on the Hub: write to a dataset of your own with -o")
    refuse_unwritable(parents[0].dataset, "-o")
    return parents[0].dataset


def open_to_change(reference: str, dataset: str | None) -> Version:
    """The version that a verb is to change, once it is clear that there is a place for the outcome: said before the work.

    Raises as `open_version` and `target_of` do.
    """
    version = open_version(reference)
    target_of([version], dataset)
    return version


def foresee(change: Change, parents: Sequence[Version]) -> Content:
    """What the version that `commit` would make holds, found without writing anything."""
    return {
        table.name: [(shard.split, shard.rows, shard.content) for shard in table.unchanged]
        or [(split, part.num_rows, content_digest(part)) for split, _, part in cut_shards(table.name, table.pieces)]
        for table in _complete(change, parents)
    }


def _whereabouts(versions: Sequence[Version], target: Path) -> dict[str, Any]:
    """Where those that another dataset holds are found, seen from `target`."""
    elsewhere = [version for version in versions if version.dataset.resolve() != target.resolve()]
    if not elsewhere:
        return {}
    return {PLACES: {each.id: each.origin or os.path.relpath(each.dataset, target) for each in elsewhere}}


@dataclass(frozen=True, slots=True)
class _Stored:
    """The rows of a parent's table, but for those with certain ids."""

    version: Version
    name: str
    removed: Set[str]

    @property
    def num_rows(self) -> int:
        return self.version.manifest.rows(self.name)

    def ordered(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        for piece in self.version.pieces(self.name, columns=columns):
            if self.removed:
                ids = piece[ID_COLUMNS[self.name]].to_pylist()
                piece = piece.filter(pa.array([row_id not in self.removed for row_id in ids], pa.bool_()))
            yield piece


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the version to be made: the first parent's shards where they can stay `unchanged`, else its `pieces`.

    `pieces` are in order and to be read before the next table is asked for.
    """

    name: str
    rows_in: int
    rows: int
    orphans: Mapping[str, int]
    unchanged: Sequence[Shard]
    pieces: Iterator[pa.Table]


def _write_tables(
    change: Change, parents: Sequence[Version], staging: Path
) -> tuple[dict[str, tuple[Shard, ...]], dict[str, Counts]]:
    """The shards of all tables, and the counts of the change with what inheriting did to them."""
    written: dict[str, tuple[Shard, ...]] = {}
    counts = dict(change.counts)
    for table in _complete(change, parents):
        (staging / table.name).mkdir()
        if table.unchanged:
            written[table.name] = tuple(share_shard(parents[0].path, staging, shard) for shard in table.unchanged)
        else:
            written[table.name] = tuple(write_shards(table.name, table.pieces, staging, parents))
        if table.orphans:
            before = counts.get(table.name, Counts(table.rows_in, table.rows_in))
            counts[table.name] = Counts(before.rows_in, table.rows, {**before.dropped, **table.orphans})
    return written, counts


def _complete(change: Change, parents: Sequence[Version]) -> Iterator[_Table]:
    """All tables of the new version, orphans removed and sides inherited."""
    family = Family()
    for name in TABLES:
        sources = _sources(name, change, parents)
        if sources:
            keys, orphans, in_order = _look_ahead(name, sources, family)
            rows_in = sum(source.num_rows for source in sources)
            unchanged = _unchanged(sources, keys)
            pieces = _settled(name, sources, family, in_order)
            yield _Table(name, rows_in, keys.num_rows, orphans, unchanged, pieces)
            family.learn(name, keys)


def _sources(name: str, change: Change, parents: Sequence[Version]) -> list[_Stored | Spool]:
    """Where the rows of a table come from; nowhere, if the version is not to have it."""
    sources: list[_Stored | Spool] = []
    if name in change.tables:
        sources.append(_spooled(name, change.tables[name]))
    elif parents and parents[0].has(name):
        sources.append(_Stored(parents[0], name, frozenset(change.removed.get(name, ()))))
    if name in change.added:
        sources.append(_spooled(name, change.added[name]))
    return sources


def _spooled(name: str, rows: pa.Table | Spool) -> Spool:
    return rows if isinstance(rows, Spool) else Spool(name, [rows])


def _look_ahead(name: str, sources: Sequence[_Stored | Spool], family: Family) -> tuple[pa.Table, Counter[str], bool]:
    """From the key columns alone: those of the rows that settle, how many others there are by reason, and whether the rows
    of every source are in order then."""
    columns, orphans, in_order = KEY_COLUMNS[name], Counter[str](), True
    settled = [schema_of(name, columns).empty_table()]
    for source in sources:
        last = ("", "")
        for piece in source.ordered(columns):
            piece, dropped = family.settle(piece)
            orphans.update(dropped)
            settled.append(piece)
            here = [last, *keys_of(piece, ID_COLUMNS[name])]
            in_order, last = in_order and here == sorted(here), here[-1]
    return pa.concat_tables(settled), orphans, in_order


def _settled(name: str, sources: Sequence[_Stored | Spool], family: Family, in_order: bool) -> Iterator[pa.Table]:
    pieces = (family.settle(piece)[0] for piece in merged(name, [source.ordered() for source in sources]))
    yield from pieces if in_order else Spool(name, pieces).ordered()


def _unchanged(sources: Sequence[_Stored | Spool], keys: pa.Table) -> Sequence[Shard]:
    """The shards of a parent's table, if each row is still there and on the same side; `keys` are those that are left."""
    (first, *others) = sources
    if not isinstance(first, _Stored) or others or first.num_rows != keys.num_rows:
        return ()
    sides = first.version.table(first.name, columns=["split"])["split"]
    return first.version.manifest.tables[first.name] if sides.equals(keys["split"]) else ()
