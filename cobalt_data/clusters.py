"""Rows that are duplicates of each other: which one is kept, and which are dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Cluster:
    """Rows of one table: the id that is kept, its exact duplicates in ascending order, and its near-duplicates with the
    Jaccard similarity of each to the kept row."""

    level: str
    kept: str
    exact: tuple[str, ...] = ()
    near: Mapping[str, float] = field(default_factory=dict)

    @property
    def dropped(self) -> tuple[str, ...]:
        return (*self.exact, *self.near)

    @property
    def size(self) -> int:
        return 1 + len(self.exact) + len(self.near)

    def to_json(self) -> dict[str, Any]:
        """As the report has it."""
        near = {row_id: round(similarity, 4) for row_id, similarity in self.near.items()}
        return {"level": self.level, "kept": self.kept, "exact": self.exact, "near": near}


def join_clusters(
    level: str, exact: Mapping[str, Sequence[str]], near: Iterable[tuple[str, str, float]]
) -> list[Cluster]:
    """Clusters by kept id, from the exact duplicates of each kept row and, where one of those is a near-duplicate of another,
    from (near-duplicate, kept row, similarity). The exact duplicates of a near-duplicate are near-duplicates as well."""
    followers: dict[str, dict[str, float]] = {}
    for row_id, kept, similarity in near:
        for copy in (row_id, *exact.get(row_id, ())):
            followers.setdefault(kept, {})[copy] = similarity
    absorbed = {row_id for found in followers.values() for row_id in found}
    kept_ids = sorted((exact.keys() | followers.keys()) - absorbed)
    return [
        Cluster(level, kept, tuple(sorted(exact.get(kept, ()))), dict(sorted(followers.get(kept, {}).items())))
        for kept in kept_ids
    ]
