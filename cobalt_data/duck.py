"""A DuckDB that works out of core and gives the same answer on every machine.

An in-memory database spills to disk only if it is told where to, and keeps the order of rows at a price that dedup and
joins need not pay; so whoever needs an order says ORDER BY. Large texts never take part in a join or a grouping: hash them
first, join the hashes, then pick the rows (a grouping with large payloads runs out of memory even where its keys are small).
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator

import duckdb

from cobalt_data.errors import CobaltError

MEMORY_LIMIT = "2GB"
HELD_OUT_FIRST = "CASE split WHEN 'train' THEN 2 WHEN 'unsplit' THEN 2 WHEN 'validation' THEN 1 ELSE 0 END"


@contextlib.contextmanager
def open_duckdb() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection whose spill directory lives as long as the block. Raises CobaltError where neither memory nor that suffices."""
    with tempfile.TemporaryDirectory(prefix="cobalt-duckdb-") as spill:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": MEMORY_LIMIT,
            "preserve_insertion_order": False,
            "temp_directory": spill,
            "threads": os.cpu_count() or 1,
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            connection.execute("SET enable_progress_bar = false")  # it would be printed among the results of a command
            try:
                yield connection
            except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
                if isinstance(error, duckdb.IOException) and os.strerror(errno.ENOSPC) not in str(error):
                    raise
                raise CobaltError(
                    f"{tempfile.gettempdir()}: no room for what does not fit into {MEMORY_LIMIT} of memory; nothing was changed, "
                    "make room there, or name another place in TMPDIR"
                ) from None
