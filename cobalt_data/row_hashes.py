"""A hash of every row beside its shard, so that versions of a million rows can be compared without reading their values.

    versions/ID/hashes/TABLE/SPLIT-00000.parquet      id, and 64 bits of the MD5 of the row as JSON

They follow from the shards and are neither identity nor published: where they are missing (small shards, a version that was
pulled) the values are read instead. MD5 guards against nothing here; `cobalt data verify` compares them with the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from glob import escape
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from cobalt_data.duck import open_duckdb
from cobalt_data.errors import one_line
from cobalt_data.schemas import ID_COLUMNS

FOLDER = "hashes"
FEWEST_ROWS = 128  # of a shard that gets a file of hashes: fewer are read in no time


def hashes_of(directory: Path, shard: str) -> Path:
    """Where the hashes of a shard are, if it has some."""
    return directory / FOLDER / shard


def write_hashes(directory: Path, shard: str) -> None:
    """Hashes the rows of a shard, `TABLE/...`, that lies in `directory`."""
    target = hashes_of(directory, shard)
    target.parent.mkdir(parents=True, exist_ok=True)
    table, _, _ = shard.partition("/")
    with open_duckdb() as database:
        rows = database.sql(_query(table), params={"files": [escape(str(directory / shard))]}).to_arrow_table()
    with pa.OSFile(str(target), "wb") as file:
        pq.write_table(rows, file)


def wrong_with_hashes(directory: Path, shard: str) -> str | None:
    """What is wrong with the hashes beside a shard that is whole, if it has some."""
    beside = hashes_of(directory, shard)
    if not beside.exists():
        return None
    files = {"hashes": [escape(str(beside))], "files": [escape(str(directory / shard))]}
    table, _, _ = shard.partition("/")
    try:
        with open_duckdb() as database:
            differing = database.execute(_DIFFERENCE.format(rows=_query(table)), files).fetchone()
    except duckdb.Error as error:
        return f"cannot be read ({one_line(error)}); remove it"
    return "does not hold the hashes of the shard's rows; remove it" if differing else None


def read_hashes(
    database: duckdb.DuckDBPyConnection, table: str, name: str, directory: Path, shards: Sequence[str]
) -> None:
    """Makes a table of (id, hash) of the rows of these shards."""
    database.execute(f"CREATE TABLE {table} (id VARCHAR, hash UBIGINT)")
    for query, files in _sources(name, directory, shards):
        if files:
            database.execute(f"INSERT INTO {table} {query}", {"files": files})


def _sources(name: str, directory: Path, shards: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    hashed = [shard for shard in shards if hashes_of(directory, shard).is_file()]
    yield "SELECT id, hash FROM read_parquet($files)", [escape(str(hashes_of(directory, shard))) for shard in hashed]
    yield _query(name), [escape(str(directory / shard)) for shard in shards if shard not in hashed]


_DIFFERENCE = """
    WITH beside AS (SELECT id, hash FROM read_parquet($hashes)), shard AS ({rows})
    (FROM beside EXCEPT ALL FROM shard) UNION ALL (FROM shard EXCEPT ALL FROM beside) LIMIT 1
"""


def _query(name: str) -> str:
    as_json = "CAST(to_json(row) AS VARCHAR)"
    return f"""
        SELECT {ID_COLUMNS[name]} AS id, CAST('0x' || left(md5({as_json}), 16) AS UBIGINT) AS hash
        FROM read_parquet($files) AS row
    """
