"""Hashes of table contents that do not depend on the Parquet writer.

Parquet bytes change with the library's version and settings, so a version's identity rests on the values instead: every
column is hashed as its lengths, its validity and its raw little-endian values. The file's own sha256 is recorded beside it
and guards against damage, not identity.
"""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def content_digest(table: pa.Table) -> str:
    """SHA-256 of the column names, types and values of `table`, in their order; chunking does not matter."""
    state = hashlib.sha256()
    for name in table.column_names:
        column = table[name]
        state.update(f"{name}:{column.type}:{len(column)};".encode())
        chunks = column.chunks
        _hash_array(state, pa.concat_arrays(chunks) if chunks else pa.array([], column.type))
    return state.hexdigest()


def _hash_array(state: Any, array: pa.Array) -> None:
    state.update(memoryview(array.is_valid().cast(pa.uint8()).to_numpy(zero_copy_only=False)))
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        state.update(memoryview(pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False)))
        state.update(_string_bytes(array))
    elif pa.types.is_list(array.type):
        state.update(memoryview(pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)))
        _hash_array(state, array.flatten())
    elif pa.types.is_struct(array.type):
        for index in range(array.type.num_fields):
            _hash_array(state, pc.struct_field(array, index))
    elif pa.types.is_boolean(array.type):
        state.update(memoryview(pc.fill_null(array, False).cast(pa.uint8()).to_numpy(zero_copy_only=False)))
    else:
        state.update(memoryview(pc.fill_null(array, 0).to_numpy(zero_copy_only=False)))


def _string_bytes(array: pa.Array) -> memoryview:
    """The characters of a string array back to back: nulls hold none."""
    dense = pc.fill_null(array, "") if array.null_count else array
    _, offsets, data = dense.buffers()
    if data is None or len(dense) == 0:
        return memoryview(b"")
    bounds = memoryview(offsets).cast("i")
    return memoryview(data)[bounds[dense.offset] : bounds[dense.offset + len(dense)]]
