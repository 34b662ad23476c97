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
    """`version` and its ancestors: every version before its parents, and where that leaves a choice the youngest first."""
    known = set(version_ids(version.dataset))
    manifests = ancestry(version)
    unlisted_children = Counter(parent for manifest in manifests.values() for parent in set(manifest.parents))
    entries: list[Entry] = []
    ready = [version.manifest]
    while ready:
        ready.sort(key=lambda manifest: (manifest.created_at, manifest.id))
        manifest = ready.pop()
        entries.append(_entry(manifest, known))
        for parent in known.intersection(manifest.parents):
            unlisted_children[parent] -= 1
            if not unlisted_children[parent]:
                ready.append(manifests[parent])
    return entries


def ancestry(version: Version) -> dict[str, Manifest]:
    """The manifests of the version and of those ancestors that its dataset holds, by id."""
    known = set(version_ids(version.dataset))
    manifests = {version.id: version.manifest}
    unread = [version.manifest]
    while unread:
        for parent in known.intersection(unread.pop().parents) - manifests.keys():
            manifests[parent] = Manifest.load(version.dataset / "versions" / parent)
            unread.append(manifests[parent])
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
