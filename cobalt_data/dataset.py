"""Reading a dataset: references, versions and their tables.

    DATASET/
      latest -> versions/ID          the version that a bare PATH means
      versions/ID/manifest.json      what it is and what made it
      versions/ID/README.md          a dataset card: `datasets.load_dataset("DATASET/latest", "prompts")` works as it is
      versions/ID/TABLE/SPLIT-*.parquet
      runs/ID/                       unfinished work that can be resumed

Versions are immutable; a shard that two of them share is one file with two names (a hard link). Writing is in
`cobalt_data.commit`, removing in `cobalt_data.gc`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from cobalt_data.errors import DamagedManifest, InputError, one_line
from cobalt_data.manifest import Manifest
from cobalt_data.references import HubReference, LocalReference, parse_reference, unreadable
from cobalt_data.schemas import TABLES, schema_of

if TYPE_CHECKING:
    import polars as pl

MADE_BY = {"problems": "cobalt data import", "trajectories": "cobalt data collect", "prompts": "cobalt data cut"}
SHORTEST_VERSION_PREFIX = 4


class Lease:
    """A share of the lock on a version's directory: as long as it lives, `cobalt data gc` keeps the version."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        with contextlib.suppress(OSError):  # the version is gone, which opening it reports; or a disk without locks
            descriptor = os.open(directory, os.O_RDONLY)
            weakref.finalize(self, os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_SH)

    def __reduce__(self) -> tuple[type[Lease], tuple[Path]]:
        return (Lease, (self._directory,))


@dataclass(frozen=True, slots=True)
class Version:
    """One immutable state of a dataset. `latest_when_opened` lets `commit` notice that somebody else wrote meanwhile.

    `origin` is the Hub reference that stands for a version in the cache, where nothing else is to be written.
    """

    dataset: Path
    manifest: Manifest
    latest_when_opened: str | None
    origin: str | None = None
    lease: Lease | None = field(default=None, repr=False, compare=False)

    @property
    def id(self) -> str:
        return self.manifest.id

    @property
    def path(self) -> Path:
        return self.dataset / "versions" / self.id

    @property
    def reference(self) -> str:
        return self.origin or f"{self.dataset}@{self.id}"

    def has(self, name: str) -> bool:
        return self.manifest.rows(name) > 0

    def table(self, name: str, split: str | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows, or those of one split, ordered by (split, id). Raises InputError if there are none at all."""
        return pa.concat_tables([schema_of(name, columns).empty_table(), *self.pieces(name, split, columns)])

    def pieces(
        self, name: str, split: str | None = None, columns: Sequence[str] | None = None, rows: int = 2048
    ) -> Iterator[pa.Table]:
        """The rows of `table`, at most so many at a time: for what need not fit into memory."""
        for shard in self._shards(name):
            if split in (None, shard.split):
                yield from _read(self.path / shard.path, schema_of(name, columns), rows)

    def rows(
        self, name: str, split: str | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[dict[str, Any]]:
        """The rows of `table`, as dictionaries, a piece in memory at a time; only `columns` where they are given."""
        for piece in self.pieces(name, split, columns, rows=1024):
            yield from piece.to_pylist()

    def files(self, name: str) -> list[str]:
        """The table's Parquet files as DuckDB takes them."""
        return [escape(str(self.path / shard.path)) for shard in self._shards(name)]

    def scan(self, name: str) -> pl.LazyFrame:
        """The table for Polars, read as far as it is asked for."""
        import polars as pl

        return pl.scan_parquet([self.path / shard.path for shard in self._shards(name)], glob=False)

    def _shards(self, name: str) -> Iterable[Any]:
        if not self.has(name):
            raise InputError(f"{self.reference} has no {name}: make them with `{MADE_BY[name]}` first")
        for shard in self.manifest.tables[name]:
            file = self.path / shard.path
            if not file.is_file() or file.stat().st_size != shard.bytes:
                raise InputError(f"{file} is missing or damaged: restore it, or go back to another version")
        return self.manifest.tables[name]


def _read(path: Path, schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(rows, columns=schema.names):
                yield pa.Table.from_batches([batch]).select(schema.names).cast(schema)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:  # the last two: names that are damaged
        raise InputError(f"{path} is damaged ({one_line(error)}): restore it, or go back to another version") from None


def open_version(reference: str | Path) -> Version:
    """Opens `PATH` (its latest version), `PATH@VERSION` (an id or a unique prefix of one) or, downloaded into the cache and
    verified, `hf://datasets/USER/NAME@TAG`. Raises InputError, and HubError where the Hub refuses.
    """
    parsed = parse_reference(reference)
    if isinstance(parsed, HubReference):
        from cobalt_data.pull import open_from_hub

        return open_from_hub(parsed)
    try:
        return _open_local(parsed)
    except OSError as error:
        raise unreadable(parsed.dataset, error) from None


def _open_local(reference: LocalReference) -> Version:
    """Raises OSError where the system does not let it be read."""
    dataset, wanted = reference.dataset, reference.version
    if not dataset.exists():
        raise InputError(f"{dataset}: there is no such dataset; make one with `cobalt data import SOURCE -o {dataset}`")
    latest = latest_id(dataset)
    if latest is None:
        raise InputError(f"{dataset} is not a cobalt dataset (it has no `latest`); make one with `cobalt data import`")
    return load_version(dataset, _find(dataset, wanted) if wanted else latest, latest)


def load_version(dataset: Path, version_id: str, latest: str | None, origin: str | None = None) -> Version:
    """The version of that id, where `latest` is what the dataset's latest one was found to be. Raises InputError."""
    directory = dataset / "versions" / version_id
    lease = Lease(directory)
    manifest = Manifest.load(directory)
    if manifest.id != version_id:
        raise DamagedManifest(f"{directory} is damaged (its manifest is that of version {manifest.id}): restore it")
    return Version(dataset, manifest, latest, origin, lease)


def latest_id(dataset: Path) -> str | None:
    """The id that `latest` points to; None where `dataset` holds no version."""
    link = dataset / "latest"
    return link.readlink().name if link.is_symlink() else None


def version_ids(dataset: Path) -> list[str]:
    versions = dataset / "versions"
    return sorted(entry.name for entry in versions.iterdir() if entry.name[0] != ".") if versions.is_dir() else []


def _find(dataset: Path, wanted: str) -> str:
    matches = [known for known in version_ids(dataset) if known.startswith(wanted)]
    if len(wanted) >= SHORTEST_VERSION_PREFIX and len(matches) == 1:
        return matches[0]
    if len(matches) > 1:
        raise InputError(f"{dataset}@{wanted}: {len(matches)} versions begin like this; give more digits")
    raise InputError(f"{dataset}@{wanted}: no such version; `cobalt data log {dataset}` lists them")


def table_from_rows(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """A table with the schema of `name`. Raises InputError naming the field where a row does not fit it."""
    try:
        return pa.Table.from_pylist(list(rows), schema=TABLES[name])
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"a row does not fit the {name} table: {error}") from None
