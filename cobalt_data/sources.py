"""What a file or folder that rows were imported from holds, as one hash: whether it is still what it was."""

from __future__ import annotations

import hashlib
from pathlib import Path

from cobalt_data.ids import digest


def source_digest(source: str | Path) -> str | None:
    """SHA-256 of a file, or of the names and contents of all files of a folder; None where `source` is neither."""
    path = Path(source)
    if path.is_file():
        return file_sha256(path)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return digest([(file.relative_to(path).as_posix(), file_sha256(file)) for file in files])
    return None


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
