"""The directories that programs may write to: wiped after every test, whatever was left there.

Wiping works on hostile trees: directories nested deeper than any path may be long, names that are no text, mode 000, symbolic
links (removed, never followed). A directory is emptied by moving its sub-directories to the top, so nothing recurses.
"""

from __future__ import annotations

import os


class Scratch:
    """`directories[0]` is the working directory of programs and holds the program itself as `main.py`."""

    def __init__(self, directories: list[str]) -> None:
        self.home, self._others = directories[0], directories[1:]
        self._source = b""

    def place(self, source: bytes) -> None:
        self._source = source
        self._write_source()

    def tidy(self) -> None:
        """Leaves `main.py`, as it was placed, and nothing else."""
        for directory in self._others:
            if os.listdir(directory):
                _empty(directory)
        if not self._is_tidy():
            os.makedirs(self.home, exist_ok=True)
            _empty(self.home)
            self._write_source()
            os.chdir(self.home)

    def file(self) -> int:
        """A descriptor of a new file that has no name."""
        return os.open(self.home, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def _is_tidy(self) -> bool:
        try:
            if os.stat(self.home).st_mode & 0o700 != 0o700 or os.listdir(self.home) != ["main.py"]:
                return False
            fd = os.open(f"{self.home}/main.py", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            return os.read(fd, len(self._source) + 1) == self._source
        except OSError:
            return False
        finally:
            os.close(fd)

    def _write_source(self) -> None:
        fd = os.open(f"{self.home}/main.py", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            view = memoryview(self._source)
            while view:
                view = view[os.write(fd, view) :]
        finally:
            os.close(fd)


def _empty(directory: str) -> None:
    top = os.fsencode(directory)
    if os.stat(top).st_mode & 0o700 != 0o700:
        os.chmod(top, 0o700)
    moved = 0
    while names := os.listdir(top):
        for name in names:
            path = top + b"/" + name
            if not _is_directory(path):
                os.unlink(path)
                continue
            os.chmod(path, 0o700)
            for inner in os.listdir(path):
                inner_path = path + b"/" + inner
                if _is_directory(inner_path):
                    os.chmod(inner_path, 0o700)
                    moved += 1
                    os.rename(inner_path, _unused_name(top, moved))
                else:
                    os.unlink(inner_path)
            os.rmdir(path)


def _unused_name(top: bytes, number: int) -> bytes:
    while os.path.lexists(path := top + b"/.moved-%d-%d" % (number, os.getpid())):
        number += 1_000_003
    return path


def _is_directory(path: bytes) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)
