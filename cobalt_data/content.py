"""Hashes of table contents that do not depend on the Parquet writer.

Parquet bytes change with the library's version and settings, so a version's identity rests on the values instead: every
column is hashed as its lengths, its validity and its raw little-endian values. The file's own sha256 is recorded beside it
and guards against damage, not identity.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def content_digest(table: pa.Table) -> str:
    """SHA-256 of the column names, types and values of `table`, in their order; chunking does not matter."""
    state = hashlib.sha256()
    for name in table.column_names:
        column = table[name]
        state.update(f"{name}:{column.type}:{len(column)};".encode())
        _hash_chunks(state, column.type, column.chunks)
    return state.hexdigest()


def _hash_chunks(state: Any, kind: pa.DataType, chunks: Sequence[pa.Array]) -> None:
    """As if they were one array, which would be another copy of them, and perhaps too large for 32-bit offsets."""
    for chunk in chunks:
        state.update(_numbers(chunk.is_valid().cast(pa.uint8())))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        for chunk in chunks:
            state.update(_numbers(pc.fill_null(pc.binary_length(chunk), 0)))
        for chunk in chunks:
            state.update(_string_bytes(chunk))
    elif pa.types.is_list(kind):
        for chunk in chunks:
            state.update(_numbers(pc.fill_null(pc.list_value_length(chunk), 0)))
        _hash_chunks(state, kind.value_type, [chunk.flatten() for chunk in chunks])
    elif pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            _hash_chunks(state, kind.field(index).type, [pc.struct_field(chunk, index) for chunk in chunks])
    elif pa.types.is_boolean(kind):
        for chunk in chunks:
            state.update(_numbers(pc.fill_null(chunk, False).cast(pa.uint8())))
    else:
        for chunk in chunks:
            state.update(_numbers(pc.fill_null(chunk, 0)))


def _numbers(array: pa.Array) -> memoryview:
    return memoryview(array.to_numpy(zero_copy_only=False))


def _string_bytes(array: pa.Array) -> memoryview:
    """The characters of a string array back to back: nulls hold none."""
    dense = pc.fill_null(array, "") if array.null_count else array
    _, offsets, data = dense.buffers()
    if data is None or len(dense) == 0:
        return memoryview(b"")
    bounds = memoryview(offsets).cast("i")
    return memoryview(data)[bounds[dense.offset] : bounds[dense.offset + len(dense)]]
