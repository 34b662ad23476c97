"""The report of a verb: a JSON line for each thing that it found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cobalt_data.errors import InputError


def write_report(path: str | Path, found: Iterable[Mapping[str, Any]]) -> None:
    """Raises InputError where the file cannot be written."""
    try:
        with Path(path).open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in found)
    except OSError as error:
        raise InputError(
            f"{path}: cannot write the report there ({error.strerror}): name another file with --report"
        ) from None
