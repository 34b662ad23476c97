"""The files of a problem package, in a directory or a zip archive, with nothing taken from outside of it.

A name that leads out of the package, a symbolic link in an archive, and in a directory a link to a folder, or to a file outside,
are refused; so is a file that is, or unpacks to, more than `MAX_FILE_BYTES`, and an archive of more than `MAX_ARCHIVE_BYTES`
or `MAX_FILES`. Sizes are measured while reading: what an archive says of itself is not believed. Nothing is passed over.
"""

from __future__ import annotations

import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from cobalt_data.importers.fields import BadRow

MAX_FILES = 20_000
MAX_FILE_BYTES = 256 * 2**20
MAX_ARCHIVE_BYTES = 2**30


class Files(Protocol):
    """`names`, sorted, are relative to the package and use slashes."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def read(self, name: str) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Folder:
    root: Path
    names: tuple[str, ...]

    def read(self, name: str) -> bytes:
        path = self.root / name
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise BadRow("outside", f"{name} is a link that leads out of the package: refused")
        if not path.is_file():
            raise BadRow("no file", f"{name} is no regular file: remove it")
        with path.open("rb") as file:
            return _bounded(file.read(MAX_FILE_BYTES + 1), name)


@dataclass(frozen=True, slots=True)
class Archive:
    archive: zipfile.ZipFile
    prefix: str  # of the only folder at the top, where there is one
    names: tuple[str, ...]

    def read(self, name: str) -> bytes:
        try:
            with self.archive.open(self.prefix + name) as file:
                return _bounded(file.read(MAX_FILE_BYTES + 1), name)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, OSError) as error:
            raise BadRow("damaged", f"{name} cannot be unpacked ({error}): pack the archive again") from None


@contextmanager
def open_files(path: Path) -> Iterator[Files]:
    """The package at `path`. Raises BadRow where it cannot be trusted or read."""
    if path.is_dir():
        yield Folder(path, _names_in_folder(path))
        return
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise BadRow("damaged", f"is no zip archive that can be read ({error}): pack it again") from None
    with archive:
        names = _names_in_archive(archive)
        tops = {name.partition("/")[0] for name in names}
        prefix = f"{tops.pop()}/" if len(tops) == 1 and all("/" in name for name in names) else ""
        yield Archive(archive, prefix, tuple(name.removeprefix(prefix) for name in names))


def refuse_folder_link(path: Path, root: Path) -> None:
    """Raises BadRow where a folder in `root` is a link, which a walk would pass over."""
    if path.is_symlink():
        raise BadRow("link", f"{path.relative_to(root)} is a link to a folder: put the folder itself there")


def _names_in_folder(root: Path) -> tuple[str, ...]:
    names = []
    for folder, inner, files in os.walk(root, onerror=_refuse_unreadable):
        for name in inner:
            refuse_folder_link(Path(folder) / name, root)
        names += [(Path(folder) / file).relative_to(root).as_posix() for file in files]
        if len(names) > MAX_FILES:
            raise BadRow("too many files", f"has more than {MAX_FILES} files: a problem package is smaller")
    return tuple(sorted(names))


def _names_in_archive(archive: zipfile.ZipFile) -> tuple[str, ...]:
    entries = archive.infolist()
    if len(entries) > MAX_FILES or sum(entry.file_size for entry in entries) > MAX_ARCHIVE_BYTES:
        bounds = f"{MAX_FILES} files or {MAX_ARCHIVE_BYTES / 2**30:g} GiB"
        raise BadRow("too many files", f"unpacks to more than {bounds}: a problem package is smaller")
    names = []
    for entry in entries:
        name = entry.filename
        parts = PurePosixPath(name).parts
        if name.startswith("/") or "\\" in name or ".." in parts or ":" in "".join(parts[:1]) or not name.isprintable():
            raise BadRow("outside", f"names the file {name[:80]!r}, which leads out of it: refused")
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise BadRow("link", f"{name[:80]} is a symbolic link: put the file itself into the archive")
        if not name.endswith("/"):
            if not parts:
                raise BadRow("no name", f"holds a file named {name!r}, which is no name: pack it again")
            names.append(name)
    if len(set(names)) < len(names):
        raise BadRow("repeated file", "names a file twice: pack it again")
    return tuple(sorted(names))


def _refuse_unreadable(error: OSError) -> None:
    raise BadRow(
        "unreadable", f"{error.filename} cannot be read ({error.strerror}): give yourself the right to"
    ) from None


def _bounded(content: bytes, name: str) -> bytes:
    if len(content) > MAX_FILE_BYTES:
        raise BadRow("too long", f"{name} holds more than {MAX_FILE_BYTES / 2**20:g} MiB: leave it out")
    return content
