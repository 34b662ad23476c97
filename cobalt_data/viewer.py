"""Which rows are too large for the viewer of the Hub, which shows a table up to about 2 MB a row.

Such rows are sound: `datasets` and cobalt read them like any other. They come from problems with large tests, which every
prompt of the problem repeats. Sizes are those of Arrow's buffers: no Python object is made of a value.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cobalt_data.dataset import Version

LARGEST_ROW = 2_000_000  # bytes
ROWS_AT_A_TIME = 64

Sizes = npt.NDArray[np.int64]


def rows_too_large(version: Version) -> dict[str, int]:
    """How many there are by table, of the tables that have some."""
    found = {name: _too_large(version, name) for name in version.manifest.tables if version.has(name)}
    return {name: rows for name, rows in found.items() if rows}


def _too_large(version: Version, name: str) -> int:
    pieces = version.pieces(name, rows=ROWS_AT_A_TIME)
    return sum(int(np.count_nonzero(_bytes_of_rows(piece) > LARGEST_ROW)) for piece in pieces)


def _bytes_of_rows(rows: pa.Table) -> Sizes:
    sizes: Sizes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        sizes += _bytes_of(column.combine_chunks())
    return sizes


def _bytes_of(values: pa.Array) -> Sizes:
    """What each of the values holds; nothing where it is null."""
    sizes: Sizes = np.full(len(values), 8)  # of a number, at most
    if pa.types.is_list(values.type):
        parents = pc.list_parent_indices(values).to_numpy()
        sizes = np.bincount(parents, _bytes_of(values.flatten()), minlength=len(values)).astype(np.int64)
    elif pa.types.is_struct(values.type):
        sizes = np.sum([_bytes_of(part) for part in values.flatten()], axis=0)
    elif pa.types.is_string(values.type):
        sizes = pc.fill_null(pc.binary_length(values), 0).to_numpy().astype(np.int64)
    return sizes
