"""A version's manifest: what it holds, what made it, from which parents, and where every row went.

`version_id` covers the content, the operation with its canonical arguments and seed, and the parents. Code version, time and
whatever else is `recorded` say how it came about on this occasion and are not part of its identity. `checksum` covers those too:
it shows damage, while only the id withstands whoever means harm.

A manifest may come from a stranger. So every field is checked for its type and form, text that a terminal would obey is
refused, and a shard cannot lie anywhere but in the folder of its table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cobalt_data.errors import DamagedManifest, InputError
from cobalt_data.ids import VERSION_ID_DIGITS, digest
from cobalt_data.schemas import TABLES

FORMAT = 1
MANIFEST_NAME = "manifest.json"
LARGEST_MANIFEST = 64 << 20  # bytes
LARGEST_NUMBER = 1 << 63

VERSION_ID = re.compile(rf"[0-9a-f]{{{VERSION_ID_DIGITS}}}")
SIDE = re.compile(r"\w{1,64}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_WORDS = re.compile(r"[\w .:+-]{1,100}", re.ASCII)

Content = Mapping[
    str, Sequence[tuple[str, int, str]]
]  # of each table's shards: side, rows and the digest of their values


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of one table that an operation read, wrote and dropped, the last by reason."""

    rows_in: int
    rows_out: int
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_number("rows_in", self.rows_in)
        _check_number("rows_out", self.rows_out)
        for reason, rows in _checked_mapping("dropped", self.dropped).items():
            if not reason.isprintable():
                raise InputError(f"dropped has the reason {reason[:80]!r}, which cannot be printed")
            _check_number(f"dropped[{reason[:80]!r}]", rows)


@dataclass(frozen=True, slots=True)
class Shard:
    """One Parquet file of one table and one split. `content` is the digest of its values, `sha256` that of its bytes."""

    path: str
    split: str
    rows: int
    bytes: int
    sha256: str
    content: str

    def __post_init__(self) -> None:
        _check_text("split", self.split, SIDE)
        _check_text("path", self.path, re.compile(rf"({'|'.join(TABLES)})/{self.split}-[0-9]{{5,9}}\.parquet"))
        _check_text("sha256", self.sha256, _SHA256)
        _check_text("content", self.content, _SHA256)
        _check_number("rows", self.rows)
        _check_number("bytes", self.bytes)

    @property
    def table(self) -> str:
        return self.path.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Manifest:
    id: str
    parents: tuple[str, ...]
    operation: str
    arguments: Mapping[str, Any]
    seed: int | None
    counts: Mapping[str, Counts]
    tables: Mapping[str, tuple[Shard, ...]]
    code_version: str
    created_at: str
    recorded: Mapping[str, Any]
    format: int = FORMAT
    checksum: str | None = None  # of all the rest; None before it is written, or where an older cobalt wrote it

    def __post_init__(self) -> None:
        _check_text("id", self.id, VERSION_ID)
        for parent in self.parents:
            _check_text("parents", parent, VERSION_ID)
        _check_text("operation", self.operation, _WORDS)
        _check_text("code_version", self.code_version, _WORDS)
        _check_text("created_at", self.created_at, _WORDS)
        if self.checksum is not None:
            _check_text("checksum", self.checksum, _SHA256)
        _checked_mapping("arguments", self.arguments)
        _checked_mapping("recorded", self.recorded)
        if self.seed is not None:
            check_seed("seed", self.seed)
        for name in self.counts:
            _check_text("counts", name, _WORDS)
        for name, shards in self.tables.items():
            paths = {shard.path for shard in shards}
            if name not in TABLES or not all(path.startswith(f"{name}/") for path in paths):
                raise InputError(f"table {name[:80]!r} is unknown, or has shards in another table's folder")
            if len(paths) < len(shards):
                raise InputError(f"table {name!r} names a shard twice")

    @property
    def expected_id(self) -> str:
        """What `id` is unless somebody tampered with content, operation, arguments, seed or parents."""
        return version_id(self.content, self.operation, self.arguments, self.seed, self.parents)

    @property
    def expected_checksum(self) -> str:
        fields = json.loads(json.dumps(asdict(self)))  # as it is read back: a number that is a key becomes text
        del fields["checksum"]
        return digest("manifest", fields)

    @property
    def content(self) -> Content:
        return content_of(self.tables)

    @property
    def shards(self) -> tuple[Shard, ...]:
        """Of all tables."""
        return tuple(shard for shards in self.tables.values() for shard in shards)

    def rows(self, table: str, split: str | None = None) -> int:
        return sum(shard.rows for shard in self.tables.get(table, ()) if split in (None, shard.split))

    def splits(self, table: str) -> tuple[str, ...]:
        return tuple(sorted({shard.split for shard in self.tables.get(table, ())}))

    def save(self, directory: Path) -> None:
        fields = {**asdict(self), "checksum": self.expected_checksum}
        text = json.dumps(fields, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        # The escape of a lone surrogate, which a path that is no UTF-8 has, is JSON's as well.
        (directory / MANIFEST_NAME).write_bytes(text.encode("utf-8", "backslashreplace"))

    @classmethod
    def load(cls, directory: Path) -> Manifest:
        """Raises InputError where the file is missing, damaged or of a newer format."""
        path = directory / MANIFEST_NAME
        try:
            if path.stat().st_size > LARGEST_MANIFEST:
                raise InputError(f"{path} is larger than any manifest: restore it, or go back to another version")
            return cls.parse(path.read_bytes(), str(path))
        except FileNotFoundError:
            raise InputError(f"{path} is missing: this is not a version of a cobalt dataset") from None

    @classmethod
    def parse(cls, text: bytes, where: str) -> Manifest:
        """Raises InputError, beginning with `where`, where the text is not a manifest of this format."""
        try:
            fields = json.loads(text, parse_constant=_refuse_constant)
            form = fields["format"]
            if form == FORMAT:
                fields["parents"] = tuple(fields["parents"])
                fields["counts"] = {name: Counts(**counts) for name, counts in fields["counts"].items()}
                fields["tables"] = {
                    name: tuple(Shard(**shard) for shard in shards) for name, shards in fields["tables"].items()
                }
                return cls(**fields)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InputError) as error:
            raise DamagedManifest(f"{where} is damaged ({error}): restore it, or go back to another version") from None
        raise InputError(f"{where} has format {form!r}; this cobalt reads {FORMAT}: install a newer one")


def content_of(tables: Mapping[str, Sequence[Shard]]) -> Content:
    return {name: [(shard.split, shard.rows, shard.content) for shard in shards] for name, shards in tables.items()}


def version_id(
    content: Content,
    operation: str,
    arguments: Mapping[str, Any],
    seed: int | None,
    parents: Sequence[str],
) -> str:
    return digest("version", content, operation, arguments, seed, list(parents))[:VERSION_ID_DIGITS]


def check_seed(name: str, value: Any) -> None:
    """Raises InputError where a manifest could not hold it; asked before the work, too."""
    if type(value) is not int or abs(value) > LARGEST_NUMBER:
        raise InputError(f"{name} is {repr(value)[:80]}: give a whole number of at most 63 bits")


def _check_text(name: str, value: Any, form: re.Pattern[str]) -> None:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise InputError(f"{name} is {repr(value)[:80]}, which does not have the form {form.pattern}")


def _check_number(name: str, value: Any) -> None:
    if type(value) is not int or not 0 <= value < LARGEST_NUMBER:
        raise InputError(f"{name} is {repr(value)[:80]}, which is no count")


def _checked_mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InputError(f"{name} is {repr(value)[:80]}, which is no mapping of names")
    return value


def _refuse_constant(text: str) -> None:
    raise ValueError(f"it holds {text}")
