"""An unfinished run on disk: what a killed process leaves behind and the next one goes on from.

    DATASET/runs/RUN_ID/
      plan.json          what the run is, for people
      lock               held, by the kernel, as long as a process works on the run
      UNIT.json          one finished unit of work: a line with the digest of the rest, then its result as JSON

A run's id is the hash of what is done (operation, canonical arguments) and to which version, so the same command finds its
own run again and no other. A unit's file appears whole or not at all (written aside, synced, renamed); one that is damaged
nevertheless does not match its digest and its unit is done again. Killed at any moment, a run loses the units in flight.

Left out: which units there are, and what their results mean, is the caller's business.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cobalt_data.errors import CobaltError
from cobalt_data.ids import canonical_json, row_id
from cobalt_data.staging import ASIDE_PREFIX, write_whole


@dataclass(frozen=True, slots=True)
class Run:
    """A run that this process alone works on; made by `open_run`."""

    path: Path

    def finished(self, unit: str) -> Any | None:
        """The result of a unit that an earlier process, or this one, has finished; None where it has to be done."""
        try:
            digest, _, body = (self.path / f"{unit}.json").read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        if hashlib.sha256(body).hexdigest().encode() != digest:
            return None
        return json.loads(body)

    def finish(self, unit: str, result: Any) -> None:
        """Keeps the result of a unit for good: it is on disk when this returns. Safe from several threads."""
        body = canonical_json(result).encode("utf-8", "surrogatepass")
        _keep(self.path / f"{unit}.json", hashlib.sha256(body).hexdigest().encode() + b"\n" + body)

    def discard(self) -> None:
        """Removes the run, once its outcome is kept elsewhere."""
        shutil.rmtree(self.path)
        with contextlib.suppress(OSError):  # other runs are there
            self.path.parent.rmdir()


@contextlib.contextmanager
def open_run(dataset: Path, operation: str, arguments: Mapping[str, Any], parent: str) -> Iterator[Run]:
    """Opens the run of these arguments, begun or not, for this process alone.

    Raises CobaltError where another process works on it, or the disk refuses.
    """
    path = dataset / "runs" / row_id("run", operation, arguments, parent)
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise CobaltError(f"{path}: cannot keep unfinished work there ({error.strerror})") from None
    try:
        _take(lock, path)
        for leftover in path.glob(f"{ASIDE_PREFIX}*"):
            leftover.unlink()
        plan = {"operation": operation, "arguments": arguments, "parent": parent}
        _keep(path / "plan.json", json.dumps(plan, indent=1, sort_keys=True).encode())
        yield Run(path)
    finally:
        os.close(lock)


def _take(lock: int, path: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(lock, 20, 0).decode().strip() or "unknown"
        raise CobaltError(
            f"process {owner} is at work on this very run ({path}): wait for it, or stop it and repeat the command"
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)


def _keep(path: Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise CobaltError(
            f"{path}: cannot be written ({error.strerror}); finished work is kept, repeat the command to go on"
        ) from None
