"""Which of many rows are alike: candidates from the bands, each compared exactly, and what follows from that.

`leaders` is for dropping duplicates. Rows come in the order in which they are to be kept. Every row joins a leader before it that
it is alike to (of those that it is compared with at once, the earliest), or leads itself; so each dropped row is alike to the very
row that is kept in its place, and no chain of small differences joins two ends that differ much. Rows are compared with leaders
alone: a cluster of n costs n comparisons, and a bucket that has shown `MOST_LEADERS` leaders is closed, so that rows which share
a band but nothing more cannot make it quadratic.

`alike_pairs` is for keeping rows together. It compares all pairs of a bucket, or, in one of more than `MOST_PARTNERS`, each
row with so many of the first.

The order of the rows decides, and the caller gives it; neither the number of cores nor of batches does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobalt_data.shingles import Numbers64, Places, distinct

MOST_LEADERS = 64
MOST_PARTNERS = 64

Similarities = NDArray[np.float64]
Compare = Callable[
    [Places, Places], Similarities
]  # how alike each pair of rows is; below 0 if they are not to be joined


@dataclass(frozen=True, slots=True)
class Entries:
    """Which rows are in which bucket, ordered by bucket and row; a bucket holds two rows or more."""

    buckets: Places
    rows: Places

    def where(self, kept: NDArray[np.bool_]) -> Entries:
        """Those entries, less the buckets that are left with a single row."""
        buckets, rows = self.buckets[kept], self.rows[kept]
        first = np.r_[True, buckets[1:] != buckets[:-1]][: len(buckets)]
        alone = first & np.r_[first[1:], True][: len(buckets)]
        return Entries(buckets[~alone], rows[~alone])

    def heads(self) -> tuple[Places, Places]:
        """For each entry, the place of the first entry of its bucket, and the row there."""
        first = np.flatnonzero(np.r_[True, self.buckets[1:] != self.buckets[:-1]])
        places = np.repeat(first, np.diff(first, append=len(self.buckets)))
        return places, self.rows[places]


def entries_of(bands: Numbers64) -> Entries:
    """The buckets of a (bands, rows) matrix: rows that have the same number in the same band."""
    found: list[tuple[Places, Places]] = []
    buckets = 0
    for numbers in bands:
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        same = ordered[1:] == ordered[:-1]
        follows = np.r_[False, same][: len(order)]
        shared = follows | np.r_[same, False][: len(order)]
        begins = shared & ~follows
        own = np.cumsum(begins)[shared]
        found.append((own + buckets, order[shared]))
        buckets += int(own[-1]) if len(own) else 0
    return Entries(np.concatenate([each for each, _ in found]), np.concatenate([each for _, each in found]))


def leaders(entries: Entries, rows: int, compare: Compare) -> tuple[Places, Similarities]:
    """For each of `rows` rows the one that it follows, itself where it leads, and how alike the two are.

    Goes in rounds. A row that is the first of all its buckets leads; the others of those buckets are compared with it.
    """
    leader = np.arange(rows)
    similarity = np.ones(rows)
    shown = np.zeros(int(entries.buckets.max(initial=0)) + 1, np.int64)
    while len(entries.rows):
        _, heads = entries.heads()
        earliest = np.full(rows, rows)
        np.minimum.at(earliest, entries.rows, heads)
        leads = earliest[heads] == heads
        is_head = entries.rows == heads
        first, second = _pairs(heads[leads & ~is_head], entries.rows[leads & ~is_head], rows)
        found = compare(second, first)
        alike = found >= 0
        joined, earliest_match = np.unique(second[alike], return_index=True)
        leader[joined], similarity[joined] = first[alike][earliest_match], found[alike][earliest_match]
        np.add.at(shown, entries.buckets[is_head & leads], 1)
        done = np.zeros(rows, np.bool_)
        done[joined] = done[heads[leads]] = True
        entries = entries.where(~done[entries.rows] & (shown[entries.buckets] < MOST_LEADERS))
    return leader, similarity


def alike_pairs(entries: Entries, rows: int, compare: Compare) -> tuple[Places, Places]:
    """The pairs of rows to be joined, the earlier of each on the left."""
    if not len(entries.rows):
        return entries.rows, entries.rows
    heads, _ = entries.heads()
    position = np.arange(len(entries.rows)) - heads
    first = second = np.zeros(0, np.int64)
    for partner in range(min(MOST_PARTNERS, int(position.max()))):
        later = position > partner
        partners = entries.rows[heads[later] + partner]
        first, second = _pairs(np.r_[first, partners], np.r_[second, entries.rows[later]], rows)
    alike = compare(first, second) >= 0
    return first[alike], second[alike]


def _pairs(first: Places, second: Places, rows: int) -> tuple[Places, Places]:
    """Each pair once, ordered."""
    return np.divmod(distinct(first * rows + second), rows)
