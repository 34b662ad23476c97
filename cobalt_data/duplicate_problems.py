"""Problems whose statements are the same, or nearly.

- Exact: statement, starter code and entry point are the same but for white space.
- Near: the statements, as sets of shingles of `WORDS` successive words without regard to case, have at least the given Jaccard
  similarity. Half of it is enough for problems of which the tests, as sets, have a Jaccard similarity of `SAME_TESTS`, since a
  copy in other words keeps the tests; but a few small ones, which other tasks have as well, take the same entry point.

In both cases the tests must not contradict it (`cobalt_data.answers`). Nor are two problems near-duplicates that have some
tests in common but no more than half of the fewer: a copy takes them over in bulk, while two tasks of one family agree on a few
small inputs. Nor are two functions of different names, case and underscores aside. To `alike_problems`, which says what is to
stay on one side, none of these is an objection: what reads alike is better kept together in doubt, and where a task has several
right answers two tests may differ that ask for the same.

Kept is the problem on the side that is furthest held out (test before validation before train), of several the one with the
most trajectories, then the one with the smallest id. A statement without a word is nobody's duplicate. Left out: problems that
ask for the same in other words altogether.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import numpy as np
from numpy.typing import NDArray

from cobalt_data.alike import Similarities
from cobalt_data.answers import Answers, test_numbers, tests_vouch
from cobalt_data.clusters import Cluster, join_clusters
from cobalt_data.dataset import Version
from cobalt_data.duck import HELD_OUT_FIRST, open_duckdb
from cobalt_data.ids import digest
from cobalt_data.minhash import band_width, bands
from cobalt_data.near import Accept, near_duplicates, near_pairs
from cobalt_data.shingles import Numbers64, Places, Shingles, jaccard
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
        with _sketched(version, threshold) as (facts, sketches):
            dropped = {row_id for found in exact.values() for row_id in found}
            place = {row_id: place for place, row_id in enumerate(facts.ids)}
            rest = [place[row_id] for row_id in order if row_id in place and row_id not in dropped]
            accept = _unless_a_test_tells(_reads_alike(threshold, facts), facts, answers)
            found = near_duplicates(sketches, np.array(rest, np.int64), accept, more=_test_bands(facts))
            near = [
                (facts.ids[row], facts.ids[kept], alike)
                for row, kept, alike in zip(*(each.tolist() for each in found), strict=True)
            ]
    return join_clusters("problems", exact, near)


def alike_problems(version: Version, threshold: float) -> dict[tuple[str, str], bool]:
    """The pairs of problem ids that read alike, whatever their tests say; of each, whether one is a copy of the other: they read
    the same, or are near-duplicates."""
    with open_duckdb() as connection, _sketched(version, threshold) as (facts, sketches):
        accept = _reads_alike(threshold, facts)
        order = np.array(sorted(range(len(facts.ids)), key=facts.ids.__getitem__), np.int64)
        first, second = near_pairs(sketches, order, accept, _test_bands(facts))
        alike = sketches.similarities(first, second)
        is_copy = _unless_a_test_tells(accept, facts, Answers(version, connection))(first, second, alike) | (alike == 1)
        found = zip(first.tolist(), second.tolist(), is_copy.tolist(), strict=True)
        return {(facts.ids[one], facts.ids[other]): copied for one, other, copied in found}


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is compared besides the statements of problems, in the order of their sketches."""

    ids: Sequence[str]
    names: Places  # a number for each name of an entry point, whatever its case and underscores; 0 where there is none
    tests: Shingles  # as sets of numbers
    vouching: NDArray[np.bool_]  # whether these say so much that they tell who is alike


def _reads_alike(threshold: float, facts: _Facts) -> Accept:
    def accept(left: Places, right: Places, alike: Similarities) -> NDArray[np.bool_]:
        accepted: NDArray[np.bool_] = alike >= threshold
        same_name = (facts.names[left] == facts.names[right]) & (facts.names[left] > 0)
        vouched = same_name | (facts.vouching[left] & facts.vouching[right])
        unsure = np.flatnonzero(~accepted & vouched & (alike >= threshold / 2))
        accepted[unsure] = jaccard(facts.tests, left[unsure], right[unsure]) >= SAME_TESTS
        return accepted

    return accept


def _unless_a_test_tells(accept: Accept, facts: _Facts, answers: Answers) -> Accept:
    """`accept`, but for pairs that have two names, or two answers to one input, or some tests in common and no more than half
    of the fewer."""
    sizes = np.diff(facts.tests.starts)

    def accept_fewer(left: Places, right: Places, alike: Similarities) -> NDArray[np.bool_]:
        alike_in_tests = jaccard(facts.tests, left, right)
        shared = np.rint(alike_in_tests / (1 + alike_in_tests) * (sizes[left] + sizes[right]))
        shares_a_few = (shared > 0) & (2 * shared <= np.minimum(sizes[left], sizes[right]))
        one, other = facts.names[left], facts.names[right]
        has_two_names = (one != other) & (one > 0) & (other > 0)
        accepted: NDArray[np.bool_] = accept(left, right, alike) & ~shares_a_few & ~has_two_names
        asked = np.flatnonzero(accepted)
        ids = [[facts.ids[row] for row in side[asked]] for side in (left, right)]
        accepted[asked] = answers.agree(*ids)
        return accepted

    return accept_fewer


def _test_bands(facts: _Facts) -> Numbers64:
    return bands(facts.tests, band_width(SAME_TESTS))


@contextmanager
def _sketched(version: Version, threshold: float) -> Iterator[tuple[_Facts, Sketches]]:
    """The problems whose statement has a word."""
    ids: list[str] = []
    statements: list[str] = []
    names: list[int] = []
    numbers_of_names: dict[str, int] = {"": 0}
    tests: list[list[int]] = []
    vouching: list[bool] = []
    for row in version.rows("problems", columns=["problem_id", "statement", "tests", "judge"]):
        if row["statement"].split():
            own = [int(digest(row["problem_id"])[:8], 16)]  # which no other problem has
            of_row = json.loads(row["tests"])
            tests.append(test_numbers(of_row) or own)
            vouching.append(tests_vouch(of_row))
            name = _name(json.loads(row["judge"]).get("entry_point") or "")
            names.append(numbers_of_names.setdefault(name, len(numbers_of_names)))
            ids.append(row["problem_id"])
            statements.append(row["statement"].casefold())
    numbers = np.array([number for own in tests for number in own], np.uint32)
    starts = np.r_[0, np.cumsum([len(own) for own in tests], dtype=np.int64)]
    facts = _Facts(ids, np.array(names, np.int64), Shingles(numbers, starts), np.array(vouching, np.bool_))
    with open_sketches(WORDS, threshold) as sketches:
        sketches.add(statements)
        yield facts, sketches


def _name(entry_point: str) -> str:
    """What it calls, `f` of `Solution().f`, without case and underscores."""
    return entry_point.rpartition(".")[2].casefold().replace("_", "")


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
