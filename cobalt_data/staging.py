"""Putting a version in its place: all of it or nothing.

What is to become a version grows in a staging directory that is renamed once it is complete and on disk; only then does
`latest` move. Two locks, both held by the kernel for as long as their owner lives, keep processes apart: one on the dataset
for the moment of publishing, one on each staging directory, which is how a leftover is told from a neighbour at work.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cobalt_data.dataset import latest_id
from cobalt_data.errors import CobaltError, DatasetMoved, InputError
from cobalt_data.manifest import Manifest

STAGING_PREFIX = ".staging-"
LINK_PREFIX = ".latest-"
ASIDE_PREFIX = "."  # of a file that is being written


@contextlib.contextmanager
def staging_directory(target: Path) -> Iterator[Path]:
    """A directory beside the versions, removed unless it was renamed; leftovers of killed processes are cleared away.

    Where the work comes to nothing, no empty dataset stays behind.
    """
    versions = target / "versions"
    staging = versions / f"{STAGING_PREFIX}{secrets.token_hex(8)}"
    with contextlib.ExitStack() as held:
        if not target.exists():
            held.callback(_remove_empty, versions, target)
        versions.mkdir(parents=True, exist_ok=True)
        with locked(target, fcntl.LOCK_EX):
            for leftover in leftovers(target):
                remove(leftover)
            staging.mkdir()
            held.enter_context(locked(staging, fcntl.LOCK_EX))
            held.callback(shutil.rmtree, staging, ignore_errors=True)
        yield staging


def leftovers(target: Path) -> list[Path]:
    """What killed processes left behind and nobody holds. To be called, and acted on, under the dataset's lock."""
    abandoned = [path for path in sorted((target / "versions").glob(f"{STAGING_PREFIX}*")) if is_free(path)]
    return [*abandoned, *sorted(target.glob(f"{LINK_PREFIX}*"))]


def publish(target: Path, staging: Path, manifest: Manifest, latest_before: str | None, at_home: bool) -> None:
    """Renames the staging directory to its version and moves `latest`, under the dataset's lock.

    `latest` moves only if it still stands where it stood when the parent was opened. Raises InputError where a version made
    elsewhere (not `at_home`) would hide another dataset, DatasetMoved where somebody else wrote meanwhile.
    """
    final = target / "versions" / manifest.id
    for path in (*staging.rglob("*"), staging):
        sync(path)
    with locked(target, fcntl.LOCK_EX):
        is_new = not final.exists()
        latest = latest_id(target)
        if is_new and latest is not None and not at_home:
            raise InputError(
                f"{target} already holds a dataset (latest version {latest}); write to another directory with -o"
            )
        if is_new:
            staging.rename(final)
            sync(final.parent)
        if latest == latest_before if is_new else latest in (None, *manifest.parents):
            _point_latest(target, manifest.id)
        elif is_new:
            raise DatasetMoved(
                f"{target}: another process wrote version {latest} meanwhile; this work is kept as {target}@{manifest.id}"
            )


def make_latest(target: Path, version: str) -> None:
    """Moves `latest` to a version that is there, under the dataset's lock."""
    with locked(target, fcntl.LOCK_EX):
        if latest_id(target) != version:
            _point_latest(target, version)


@contextlib.contextmanager
def clear_disk_errors(target: Path) -> Iterator[None]:
    """Turns what the disk refuses into CobaltError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CobaltError(
                f"{target}: no space left on the disk; nothing was changed, make room and repeat"
            ) from None
        raise CobaltError(f"{target}: cannot write there ({error.strerror}); nothing was changed") from None


@contextlib.contextmanager
def locked(path: Path, mode: int) -> Iterator[None]:
    """Holds `path` in an fcntl.flock mode. Raises BlockingIOError where it is taken and the mode says not to wait."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, mode)
        yield
    finally:
        os.close(descriptor)


def is_free(path: Path) -> bool:
    """Whether no process, this one included, holds `path` or a share of it."""
    try:
        with locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
            return True
    except (BlockingIOError, FileNotFoundError):
        return False


def remove(path: Path) -> None:
    """Removes a file, a link or a directory with all that it holds."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def write_whole(file: Path, content: bytes) -> None:
    """Puts a file in its place, all of it or nothing. Raises OSError."""
    with written_whole(file) as stream:
        stream.write(content)


@contextlib.contextmanager
def written_whole(file: Path) -> Iterator[BinaryIO]:
    """A stream for what is put in the place of `file`, and on the disk, if nothing is raised meanwhile. Raises OSError.

    A link is followed and a pipe or a device written to, as they are.
    """
    if file.is_symlink() or (file.exists() and not file.is_file()):
        with file.open("wb") as stream:
            yield stream
        return
    aside = file.with_name(f"{ASIDE_PREFIX}{file.name}")
    try:
        with aside.open("wb") as stream:
            yield stream
        sync(aside)
        aside.replace(file)
        sync(file.parent)
    finally:
        aside.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Returns when what a file or a directory holds is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_empty(*directories: Path) -> None:
    with contextlib.suppress(OSError):  # one holds something
        for directory in directories:
            directory.rmdir()


def _point_latest(target: Path, version: str) -> None:
    link = target / f"{LINK_PREFIX}{secrets.token_hex(8)}"
    link.symlink_to(Path("versions") / version)
    link.replace(target / "latest")
    sync(target)
