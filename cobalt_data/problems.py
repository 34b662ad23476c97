"""Choosing problems of a version: those of one side, all of them or a fair sample."""

from __future__ import annotations

from cobalt_data.dataset import Version
from cobalt_data.errors import InputError
from cobalt_data.ids import digest
from cobalt_data.rows import Problem


def choose_problems(version: Version, split: str | None = None, limit: int | None = None) -> list[Problem]:
    """The problems of a side (None: of all), ordered by id; with `limit`, the first so many in the order of a hash of the id.

    So a sample is fair, the same on every machine and for every seed, and part of every larger one. Raises InputError where
    there are none.
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}: give at least 1, or leave it out for all problems")
    ids = version.table("problems", split, ["problem_id"])["problem_id"].to_pylist()
    if not ids:
        sides = ", ".join(version.manifest.splits("problems"))
        raise InputError(f"{version.reference} has no problems on side {split!r}: its sides are {sides}")
    chosen = set(sorted(ids, key=lambda problem_id: digest("limit", problem_id))[:limit])
    rows = (row for row in version.rows("problems", split) if row["problem_id"] in chosen)
    return sorted((Problem.from_row(row) for row in rows), key=lambda problem: problem.problem_id)
