"""A file of JSON lines, one or more per step, that a resumed run continues as if it had never stopped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cobalt_data.errors import CobaltError
from cobalt_data.staging import write_whole


class Journal:
    """Opens `path` and drops what a killed run wrote of steps after `last_step`, which will be done again.

    Of several processes with the same journal one `writes`, the others leave the file alone.
    """

    def __init__(self, path: Path, last_step: int, writes: bool = True) -> None:
        self.path, self._writes = path, writes
        if not writes:
            return
        try:
            write_whole(path, b"".join(lines_up_to(path, last_step)))
        except OSError as error:
            raise CobaltError(f"{path}: cannot be written ({error.strerror}); make room, then resume") from None

    def append(self, record: Mapping[str, Any]) -> None:
        """Adds a line; `record` has a `step`. Raises CobaltError if the disk refuses."""
        if not self._writes:
            return
        try:
            with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        except OSError as error:
            raise CobaltError(f"{self.path}: cannot be written ({error.strerror}); make room, then resume") from None


def lines_up_to(path: Path, last_step: int) -> list[bytes]:
    """The whole lines of steps up to `last_step`; none where there is no such file."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []  # bytes end at \n alone
    return [line for line in lines if _step(line) <= last_step]


def _step(line: bytes) -> float:
    """The step of a line; infinite for one that was cut off."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
