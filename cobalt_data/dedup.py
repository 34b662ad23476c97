"""Duplicates: problems that ask the same, trajectories that write the same programs, prompts that read the same.

What counts as a duplicate, and which one of a cluster is kept, is stated for problems in `cobalt_data.duplicate_problems` and
for trajectories in `cobalt_data.duplicate_trajectories`; of both, near-duplicates are found as well where that is asked for.
Prompts are duplicates if their chats are the same, role by role and character by character; so a perturbed prompt is none of
its benign original. Kept is the one on the side that is furthest held out (test before validation before train: held-out text
must not be trained on); of several a benign one, then the one with the smallest problem id, turn, prompt id.

What was made from a dropped row is dropped with it, by `commit`, and takes no part in the levels that follow. DuckDB groups
hashes, never the texts, and spills to disk. Left out: near-duplicate prompts, since the prompts of one problem share most of
their text and differ in what matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import duckdb
import pyarrow as pa

from cobalt_data.clusters import Cluster, join_clusters
from cobalt_data.commit import Change
from cobalt_data.dataset import Version
from cobalt_data.duck import HELD_OUT_FIRST, open_duckdb
from cobalt_data.duplicate_problems import WORDS, duplicate_problems
from cobalt_data.duplicate_trajectories import TOKENS, duplicate_trajectories
from cobalt_data.errors import InputError
from cobalt_data.manifest import Counts
from cobalt_data.minhash import HASHES, band_width
from cobalt_data.near import NEAR_THRESHOLD, check_threshold

LEVELS = ("problems", "trajectories", "prompts")
EXACT = {"problems": "the same statement", "trajectories": "the same programs", "prompts": "the same text"}
NEAR = {"problems": "nearly the same statement", "trajectories": "nearly the same programs"}
SHINGLES = {"problems": WORDS, "trajectories": TOKENS}


@dataclass(frozen=True, slots=True)
class DedupConfig:
    """`near` also finds problems and trajectories whose shingles have a Jaccard similarity of `threshold` or more."""

    levels: Sequence[str] = LEVELS
    near: bool = False
    threshold: float = NEAR_THRESHOLD

    def __post_init__(self) -> None:
        for level in self.levels:
            if level not in LEVELS:
                raise InputError(f"dedup.levels has {level!r}: use {', '.join(LEVELS)}")
        if not self.levels:
            raise InputError(f"dedup.levels is empty: give {' or '.join(LEVELS)}")
        check_threshold("dedup.threshold", self.threshold)


def dedup(version: Version, config: DedupConfig) -> Change:
    """Drops all rows of every cluster but one."""
    return drop_duplicates(version, config, find_duplicates(version, config))


def find_duplicates(version: Version, config: DedupConfig) -> list[Cluster]:
    """The clusters of two and more rows, by level and by the id kept. Raises InputError where there are no rows at all."""
    levels = [level for level in LEVELS if level in config.levels and version.has(level)]
    if not levels:
        raise InputError(
            f"{version.reference} has no {' and no '.join(config.levels)} yet: there is nothing to compare"
        )
    threshold = config.threshold if config.near else None
    problems: list[Cluster] = []
    trajectories: list[Cluster] = []
    prompts: list[Cluster] = []
    with open_duckdb() as connection:
        if "problems" in levels:
            problems = duplicate_problems(version, connection, threshold)
        if "trajectories" in levels:
            trajectories = duplicate_trajectories(version, connection, threshold, set(_dropped(problems)))
        if "prompts" in levels:
            prompts = _duplicate_prompts(version, connection, problems, trajectories)
    return [*problems, *trajectories, *prompts]


def drop_duplicates(version: Version, config: DedupConfig, clusters: Sequence[Cluster]) -> Change:
    """The change that `find_duplicates` asks for."""
    removed: dict[str, Sequence[str]] = {}
    counts: dict[str, Counts] = {}
    summary: dict[str, Any] = {}
    levels = [level for level in LEVELS if level in config.levels]
    for level in filter(version.has, levels):
        found = [cluster for cluster in clusters if cluster.level == level]
        removed[level] = _dropped(found)
        rows = version.manifest.rows(level)
        counts[level] = Counts(rows, rows - len(removed[level]), _reasons(level, found))
        summary[level] = {"clusters": len(found), "largest": max((cluster.size for cluster in found), default=0)}
        if config.near and level in NEAR:
            summary[level] |= {"shingle": SHINGLES[level], "hashes": HASHES, "band": band_width(config.threshold)}
    arguments = {"levels": levels} | ({"near": True, "threshold": config.threshold} if config.near else {})
    return Change("dedup", arguments, None, {}, counts, recorded=summary, removed=removed)


def _reasons(level: str, clusters: Sequence[Cluster]) -> dict[str, int]:
    exact = {EXACT[level]: sum(len(cluster.exact) for cluster in clusters)}
    near = {NEAR[level]: sum(len(cluster.near) for cluster in clusters)} if level in NEAR else {}
    return {reason: rows for reason, rows in (exact | near).items() if rows}


def _dropped(clusters: Sequence[Cluster]) -> list[str]:
    return [row_id for cluster in clusters for row_id in cluster.dropped]


def _duplicate_prompts(
    version: Version,
    connection: duckdb.DuckDBPyConnection,
    problems: Sequence[Cluster],
    trajectories: Sequence[Cluster],
) -> list[Cluster]:
    connection.register("dropped_problems", pa.table({"problem_id": pa.array(_dropped(problems), pa.string())}))
    connection.register(
        "dropped_trajectories", pa.table({"trajectory_id": pa.array(_dropped(trajectories), pa.string())})
    )
    connection.execute(
        f"""
        CREATE TABLE texts AS
        SELECT prompt_id, problem_id, turn, sha256(CAST(to_json(prompt) AS VARCHAR)) AS key,
               perturbation IS NOT NULL AS is_perturbed, {HELD_OUT_FIRST} AS trained_on
        FROM read_parquet(?) ANTI JOIN dropped_problems USING (problem_id) ANTI JOIN dropped_trajectories USING (trajectory_id)
        """,
        [version.files("prompts")],
    )
    found = connection.execute(
        """
        SELECT key, prompt_id
        FROM texts SEMI JOIN (SELECT key FROM texts GROUP BY key HAVING count(*) > 1) USING (key)
        ORDER BY key, trained_on, is_perturbed, problem_id, turn, prompt_id
        """
    )
    exact: dict[str, list[str]] = {}
    for _, members in groupby(found.fetchall(), key=lambda row: row[0]):
        kept, *dropped = [row_id for _, row_id in members]
        exact[kept] = dropped
    return join_clusters("prompts", exact, ())
