"""Making room in a dataset: what killed processes left, runs that nobody will resume, versions off the main line.

Nothing goes that a process is using: staging directories and runs are locked by their owners, and whoever has opened a version
holds a share of the lock on its directory until done. Shards that other versions share survive under their other names.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cobalt_data.dataset import open_version, version_ids
from cobalt_data.errors import CobaltError, InputError
from cobalt_data.history import history
from cobalt_data.references import LocalReference, parse_reference
from cobalt_data.staging import STAGING_PREFIX, leftovers, locked, remove


@dataclass(frozen=True, slots=True)
class Removed:
    """Something that was removed, or would be; `bytes` counts what no other name keeps on the disk."""

    path: Path
    kind: str  # leftover | run | version
    bytes: int


def gc(
    dataset: str | Path, *, runs: bool = False, versions: bool = False, keep: Sequence[str] = (), dry_run: bool = False
) -> list[Removed]:
    """Removes leftovers and, where asked, unfinished `runs` and `versions` that are no ancestors of the latest one.

    `keep` names versions that stay, with their ancestors; so do versions that an unfinished run stands on. With `dry_run`
    nothing is removed. Raises InputError where there is no such dataset or version, or `dataset` names a version of one.
    """
    if parse_reference(dataset) != LocalReference(Path(dataset), None):
        raise InputError(
            f"{dataset} is no path of a dataset: give gc one without a version; --keep VERSION spares what it was made from"
        )
    latest = open_version(dataset)
    root = latest.dataset
    with _clear_errors(root), locked(root, fcntl.LOCK_EX):
        removed = [_remove(root, path, "leftover", dry_run) for path in leftovers(root)]
        if runs:
            removed += [_remove(root, path, "run", dry_run) for path in _abandoned_runs(root)]
        if versions:
            stood_on = _parents_of_runs(root, gone={entry.path for entry in removed})
            wanted = [f"{root}@{name}" for name in (latest.id, *keep, *stood_on)]
            kept = {entry.version for reference in wanted for entry in history(open_version(reference))}
            for path in (root / "versions" / name for name in version_ids(root) if name not in kept):
                with _unless_in_use(path) as ours:
                    if ours:
                        removed.append(_remove(root, path, "version", dry_run))
    return removed


@contextlib.contextmanager
def _clear_errors(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CobaltError(f"{error.filename or root}: cannot remove it ({error.strerror}); repeat to go on") from None


def _abandoned_runs(root: Path) -> Iterator[Path]:
    for lock in sorted(root.glob("runs/*/lock")):
        with _unless_in_use(lock) as ours:
            if ours:
                yield lock.parent


def _parents_of_runs(root: Path, gone: set[Path]) -> list[str]:
    """The versions that the remaining runs say they stand on, of those that are still there."""
    parents = set()
    for plan in root.glob("runs/*/plan.json"):
        if plan.parent not in gone:
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):  # killed before it had a whole plan
                parents.add(json.loads(plan.read_bytes())["parent"])
    return sorted(parents.intersection(version_ids(root)))


@contextlib.contextmanager
def _unless_in_use(path: Path) -> Iterator[bool]:
    """Holds the lock on `path`, so that nobody starts to use it meanwhile; or yields False where somebody does already."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


def _remove(root: Path, path: Path, kind: str, dry_run: bool) -> Removed:
    files = [path, *path.rglob("*")] if path.is_dir() and not path.is_symlink() else [path]
    freed = sum(stat.st_size for stat in map(Path.lstat, files) if stat.st_nlink == 1)
    if not dry_run:
        leftover = root / "versions" / f"{STAGING_PREFIX}{path.name}"  # gone in one step, even if we are killed now
        path.rename(leftover)
        remove(leftover)
    return Removed(path, kind, freed)
