"""What differs between two versions: rows added, removed and changed by table, and why rows were dropped on the way.

Shards that both versions have are set aside by the digest of their contents; only the rows of the others are compared, by id
and by a hash of all their values, which lies ready beside large shards (`cobalt_data.row_hashes`). DuckDB joins them, out of
core.

Left out: what changed within a row; `cobalt data show` renders one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cobalt_data.dataset import Version
from cobalt_data.duck import open_duckdb
from cobalt_data.history import Entry, history
from cobalt_data.row_hashes import read_hashes
from cobalt_data.schemas import TABLES

EXAMPLES = 5  # ids that are named for each kind of difference


@dataclass(frozen=True, slots=True)
class TableDiff:
    """How many rows of a table are new, gone, or the same by id with other values; and the first few ids of each kind."""

    added: int
    removed: int
    changed: int
    unchanged: int
    examples: Mapping[str, Sequence[str]]  # of "added", "removed" and "changed"


@dataclass(frozen=True, slots=True)
class Diff:
    """What leads from one version to another. `steps` and `dropped` are empty where the first is no ancestor of the second."""

    tables: Mapping[str, TableDiff]
    steps: Sequence[Entry]  # the versions after the first up to the second, oldest first
    dropped: Mapping[str, Mapping[str, int]]  # by table and reason, over all steps


def diff(before: Version, after: Version) -> Diff:
    """Rows that `after` has and `before` lacks, the other way round, and those whose values differ; by table."""
    steps = _steps_between(before, after)
    dropped: dict[str, Counter[str]] = {}
    for step in steps:
        for name, counts in step.counts.items():
            dropped.setdefault(name, Counter()).update(counts.dropped)
    present = [name for name in TABLES if before.has(name) or after.has(name)]
    return Diff({name: _diff_table(name, before, after) for name in present}, steps, dropped)


def _steps_between(before: Version, after: Version) -> list[Entry]:
    steps, made_from_before = [], {before.id}
    for entry in reversed(history(after)):
        if made_from_before.intersection(entry.parents):
            made_from_before.add(entry.version)
            steps.append(entry)
    return steps


def _diff_table(name: str, before: Version, after: Version) -> TableDiff:
    shards_before, shards_after = (version.manifest.tables.get(name, ()) for version in (before, after))
    shared = {shard.content for shard in shards_before} & {shard.content for shard in shards_after}
    kinds = {"unchanged": sum(shard.rows for shard in shards_before if shard.content in shared)}
    examples = {}
    with open_duckdb() as database:
        for side, version, shards in (("old", before, shards_before), ("new", after, shards_after)):
            differing = [shard.path for shard in shards if shard.content not in shared]
            read_hashes(database, side, name, version.path, differing)
        for kind, rows, ids in database.execute(_COMPARISON).fetchall():
            kinds[kind] = kinds.get(kind, 0) + rows
            examples[kind] = tuple(ids)
    added, removed, changed, unchanged = (kinds.get(kind, 0) for kind in ("added", "removed", "changed", "unchanged"))
    examples.pop("unchanged", None)
    return TableDiff(added, removed, changed, unchanged, examples)


_COMPARISON = f"""
    SELECT kind, count(*), min(id, {EXAMPLES})
    FROM (
        SELECT id, CASE WHEN old.hash IS NULL THEN 'added' WHEN new.hash IS NULL THEN 'removed'
                        WHEN old.hash = new.hash THEN 'unchanged' ELSE 'changed' END AS kind
        FROM old FULL JOIN new USING (id)
    )
    GROUP BY kind
"""
