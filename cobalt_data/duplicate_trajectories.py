"""Trajectories whose programs are the same, turn by turn, or nearly.

- Exact: they belong to one problem (under the same perturbation, or none) and their programs have the same normal form
  (`cobalt_data.normalise`), whichever model wrote them.
- Near: they belong to one problem likewise, score the same on every turn, and their programs, as sets of shingles of `TOKENS`
  tokens of the normal form, turn by turn, have at least the given Jaccard similarity. The program's own names are not told
  apart there and no shingle reaches into a function or out of it, so that neither other names nor functions in another order
  make a difference. Of each function or class at least `SAME_UNIT` of the shingles must stand in the other trajectory as well:
  where all is alike but for one function that does something else, so does the program. And programs that score differently
  are no duplicates: the one token between them may be the bug.

Kept is the one that most prompts were made from, and of several the one with the smallest id.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cobalt_data.alike import Similarities
from cobalt_data.clusters import Cluster, join_clusters
from cobalt_data.dataset import Version
from cobalt_data.ids import digest
from cobalt_data.near import Accept, near_duplicates
from cobalt_data.normal_forms import normal_forms
from cobalt_data.shingles import Places
from cobalt_data.sketches import Sketches, open_sketches

TOKENS = 5  # per shingle
SAME_UNIT = 0.5
ROWS_PER_BATCH = 8192
OWN_NAME = re.compile(r"\$\d+")
DEFINITION = re.compile(r"^(?:@|def |async def |class ).*\n(?:(?:[ )].*)?\n)*", re.MULTILINE)
KEYS_SCHEMA = pa.schema([("position", pa.int64()), ("trajectory_id", pa.string()), ("key", pa.string())])


def duplicate_trajectories(
    version: Version, connection: duckdb.DuckDBPyConnection, threshold: float | None, dropped_problems: Set[str]
) -> list[Cluster]:
    """The clusters of trajectories; near-duplicates too where a threshold is given. Those of dropped problems do not count."""
    connection.execute("CREATE TABLE keys (position BIGINT, trajectory_id VARCHAR, key VARCHAR)")
    with open_sketches(TOKENS, threshold or 1.0) as sketches:
        ids: list[str] = []
        blocks: list[int] = []
        for rows in _batches(version, dropped_problems):
            forms = _forms(rows)
            keys = [digest(row["problem_id"], row["perturbation"], form) for row, form in zip(rows, forms, strict=True)]
            positions = range(len(ids), len(ids) + len(rows))
            ids += [row["trajectory_id"] for row in rows]
            batch = pa.table([positions, ids[positions.start :], keys], schema=KEYS_SCHEMA)
            connection.register("batch", batch).execute("INSERT INTO keys SELECT * FROM batch")
            if threshold is not None:
                blocks += [_block(row) for row in rows]
                _sketch(sketches, forms)
        _rank(version, connection)
        exact = _exact(connection)
        near: list[tuple[str, str, float]] = []
        if threshold is not None:
            order = connection.execute("SELECT position FROM ranked WHERE place = 1 ORDER BY rank").fetchnumpy()[
                "position"
            ]
            found = near_duplicates(sketches, order, _acceptance(sketches, threshold), np.array(blocks, np.uint64))
            near = [
                (ids[row], ids[kept], alike)
                for row, kept, alike in zip(*(each.tolist() for each in found), strict=True)
            ]
    return join_clusters("trajectories", exact, near)


def _acceptance(sketches: Sketches, threshold: float) -> Accept:
    def accept(left: Places, right: Places, alike: Similarities) -> NDArray[np.bool_]:
        accepted: NDArray[np.bool_] = alike >= threshold
        for one, other in ((left, right), (right, left)):
            asked = np.flatnonzero(accepted)
            accepted[asked] = sketches.least_shares(one[asked], other[asked]) >= SAME_UNIT
        return accepted

    return accept


def _batches(version: Version, dropped_problems: Set[str]) -> Iterator[list[dict[str, Any]]]:
    entry_points = {
        row["problem_id"]: json.loads(row["judge"]).get("entry_point")
        for row in version.rows("problems", columns=["problem_id", "judge"])
    }
    rows = (
        {**row, "turns": json.loads(row["turns"]), "entry_point": entry_points[row["problem_id"]]}
        for row in version.rows("trajectories", columns=["trajectory_id", "problem_id", "perturbation", "turns"])
        if row["problem_id"] not in dropped_problems
    )
    while batch := list(islice(rows, ROWS_PER_BATCH)):
        yield batch


def _forms(rows: Sequence[Mapping[str, Any]]) -> list[list[str | None]]:
    """The normal forms of each row's programs, turn by turn; None where a turn has none."""
    keeps = [tuple((row["entry_point"] or "").replace("()", "").split(".")) for row in rows]
    programs = [
        (turn["program"], keep)
        for row, keep in zip(rows, keeps, strict=True)
        for turn in row["turns"]
        if turn["program"] is not None
    ]
    forms = iter(normal_forms(programs))
    return [[None if turn["program"] is None else next(forms) for turn in row["turns"]] for row in rows]


def _block(row: Mapping[str, Any]) -> int:
    rates = [turn["pass_rate"] for turn in row["turns"]]
    return int(digest(row["problem_id"], row["perturbation"], rates)[:16], 16)


def _sketch(sketches: Sketches, forms: Sequence[Sequence[str | None]]) -> None:
    texts: list[str] = []
    counts: list[int] = []
    turns: list[int] = []
    units: list[bool] = []
    for programs in forms:
        counts.append(0)
        for turn, form in enumerate(programs):
            parts = near_form(form or "")
            counts[-1] += len(parts)
            texts += parts
            turns += [turn] * len(parts)
            units += [False, *[True] * (len(parts) - 1)]
    sketches.add(texts, counts, turns, units)


def near_form(form: str) -> list[str]:
    """What near-duplicates are told by: the normal form without the numbers of its names, its functions and classes apart and
    behind the rest."""
    unnamed = OWN_NAME.sub("$", form) + "\n"
    return [DEFINITION.sub("", unnamed), *DEFINITION.findall(unnamed)]


def _rank(version: Version, connection: duckdb.DuckDBPyConnection) -> None:
    """Fills `ranked`: every row's rank, the first to keep first, and its place among those with the same key."""
    connection.execute("CREATE TABLE uses (trajectory_id VARCHAR)")
    if version.has("prompts"):
        connection.execute("INSERT INTO uses SELECT trajectory_id FROM read_parquet(?)", [version.files("prompts")])
    connection.execute(
        """
        CREATE TABLE ranked AS
        WITH used AS (SELECT trajectory_id, count(*) AS prompts FROM uses GROUP BY trajectory_id),
             ordered AS (
                SELECT position, trajectory_id, key,
                       row_number() OVER (ORDER BY coalesce(prompts, 0) DESC, trajectory_id) AS rank
                FROM keys LEFT JOIN used USING (trajectory_id))
        SELECT *, row_number() OVER (PARTITION BY key ORDER BY rank) AS place,
               first_value(trajectory_id) OVER (PARTITION BY key ORDER BY rank) AS kept
        FROM ordered
        """
    )


def _exact(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """The exact duplicates of each trajectory that has any."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for kept, row_id in connection.execute("SELECT kept, trajectory_id FROM ranked WHERE place > 1").fetchall():
        found[kept].append(row_id)
    return found
