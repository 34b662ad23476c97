"""How a version came about: its ancestors, newest first, each with what made it and where the rows went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from cobalt_data.dataset import Version, version_ids
from cobalt_data.manifest import Counts, Manifest


@dataclass(frozen=True, slots=True)
class Entry:
    """One version of the dataset. `parents_elsewhere` were made in another dataset, or were removed from this one."""

    version: str
    parents: tuple[str, ...]
    parents_elsewhere: tuple[str, ...]
    operation: str
    arguments: Mapping[str, Any]
    seed: int | None
    created_at: str
    counts: Mapping[str, Counts]
    rows: Mapping[str, int]


def history(version: Version) -> list[Entry]:
    """`version` and its ancestors: a child before its parents, else the youngest first."""
    manifests = _ancestors(version)
    children = Counter(parent for manifest in manifests.values() for parent in manifest.parents)
    ready = [version.id]
    entries: list[Entry] = []
    while ready:
        ready.sort(key=lambda ready_id: (manifests[ready_id].created_at, ready_id))
        manifest = manifests[ready.pop()]
        entries.append(_entry(manifest, manifests.keys()))
        for parent in manifest.parents:
            children[parent] -= 1
            if children[parent] == 0 and parent in manifests:
                ready.append(parent)
    return entries


def _ancestors(version: Version) -> dict[str, Manifest]:
    """The manifests of `version` and of all its ancestors that this dataset holds, by id."""
    at_hand = set(version_ids(version.dataset))
    manifests = {version.id: version.manifest}
    waiting = [version.manifest]
    while waiting:
        for parent in waiting.pop().parents:
            if parent in at_hand and parent not in manifests:
                manifests[parent] = Manifest.load(version.dataset / "versions" / parent)
                waiting.append(manifests[parent])
    return manifests


def _entry(manifest: Manifest, known: Set[str]) -> Entry:
    return Entry(
        version=manifest.id,
        parents=manifest.parents,
        parents_elsewhere=tuple(parent for parent in manifest.parents if parent not in known),
        operation=manifest.operation,
        arguments=manifest.arguments,
        seed=manifest.seed,
        created_at=manifest.created_at,
        counts=manifest.counts,
        rows={table: manifest.rows(table) for table in manifest.tables},
    )
