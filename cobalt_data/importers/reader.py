"""Rows of JSON lines (plain or gzip) and Parquet files, each with its place.

The content decides how a file is read, not its name. A line is decoded on its own and may hold at most MAX_LINE_BYTES, so
memory stays bounded whatever the file holds. A file that cannot be read on (missing, truncated, damaged) is an InputError;
a row that cannot be decoded is a `BadRow` value in the place of its fields, so the caller decides what to do about it.
"""

from __future__ import annotations

import gzip
import json
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from cobalt_data.errors import InputError, one_line
from cobalt_data.importers.fields import BadRow, wrong_type

MAX_LINE_BYTES = 256 * 2**20
MAX_BLANK_LINES = 1_000_000  # gzip packs a thousand of them into a few bytes
ROWS_AT_ONCE = 16  # of a Parquet file, whose texts may be as long as a line
GZIP_MAGIC = b"\x1f\x8b"
PARQUET_MAGIC = b"PAR1"
OTHER_MAGICS = {
    b"PK\x03\x04": "a zip archive",
    b"(\xb5/\xfd": "zstd data",
    b"\xfd7zXZ": "xz data",
    b"BZh": "bzip2 data",
    b"SQLite": "a SQLite database",
    b"version https://git-lfs": "a Git LFS pointer, not the file itself",
}


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One row of a source; `place` is `FILE:LINE`, or `FILE:row N` for Parquet."""

    place: str
    fields: dict[str, Any] | BadRow
    side: str | None = None  # where the source says it
    table: str = "problems"


def read_rows(path: Path) -> Iterator[SourceRow]:
    """All rows of the file in their order; blank lines are skipped. Raises InputError as the module says."""
    refuse_special_files(path)
    if path.is_dir():
        raise InputError(f"{path} is a directory: name a file of JSON lines (may be gzip-compressed) or Parquet")
    try:
        with path.open("rb") as file:
            head = file.read(max(map(len, OTHER_MAGICS)))
            file.seek(0)
            _refuse_other_kinds(path, head)
            if head.startswith(PARQUET_MAGIC):
                yield from _parquet_rows(path, file)
            elif head.startswith(GZIP_MAGIC):
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield from _json_rows(path, unpacked)
            else:
                yield from _json_rows(path, file)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def refuse_special_files(path: Path) -> None:
    """Raises InputError for what is missing or is neither a file nor a directory: a pipe may never end, nor a device."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"{path} does not exist: check the path") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)[:200]!r} cannot be read ({one_line(error)}): check the path") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(f"{path} is no regular file but a pipe, socket or device: save what it gives to a file")


def _refuse_other_kinds(path: Path, head: bytes) -> None:
    if not head:
        raise InputError(f"{path} is empty: it must hold one JSON object per line")
    for magic, kind in OTHER_MAGICS.items():
        if head.startswith(magic):
            raise InputError(f"{path} is {kind}: give JSON lines (may be gzip-compressed) or Parquet")
    if path.suffix == ".gz" and not head.startswith(GZIP_MAGIC):
        raise InputError(f"{path} is not gzip data although its name ends in .gz: rename it or fetch it again")


def _json_rows(path: Path, file: BinaryIO | gzip.GzipFile) -> Iterator[SourceRow]:
    number = blank = 0
    while True:
        number += 1
        place = f"{path}:{number}"
        try:
            line = file.readline(MAX_LINE_BYTES + 1)
            too_long = len(line) > MAX_LINE_BYTES
            if too_long:
                _skip_line(file, line)
        except EOFError:
            raise InputError(
                f"{place}: the gzip data ends in the middle: the file is truncated, fetch it again"
            ) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{place}: the gzip data is damaged ({error}): fetch the file again") from None
        if too_long:
            message = f"the line is longer than {MAX_LINE_BYTES / 2**20:g} MiB: shorten the row or leave it out"
            yield SourceRow(place, BadRow("too long", message))
        elif not line:
            return
        elif line.strip():
            blank = 0
            yield SourceRow(place, _decode(line, first=number == 1))
        elif (blank := blank + 1) > MAX_BLANK_LINES:
            raise InputError(f"{place}: more than {MAX_BLANK_LINES} blank lines on end: the file is damaged")


def _skip_line(file: BinaryIO | gzip.GzipFile, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = file.readline(2**20)


def _decode(line: bytes, first: bool) -> dict[str, Any] | BadRow:
    try:
        value = json.loads(line.decode("utf-8-sig" if first else "utf-8"))
    except UnicodeDecodeError as error:
        bad_byte = f"byte 0x{line[error.start]:02x} at column {error.start + 1}"
        return BadRow("not UTF-8", f"the line is not UTF-8 ({bad_byte}): save the file as UTF-8")
    except json.JSONDecodeError as error:
        return BadRow(
            "not JSON", f"the line is no JSON ({error.msg} at column {error.colno}): write one object per line"
        )
    except (ValueError, RecursionError) as error:
        return BadRow("not JSON", f"the line cannot be decoded ({error}): write one object per line")
    if isinstance(value, list) and first:
        return BadRow("not an object", "the line is a JSON array: write one object per line (jq -c '.[]' does it)")
    if not isinstance(value, dict):
        return BadRow("not an object", str(wrong_type("whole line", value, "an object")).replace("field ", "", 1))
    return value


def _parquet_rows(path: Path, file: BinaryIO) -> Iterator[SourceRow]:
    number = 0
    try:
        for batch in pq.ParquetFile(file).iter_batches(batch_size=ROWS_AT_ONCE):
            for fields in batch.to_pylist():
                number += 1
                yield SourceRow(f"{path}:row {number}", fields)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:  # ValueError: text that is not UTF-8
        reason = one_line(error)
        raise InputError(f"{path}:row {number + 1}: the Parquet data is damaged ({reason}): fetch it again") from None
