"""Exact duplicates: trajectories that write the same programs, prompts that read the same.

- Trajectories are duplicates if they belong to one problem (under the same perturbation, or none) and their programs, turn by
  turn, have the same normal form (`cobalt_data.normalise`), whichever model wrote them. Kept is the one that most prompts
  were made from, and of several the one with the smallest id.
- Prompts are duplicates if their chats are the same, role by role and character by character; so a perturbed prompt is none
  of its benign original. Kept is the one on the side that is furthest held out (test before validation before train: held-out
  text must not be trained on); of several a benign one, then the one with the smallest problem id, turn, prompt id.

What was made from a dropped row is dropped with it, by `commit`. Prompts of dropped trajectories take no part in the second
step. DuckDB groups hashes, never the texts, and spills to disk. Left out: near-duplicates and duplicate problems.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

import duckdb
import pyarrow as pa

from cobalt_data.commit import Change
from cobalt_data.dataset import Version
from cobalt_data.duck import open_duckdb
from cobalt_data.errors import InputError
from cobalt_data.ids import digest
from cobalt_data.manifest import Counts
from cobalt_data.normalise import normalise_program

LEVELS = ("trajectories", "prompts")
REASONS = {"trajectories": "the same programs", "prompts": "the same text"}
ROWS_PER_BATCH = 8192
KEYS_SCHEMA = pa.schema([("trajectory_id", pa.string()), ("key", pa.string())])


@dataclass(frozen=True, slots=True)
class DedupConfig:
    levels: Sequence[str] = LEVELS

    def __post_init__(self) -> None:
        for level in self.levels:
            if level not in LEVELS:
                raise InputError(f"dedup.levels has {level!r}: use {', '.join(LEVELS)}")
        if not self.levels:
            raise InputError(f"dedup.levels is empty: give {' or '.join(LEVELS)}")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Rows of one table that are duplicates of each other: the id kept, and the ids dropped in ascending order."""

    level: str
    kept: str
    dropped: tuple[str, ...]


def dedup(version: Version, config: DedupConfig) -> Change:
    """Drops all rows of every cluster but one."""
    return drop_duplicates(version, config, find_duplicates(version, config))


def find_duplicates(version: Version, config: DedupConfig) -> list[Cluster]:
    """The clusters of two and more rows, by level and by the id kept. Raises InputError where there are no rows at all."""
    if not any(version.has(level) for level in config.levels):
        raise InputError(
            f"{version.reference} has no {' and no '.join(config.levels)} yet: there is nothing to compare"
        )
    clusters: list[Cluster] = []
    with open_duckdb() as connection:
        connection.execute("CREATE TABLE dropped_trajectories (trajectory_id VARCHAR)")
        for level, find in _FINDERS.items():
            if level in config.levels and version.has(level):
                clusters += find(version, connection)
    return clusters


def drop_duplicates(version: Version, config: DedupConfig, clusters: Sequence[Cluster]) -> Change:
    """The change that `find_duplicates` asks for."""
    removed: dict[str, Sequence[str]] = {}
    counts: dict[str, Counts] = {}
    summary: dict[str, Any] = {}
    levels = [level for level in LEVELS if level in config.levels]
    for level in filter(version.has, levels):
        found = [cluster for cluster in clusters if cluster.level == level]
        dropped = [row_id for cluster in found for row_id in cluster.dropped]
        rows = version.manifest.rows(level)
        counts[level] = Counts(rows, rows - len(dropped), {REASONS[level]: len(dropped)} if found else {})
        summary[level] = {"clusters": len(found), "largest": max((1 + len(each.dropped) for each in found), default=0)}
        removed[level] = dropped
    return Change("dedup", asdict(config) | {"levels": levels}, None, {}, counts, recorded=summary, removed=removed)


def _duplicate_trajectories(version: Version, connection: duckdb.DuckDBPyConnection) -> list[Cluster]:
    connection.execute("CREATE TABLE keys (trajectory_id VARCHAR, key VARCHAR)")
    for batch in _trajectory_keys(version):
        connection.register("batch", batch).execute("INSERT INTO keys SELECT * FROM batch")
    connection.execute("CREATE TABLE uses (trajectory_id VARCHAR)")
    if version.has("prompts"):
        connection.execute("INSERT INTO uses SELECT trajectory_id FROM read_parquet(?)", [version.glob("prompts")])
    found = connection.execute(
        """
        WITH repeated AS (SELECT key FROM keys GROUP BY key HAVING count(*) > 1),
             used AS (SELECT trajectory_id, count(*) AS prompts FROM uses GROUP BY trajectory_id)
        SELECT key, trajectory_id
        FROM keys SEMI JOIN repeated USING (key) LEFT JOIN used USING (trajectory_id)
        ORDER BY key, coalesce(prompts, 0) DESC, trajectory_id
        """
    )
    clusters = _clusters("trajectories", found.fetchall())
    dropped = pa.table(
        {"trajectory_id": pa.array([row for cluster in clusters for row in cluster.dropped], pa.string())}
    )
    connection.register("dropped", dropped).execute("INSERT INTO dropped_trajectories SELECT * FROM dropped")
    return clusters


def _duplicate_prompts(version: Version, connection: duckdb.DuckDBPyConnection) -> list[Cluster]:
    connection.execute(
        """
        CREATE TABLE texts AS
        SELECT prompt_id, problem_id, turn, sha256(CAST(to_json(prompt) AS VARCHAR)) AS key,
               perturbation IS NOT NULL AS is_perturbed,
               CASE split WHEN 'train' THEN 2 WHEN 'unsplit' THEN 2 WHEN 'validation' THEN 1 ELSE 0 END AS trained_on
        FROM read_parquet(?) ANTI JOIN dropped_trajectories USING (trajectory_id)
        """,
        [version.glob("prompts")],
    )
    found = connection.execute(
        """
        SELECT key, prompt_id
        FROM texts SEMI JOIN (SELECT key FROM texts GROUP BY key HAVING count(*) > 1) USING (key)
        ORDER BY key, trained_on, is_perturbed, problem_id, turn, prompt_id
        """
    )
    return _clusters("prompts", found.fetchall())


_FINDERS: dict[str, Callable[[Version, duckdb.DuckDBPyConnection], list[Cluster]]] = {
    "trajectories": _duplicate_trajectories,
    "prompts": _duplicate_prompts,
}


def _clusters(level: str, rows: Sequence[tuple[str, str]]) -> list[Cluster]:
    """Clusters from (key, id) pairs that are ordered by key, the row to keep first."""
    found = []
    for _, members in groupby(rows, key=lambda row: row[0]):
        kept, *dropped = [row_id for _, row_id in members]
        found.append(Cluster(level, kept, tuple(sorted(dropped))))
    return sorted(found, key=lambda cluster: cluster.kept)


def _trajectory_keys(version: Version) -> Iterator[pa.Table]:
    entry_points = {
        row["problem_id"]: json.loads(row["judge"]).get("entry_point")
        for row in version.rows("problems", columns=["problem_id", "judge"])
    }
    keys: list[tuple[str, str]] = []
    for row in version.rows("trajectories", columns=["trajectory_id", "problem_id", "perturbation", "turns"]):
        entry_point = entry_points[row["problem_id"]]
        programs = [turn["program"] for turn in json.loads(row["turns"])]
        key = digest(
            row["problem_id"], row["perturbation"], [_normal_form(program, entry_point) for program in programs]
        )
        keys.append((row["trajectory_id"], key))
        if len(keys) == ROWS_PER_BATCH:
            yield _keys_table(keys)
            keys.clear()
    yield _keys_table(keys)


@lru_cache(maxsize=1 << 16)  # models repeat themselves
def _normal_form(program: str | None, entry_point: str | None) -> str | None:
    if program is None:
        return None
    return normalise_program(program, keep=(entry_point or "").replace("()", "").split("."))


def _keys_table(keys: Sequence[tuple[str, str]]) -> pa.Table:
    columns = zip(*keys, strict=True) if keys else ((), ())
    return pa.table(list(columns), schema=KEYS_SCHEMA)
