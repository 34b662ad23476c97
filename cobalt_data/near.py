"""Near-duplicates among the items of `cobalt_data.sketches`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cobalt_data.alike import Compare, Entries, Similarities, alike_pairs, entries_of, leaders
from cobalt_data.errors import InputError
from cobalt_data.shingles import Numbers64, Places, mix
from cobalt_data.sketches import Sketches

NEAR_THRESHOLD = 0.8

Accept = Callable[[Places, Places, Similarities], NDArray[np.bool_]]  # whether pairs so alike are near-duplicates


def check_threshold(name: str, threshold: float) -> None:
    """Raises InputError, beginning with `name`, for what is no similarity, or so small that most rows are candidates."""
    if not 0.3 <= threshold <= 1:
        raise InputError(f"{name} is {threshold}: give a Jaccard similarity in [0.3, 1]")


def near_duplicates(
    sketches: Sketches, order: Places, accept: Accept, blocks: Numbers64 | None = None, more: Numbers64 | None = None
) -> tuple[Places, Places, Similarities]:
    """The items that are near-duplicates of one that is kept, that one, and their Jaccard similarity.

    `order` lists the items that take part, those to keep first. Items are compared if they have a number of `more`, (kinds,
    items), in common, or a band; but only with the same number in `blocks`.
    """
    entries = _entries(sketches, order, blocks, more)
    leader, similarity = leaders(entries, len(order), _comparison(sketches, order, accept))
    found = np.flatnonzero(leader != np.arange(len(order)))
    return order[found], order[leader[found]], similarity[found]


def near_pairs(
    sketches: Sketches, order: Places, accept: Accept, more: Numbers64 | None = None
) -> tuple[Places, Places]:
    """The pairs of near-duplicates."""
    entries = _entries(sketches, order, None, more)
    first, second = alike_pairs(entries, len(order), _comparison(sketches, order, accept))
    return order[first], order[second]


def _entries(sketches: Sketches, order: Places, blocks: Numbers64 | None, more: Numbers64 | None) -> Entries:
    numbers = sketches.bands()
    if more is not None:
        numbers = np.concatenate([numbers, more])
    numbers = numbers[:, order]
    return entries_of(numbers if blocks is None else mix(numbers + mix(blocks[order])))


def _comparison(sketches: Sketches, order: Places, accept: Accept) -> Compare:
    def compare(left: Places, right: Places) -> Similarities:
        left, right = order[left], order[right]
        found = sketches.similarities(left, right)
        return np.where(accept(left, right, found), found, -1.0)

    return compare
