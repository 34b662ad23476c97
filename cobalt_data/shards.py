"""Ordered rows as the shards of a version: where one ends, how it is written, and when it is shared instead.

Shard boundaries are drawn by the ids of the rows, not by counting them, so that adding or removing a row rewrites one shard
and leaves the others, which the new version then shares with its parent. One shard at a time is in memory.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cobalt_data.content import content_digest
from cobalt_data.dataset import Version
from cobalt_data.errors import InputError
from cobalt_data.manifest import SIDE, Shard
from cobalt_data.row_hashes import FEWEST_ROWS, hashes_of, write_hashes
from cobalt_data.schemas import ID_COLUMNS
from cobalt_data.sources import file_sha256
from cobalt_data.spool import keys_of

ROWS_PER_SHARD = 16_384  # on average
ROWS_PER_GROUP = 2_048  # keeps row groups within what the dataset viewer of the Hub reads

Known = Mapping[str, tuple[Path, Shard]]  # by the digest of their contents; and the version's directory


def write_shards(name: str, pieces: Iterator[pa.Table], staging: Path, parents: Sequence[Version]) -> Iterator[Shard]:
    """Writes rows that come in the order of (split, id); a shard that a parent has already becomes a second name of that file.

    Raises InputError where an id comes twice, or a side has no proper name.
    """
    known = {
        shard.content: (parent.path, shard) for parent in parents for shard in parent.manifest.tables.get(name, ())
    }
    for split, index, part in cut_shards(name, pieces):
        yield _write_shard(f"{name}/{split}-{index:05d}.parquet", split, part, staging, known)
        del part  # before the next one grows


def _write_shard(path: str, split: str, part: pa.Table, staging: Path, known: Known) -> Shard:
    content = content_digest(part)
    if content in known:
        directory, shard = known[content]
        if _link(directory / shard.path, staging / path):
            _share_hashes(directory, shard.path, staging, path)
            return replace(shard, path=path, split=split)
    with pa.OSFile(str(staging / path), "wb") as file:  # a path alone may be taken for an address
        pq.write_table(part, file, compression="zstd", row_group_size=ROWS_PER_GROUP, write_page_checksum=True)
    sha256 = file_sha256(staging / path)
    if part.num_rows >= FEWEST_ROWS:
        write_hashes(staging, path)
    return Shard(path, split, part.num_rows, (staging / path).stat().st_size, sha256, content)


def share_shard(directory: Path, staging: Path, shard: Shard) -> Shard:
    """Gives a new version a shard of the one in `directory`: a second name of its file or, on another disk, a copy."""
    _link_or_copy(directory / shard.path, staging / shard.path)
    _share_hashes(directory, shard.path, staging, shard.path)
    return shard


def _share_hashes(directory: Path, path: str, staging: Path, new_path: str) -> None:
    source, target = hashes_of(directory, path), hashes_of(staging, new_path)
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        _link_or_copy(source, target)


def _link_or_copy(source: Path, target: Path) -> None:
    if not _link(source, target):
        shutil.copyfile(source, target)


def cut_shards(name: str, pieces: Iterator[pa.Table]) -> Iterator[tuple[str, int, pa.Table]]:
    """The split, number within it and rows of each shard: they end with a side, and before ids that fall on a boundary."""
    ids: set[str] = set()
    parts: list[pa.Table] = []
    side, index = None, 0
    for piece in pieces:
        start = 0
        for row, (split, row_id) in enumerate(keys_of(piece, ID_COLUMNS[name])):
            if row_id in ids:
                raise InputError(f"{name}: id {row_id} stands in several rows; ids must be unique")
            ids.add(row_id)
            if split == side and zlib.crc32(row_id.encode()) % ROWS_PER_SHARD:
                continue
            parts.append(piece.slice(start, row - start))
            if side is not None:
                yield side, index, pa.concat_tables(parts)
            parts, start = [], row
            if split != side:
                _refuse_strange_side(name, split)
            side, index = split, index + 1 if split == side else 0
        parts.append(piece.slice(start))
    if side is not None:
        yield side, index, pa.concat_tables(parts)


def _refuse_strange_side(name: str, split: str) -> None:
    if not SIDE.fullmatch(split):
        raise InputError(f"{name}: split {split[:80]!r} is no name: use letters, digits and _, at most 64 of them")


def _link(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        return False
    return True
