"""Checks of single shards: the file against its hash, its values against their digest, every row against its own id.

A shard is read in small pieces with a bound on its size in memory, for it may have been made to burst. Many rows are shared
out among processes, each an interpreter of its own that is told shards line by line; a pool of `multiprocessing` would import
the caller's main module again.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cobalt_data.content import content_digest
from cobalt_data.errors import CobaltError
from cobalt_data.manifest import Shard
from cobalt_data.row_checks import wrong_with_row
from cobalt_data.schemas import ID_COLUMNS, TABLES
from cobalt_data.sources import file_sha256

WORTH_PROCESSES = 50_000  # rows
LARGEST_SHARD = 8 << 30  # bytes in memory
BATCH_ROWS = 256
SERVE = "from cobalt_data.shard_checks import serve; serve()"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong: where (the manifest, a file, a row) and what."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True)
class Checked:
    """What is wrong with a shard, and whether its rows are those of the manifest at all."""

    findings: Sequence[Finding]
    is_whole: bool


def check_shards(directory: Path, shards: Sequence[Shard]) -> Iterator[Checked]:
    """The outcome of each shard, in their order. Raises CobaltError where a process that checks them dies."""
    processes = min(os.cpu_count() or 1, len(shards))
    if processes < 2 or sum(shard.rows for shard in shards) < WORTH_PROCESSES:
        yield from (check_shard(directory, shard) for shard in shards)
        return
    with ExitStack() as held:
        idle: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
        for _ in range(processes):
            idle.put(held.enter_context(_server()))
        threads = held.enter_context(ThreadPoolExecutor(processes))
        yield from threads.map(lambda shard: _ask(idle, directory, shard), shards)


@contextmanager
def _server() -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", SERVE]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        process_group=0,  # a Ctrl-C at the terminal is for cobalt, which closes their stdin
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield process
    finally:
        with suppress(BrokenPipeError):  # it has died, and left unread what it was told
            process.stdin.close()
        process.stdout.close()
        process.wait()


def _ask(idle: queue.SimpleQueue[subprocess.Popen[str]], directory: Path, shard: Shard) -> Checked:
    process = idle.get()
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(json.dumps([str(directory), asdict(shard)]) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
    except (OSError, ValueError):
        raise CobaltError(
            f"{directory / shard.path}: the process that checked it died; is there enough memory?"
        ) from None
    finally:
        idle.put(process)
    return Checked([Finding(**finding) for finding in answer["findings"]], answer["is_whole"])


def serve() -> None:
    """Answers, line by line, for the shards that it is told."""
    for line in sys.stdin:
        directory, shard = json.loads(line)
        print(json.dumps(asdict(check_shard(Path(directory), Shard(**shard)))), flush=True)


def check_shard(directory: Path, shard: Shard) -> Checked:
    """Checks one shard in this process."""
    path = directory / shard.path
    problem = wrong_with_file(path, shard)
    if problem:
        return Checked([Finding(shard.path, problem)], False)
    try:
        table = _read(path, TABLES[shard.table])
    except (pa.ArrowException, ValueError, OSError) as error:
        return Checked([Finding(shard.path, f"cannot be read: {str(error).splitlines()[0][:200]}")], False)
    if table.num_rows != shard.rows or content_digest(table) != shard.content:
        return Checked([Finding(shard.path, "its rows are not those of the manifest")], False)
    findings = list(_check_rows(shard.table, table))
    if pc.unique(table["split"]).to_pylist() != [shard.split]:
        findings.insert(0, Finding(shard.path, f"holds rows of another side than {shard.split}"))
    return Checked(findings, True)


def wrong_with_file(path: Path, shard: Shard) -> str | None:
    if path.is_symlink():
        return "is a symbolic link; a shard is a file of the version itself"
    if not path.is_file():
        return "is missing"
    if path.stat().st_size != shard.bytes:
        return f"has {path.stat().st_size} bytes, not {shard.bytes}"
    sha256 = file_sha256(path)
    return None if sha256 == shard.sha256 else f"has the sha256 {sha256}, not {shard.sha256}"


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    """Raises ValueError where the file has another schema, or grows beyond all bounds as it is read."""
    batches, size = [], 0
    with pq.ParquetFile(path) as file:
        if not file.schema_arrow.equals(schema):
            raise ValueError("its columns are not those of the table")
        for batch in file.iter_batches(BATCH_ROWS):
            batch.validate(full=True)
            size += batch.nbytes
            if size > LARGEST_SHARD:
                raise ValueError(f"it holds more than {LARGEST_SHARD >> 30} GiB")
            batches.append(batch)
    return pa.Table.from_batches(batches, schema)


def _check_rows(name: str, table: pa.Table) -> Iterator[Finding]:
    """Each row must be what its own typed form writes: that covers its id and every column that follows from others."""
    for batch in table.to_batches(BATCH_ROWS):
        for row in batch.to_pylist():
            problem = wrong_with_row(name, row)
            if problem:
                yield Finding(f"{name} {row[ID_COLUMNS[name]]}", problem)
