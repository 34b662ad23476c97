"""Which shared libraries a program file needs, read from its ELF headers; no program is run for it.

`needed_files` follows the dynamic sections the way the dynamic linker does, as far as an interpreter needs it: run paths with
$ORIGIN, then the linker's cache directories. Libraries that are not found are left out; importing what needs them then fails.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29


def needed_files(files: Iterable[Path]) -> list[Path]:
    """The shared libraries and the dynamic linker that `files` need, directly or not, by the names they are looked up by."""
    found: dict[Path, None] = {}
    pending: list[tuple[Path, tuple[Path, ...]]] = [(path, ()) for path in files]
    seen: set[Path] = set()
    while pending:
        path, inherited = pending.pop()
        if (real := path.resolve()) in seen:
            continue
        seen.add(real)
        interpreter, names, run_path = _dynamic(real)
        directories = (*(Path(part.replace("$ORIGIN", str(real.parent))) for part in run_path), *inherited)
        if interpreter and interpreter.exists():
            found[interpreter] = None
        for name in names:
            if library := _find(name, directories):
                found[library] = None
                pending.append((library, directories))
    return list(found)


def _find(name: str, directories: tuple[Path, ...]) -> Path | None:
    return next(
        (path for directory in (*directories, *_system_directories()) if (path := directory / name).exists()), None
    )


@cache
def _system_directories() -> tuple[Path, ...]:
    """The directories of /etc/ld.so.conf and the linker's own, in the order in which they are searched."""
    lines = [
        line.strip()
        for path in (Path("/etc/ld.so.conf"), *sorted(Path("/etc/ld.so.conf.d").glob("*.conf")))
        if path.exists()
        for line in path.read_text().splitlines()
    ]
    configured = [Path(line) for line in lines if line.startswith("/")]
    triplets = [path for base in ("/lib", "/usr/lib") for path in sorted(Path(base).glob("*-linux-gnu"))]
    return (*configured, *triplets, *map(Path, ("/lib64", "/usr/lib64", "/lib", "/usr/lib")))


def _dynamic(path: Path) -> tuple[Path | None, list[str], list[str]]:
    """The dynamic linker, the needed library names and the run path of a 64-bit ELF file; nothing for another file."""
    with path.open("rb") as file:
        if file.read(5) != b"\x7fELF\x02":
            return None, [], []
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _headers(data)


def _headers(data: mmap.mmap) -> tuple[Path | None, list[str], list[str]]:
    (table,) = struct.unpack_from("<Q", data, 32)
    entry_size, count = struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQQQ", data, table + index * entry_size) for index in range(count)]
    loaded = [header for header in headers if header[0] == _PT_LOAD]
    interpreter, names, run_path = None, [], []
    for kind, _, offset, _, _, size, _, _ in headers:
        if kind == _PT_INTERP:
            interpreter = Path(data[offset : offset + size].rstrip(b"\0").decode())
        elif kind == _PT_DYNAMIC:
            entries = [struct.unpack_from("<qQ", data, at) for at in range(offset, offset + size, 16)]
            address = dict(entries).get(_DT_STRTAB, 0)
            strings = next((h[2] + address - h[3] for h in loaded if h[3] <= address < h[3] + h[5]), 0)
            names = [_text(data, strings + value) for tag, value in entries if tag == _DT_NEEDED]
            paths = [_text(data, strings + value) for tag, value in entries if tag in (_DT_RPATH, _DT_RUNPATH)]
            run_path = [part for text in paths for part in text.split(":") if part]
    return interpreter, names, run_path


def _text(data: mmap.mmap, at: int) -> str:
    return data[at : data.find(b"\0", at)].decode()
