"""A version's manifest: what it holds, what made it, from which parents, and where every row went.

`version_id` covers the content, the operation with its canonical arguments and seed, and the parents. Code version, time and
whatever else is `recorded` say how it came about on this occasion and are not part of its identity.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cobalt_data.errors import InputError
from cobalt_data.ids import VERSION_ID_DIGITS, digest

FORMAT = 1
MANIFEST_NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of one table that an operation read, wrote and dropped, the last by reason."""

    rows_in: int
    rows_out: int
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shard:
    """One Parquet file of one table and one split. `content` is the digest of its values, `sha256` that of its bytes."""

    path: str
    split: str
    rows: int
    bytes: int
    sha256: str
    content: str


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

    def rows(self, table: str, split: str | None = None) -> int:
        return sum(shard.rows for shard in self.tables.get(table, ()) if split in (None, shard.split))

    def splits(self, table: str) -> tuple[str, ...]:
        return tuple(sorted({shard.split for shard in self.tables.get(table, ())}))

    def save(self, directory: Path) -> None:
        text = json.dumps(asdict(self), indent=1, sort_keys=True, ensure_ascii=False)
        (directory / MANIFEST_NAME).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, directory: Path) -> Manifest:
        """Raises InputError where the file is missing, damaged or of a newer format."""
        path = directory / MANIFEST_NAME
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
            if fields["format"] != FORMAT:
                raise InputError(
                    f"{path} has format {fields['format']!r}; this cobalt reads {FORMAT}: install a newer one"
                )
            fields["parents"] = tuple(fields["parents"])
            fields["counts"] = {name: Counts(**counts) for name, counts in fields["counts"].items()}
            fields["tables"] = {
                name: tuple(Shard(**shard) for shard in shards) for name, shards in fields["tables"].items()
            }
            return cls(**fields)
        except FileNotFoundError:
            raise InputError(f"{path} is missing: this is not a version of a cobalt dataset") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path} is damaged ({error}): restore it, or go back to another version") from None


def version_id(
    tables: Mapping[str, Sequence[Shard]],
    operation: str,
    arguments: Mapping[str, Any],
    seed: int | None,
    parents: Sequence[str],
) -> str:
    content = {name: [(shard.split, shard.rows, shard.content) for shard in shards] for name, shards in tables.items()}
    return digest("version", content, operation, arguments, seed, list(parents))[:VERSION_ID_DIGITS]
