"""Rows that are duplicates of each other: which one is kept, which are dropped, and the report that lists them all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cobalt_data.errors import InputError


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


def write_report(path: str | Path, clusters: Iterable[Cluster]) -> None:
    """One JSON line per cluster: level, kept, exact, near. Raises InputError where the file cannot be written."""
    try:
        with Path(path).open("w", encoding="utf-8") as file:
            for cluster in clusters:
                fields = {
                    "level": cluster.level,
                    "kept": cluster.kept,
                    "exact": cluster.exact,
                    "near": {row_id: round(similarity, 4) for row_id, similarity in cluster.near.items()},
                }
                file.write(json.dumps(fields, ensure_ascii=False) + "\n")
    except OSError as error:
        raise InputError(f"{path}: cannot write the report there ({error.strerror})") from None
