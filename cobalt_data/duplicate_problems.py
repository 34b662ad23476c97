"""Problems whose statements are the same, or nearly.

- Exact: statement, starter code and entry point are the same but for white space.
- Near: the statements, as sets of shingles of `WORDS` successive words without regard to case, have at least the given Jaccard
  similarity; half of it is enough for problems of which the tests, as sets, have a Jaccard similarity of `SAME_TESTS`, since a
  copy in other words keeps the tests.

In both cases the tests must not contradict it (`cobalt_data.answers`). Nor are two problems near-duplicates that have some
tests in common but no more than half of the fewer: a copy takes them over in bulk, while two tasks of one family agree on a few
small inputs. (To `alike_problems`, which says what is to stay on one side, they are alike: better kept together in doubt.)

Kept is the problem on the side that is furthest held out (test before validation before train), of several the one with the
most trajectories, then the one with the smallest id. A statement without a word is nobody's duplicate. Left out: problems that
ask for the same in other words altogether.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb
import numpy as np
from numpy.typing import NDArray

from cobalt_data.alike import Similarities
from cobalt_data.answers import Answers, test_numbers
from cobalt_data.clusters import Cluster, join_clusters
from cobalt_data.dataset import Version
from cobalt_data.duck import HELD_OUT_FIRST, open_duckdb
from cobalt_data.ids import digest
from cobalt_data.minhash import band_width, bands
from cobalt_data.near import Accept, near_duplicates, near_pairs
from cobalt_data.shingles import Places, Shingles, jaccard
from cobalt_data.sketches import Sketches, open_sketches

WORDS = 2  # per shingle: a reworded copy keeps more short runs of words than long ones
SAME_TESTS = 0.5


def duplicate_problems(
    version: Version, connection: duckdb.DuckDBPyConnection, threshold: float | None
) -> list[Cluster]:
    """The clusters of problems; near-duplicates too where a threshold is given."""
    answers = Answers(version, connection)
    order = _in_order(version, connection)
    exact = _exact(order, _exact_keys(version), answers)
    near: list[tuple[str, str, float]] = []
    if threshold is not None:
        with _sketched(version, threshold) as (ids, tests, sketches):
            dropped = {row_id for found in exact.values() for row_id in found}
            accept = _unless_a_few_tests_are_shared(_acceptance(threshold, ids, tests, answers), tests)
            place = {row_id: place for place, row_id in enumerate(ids)}
            rest = [place[row_id] for row_id in order if row_id in place and row_id not in dropped]
            found = near_duplicates(
                sketches, np.array(rest, np.int64), accept, more=bands(tests, band_width(SAME_TESTS))
            )
            near = [
                (ids[row], ids[kept], alike)
                for row, kept, alike in zip(*(each.tolist() for each in found), strict=True)
            ]
    return join_clusters("problems", exact, near)


def alike_problems(version: Version, threshold: float) -> list[tuple[str, str]]:
    """The pairs of problem ids that are near-duplicates or exact ones."""
    with open_duckdb() as connection, _sketched(version, threshold) as (ids, tests, sketches):
        accept = _acceptance(threshold, ids, tests, Answers(version, connection))
        order = np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64)
        found = near_pairs(sketches, order, accept, bands(tests, band_width(SAME_TESTS)))
        return [(ids[one], ids[other]) for one, other in zip(*(each.tolist() for each in found), strict=True)]


def _acceptance(threshold: float, ids: Sequence[str], tests: Shingles, answers: Answers) -> Accept:
    def accept(left: Places, right: Places, alike: Similarities) -> NDArray[np.bool_]:
        accepted: NDArray[np.bool_] = alike >= threshold
        unsure = np.flatnonzero(~accepted & (alike >= threshold / 2))
        accepted[unsure] = jaccard(tests, left[unsure], right[unsure]) >= SAME_TESTS
        asked = np.flatnonzero(accepted)
        accepted[asked] = answers.agree([ids[row] for row in left[asked]], [ids[row] for row in right[asked]])
        return accepted

    return accept


def _unless_a_few_tests_are_shared(accept: Accept, tests: Shingles) -> Accept:
    """`accept`, but for pairs that have some tests in common and no more than half of the fewer."""
    sizes = np.diff(tests.starts)

    def accept_fewer(left: Places, right: Places, alike: Similarities) -> NDArray[np.bool_]:
        alike_in_tests = jaccard(tests, left, right)
        shared = np.rint(alike_in_tests / (1 + alike_in_tests) * (sizes[left] + sizes[right]))
        shares_a_few = (shared > 0) & (2 * shared <= np.minimum(sizes[left], sizes[right]))
        accepted: NDArray[np.bool_] = accept(left, right, alike) & ~shares_a_few
        return accepted

    return accept_fewer


@contextmanager
def _sketched(version: Version, threshold: float) -> Iterator[tuple[list[str], Shingles, Sketches]]:
    """Of the problems whose statement has a word: the ids, the tests as sets of numbers, and the sketches."""
    ids: list[str] = []
    statements: list[str] = []
    tests: list[list[int]] = []
    for row in version.rows("problems", columns=["problem_id", "statement", "tests"]):
        if row["statement"].split():
            own = [int(digest(row["problem_id"])[:8], 16)]  # which no other problem has
            tests.append(test_numbers(row["tests"]) or own)
            ids.append(row["problem_id"])
            statements.append(row["statement"].casefold())
    with open_sketches(WORDS, threshold) as sketches:
        sketches.add(statements)
        values = np.array([number for numbers in tests for number in numbers], np.uint32)
        yield ids, Shingles(values, np.r_[0, np.cumsum([len(numbers) for numbers in tests], dtype=np.int64)]), sketches


def _in_order(version: Version, connection: duckdb.DuckDBPyConnection) -> list[str]:
    """All problem ids, those to keep first."""
    connection.execute("CREATE OR REPLACE TEMP TABLE made (problem_id VARCHAR)")
    if version.has("trajectories"):
        connection.execute("INSERT INTO made SELECT problem_id FROM read_parquet(?)", [version.files("trajectories")])
    ordered = connection.execute(
        f"""
        SELECT problem_id
        FROM read_parquet(?) LEFT JOIN (SELECT problem_id, count(*) AS number FROM made GROUP BY ALL) USING (problem_id)
        ORDER BY {HELD_OUT_FIRST}, coalesce(number, 0) DESC, problem_id
        """,
        [version.files("problems")],
    )
    return [row_id for (row_id,) in ordered.fetchall()]


def _exact_keys(version: Version) -> dict[str, str]:
    """What exact duplicates have in common, by problem id."""
    columns = ["problem_id", "statement", "starter_code", "judge"]
    return {
        row["problem_id"]: digest(
            row["statement"].split(), row["starter_code"].split(), json.loads(row["judge"]).get("entry_point")
        )
        for row in version.rows("problems", columns=columns)
        if row["statement"].split()
    }


def _exact(order: Sequence[str], keys: Mapping[str, str], answers: Answers) -> dict[str, list[str]]:
    """The exact duplicates of each problem that has any: those with its key that no test tells from it."""
    kept: defaultdict[str, list[str]] = defaultdict(list)
    found: dict[str, list[str]] = {}
    for row_id in order:
        if row_id not in keys:
            continue
        alike = kept[keys[row_id]]
        same = [first for first in alike if answers.agree([first], [row_id])[0]]
        if same:
            found.setdefault(same[0], []).append(row_id)
        else:
            alike.append(row_id)
    return found
