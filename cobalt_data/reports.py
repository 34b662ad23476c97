"""The report of a verb: a JSON line for each thing that it found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cobalt_data.errors import InputError
from cobalt_data.references import refuse_unwritable_file
from cobalt_data.staging import written_whole


def write_report(path: str | Path, found: Iterable[Mapping[str, Any]]) -> None:
    """All of it or nothing. Raises InputError where the file cannot be written."""
    refuse_unwritable_file(path, "--report")
    try:
        with written_whole(Path(path)) as file:
            file.writelines(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in found)
    except OSError as error:
        raise InputError(
            f"{path}: cannot write the report there ({error.strerror}): name another file with --report"
        ) from None
