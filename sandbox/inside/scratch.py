"""The directories that programs may write to: wiped after every test, whatever was left there.

Wiping works on hostile trees: directories nested deeper than any path may be long, names that are no text, mode 000, symbolic
links (removed, never followed). A directory is emptied by moving its sub-directories to the top, so nothing recurses.

Most tests leave nothing, and finding that out must be cheap. On tmpfs a directory's size grows with every entry, so one that has
its old size, and still holds the very file that was placed there, holds nothing else. Elsewhere the entries are listed.
"""

from __future__ import annotations

import os

from sandbox.inside.wire import write_all


class Scratch:
    """`directories[0]` is the working directory of programs and holds the program itself as `main.py`."""

    def __init__(self, directories: list[str]) -> None:
        self.home, self._others = directories[0], directories[1:]
        self._sizes = {directory: os.stat(directory).st_size for directory in directories}
        self._grows = False
        self._source = b""
        self._main, self._placed = -1, (0, 0, 0, 0)

    def place(self, source: bytes) -> None:
        self._source = source
        self._write_source()

    def tidy(self) -> None:
        """Leaves `main.py`, as it was placed, and nothing else."""
        for directory in self._others:
            if not self._holds(directory, []):
                _empty(directory)
        if not self._is_tidy():
            os.makedirs(self.home, exist_ok=True)
            _empty(self.home)
            self._write_source()
            os.chdir(self.home)

    def file(self) -> int:
        """A descriptor of a new file that has no name."""
        return os.open(self.home, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def _holds(self, directory: str, names: list[str]) -> bool:
        """Whether it can be entered and has these entries; by size alone, which ones are not known."""
        seen = os.stat(directory)
        if seen.st_mode & 0o700 != 0o700:
            return False
        return seen.st_size == self._sizes[directory] if self._grows else os.listdir(directory) == names

    def _is_tidy(self) -> bool:
        try:
            in_place = _identity(os.lstat(f"{self.home}/main.py")) == self._placed
            if not (in_place and self._holds(self.home, ["main.py"])):
                return False
        except OSError:
            return False
        return os.pread(self._main, len(self._source) + 1, 0) == self._source

    def _write_source(self) -> None:
        """Into a directory that holds nothing else."""
        if self._main >= 0:
            os.close(self._main)
        self._main = os.open(
            f"{self.home}/main.py", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        write_all(self._main, self._source)
        self._placed = _identity(os.fstat(self._main))
        size = os.stat(self.home).st_size
        self._grows = self._grows or size > self._sizes[self.home]
        self._sizes[self.home] = size


def remove(directory: str) -> None:
    """Removes a directory and whatever is in it."""
    _empty(directory)
    os.rmdir(directory)


def _identity(seen: os.stat_result) -> tuple[int, int, int, int]:
    return (seen.st_dev, seen.st_ino, seen.st_mode, seen.st_nlink)


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
