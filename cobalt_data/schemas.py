"""The Arrow schemas of the three tables: the same for every shard, so that any reader can load a version as it is.

Nested dictionaries break readers (keys that vary between rows are filled with nulls), hence only scalars, chats as
`list<struct<role, content>>` with exactly these keys, and JSON text for the rest. `cobalt_data.rows` holds the typed form.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

CHAT = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


PROBLEMS = pa.schema(
    [
        _required("problem_id", pa.string()),
        _required("source", pa.string()),
        _required("title", pa.string()),
        pa.field("difficulty", pa.string()),
        _required("statement", pa.string()),
        _required("starter_code", pa.string()),
        _required("tests", pa.string()),
        _required("judge", pa.string()),
        _required("solutions", pa.string()),
        _required("metadata", pa.string()),
        _required("split", pa.string()),
    ]
)

TRAJECTORIES = pa.schema(
    [
        _required("trajectory_id", pa.string()),
        _required("problem_id", pa.string()),
        _required("sample_index", pa.int32()),
        _required("model", pa.string()),
        _required("model_revision", pa.string()),
        _required("engine", pa.string()),
        _required("sampling", pa.string()),
        _required("seed", pa.int64()),
        pa.field("perturbation", pa.string()),
        _required("messages", CHAT),
        _required("turns", pa.string()),
        _required("num_turns", pa.int32()),
        _required("best_pass_rate", pa.float64()),
        _required("final_pass_rate", pa.float64()),
        _required("solved", pa.bool_()),
        _required("split", pa.string()),
    ]
)

PROMPTS = pa.schema(
    [
        _required("prompt_id", pa.string()),
        pa.field("trajectory_id", pa.string()),  # null at turn 0: the prompt belongs to the problem alone
        _required("problem_id", pa.string()),
        _required("turn", pa.int32()),
        _required("prompt", CHAT),
        _required("tests", pa.string()),
        _required("judge", pa.string()),
        _required("prev_best_pass_rate", pa.float64()),
        pa.field("perturbation", pa.string()),
        _required("prompt_tokens", pa.int32()),
        _required("split", pa.string()),
    ]
)

TABLES = {"problems": PROBLEMS, "trajectories": TRAJECTORIES, "prompts": PROMPTS}
ID_COLUMNS = {"problems": "problem_id", "trajectories": "trajectory_id", "prompts": "prompt_id"}


def schema_of(table: str, columns: Sequence[str] | None = None) -> pa.Schema:
    """The schema of a table, or of some of its columns in the order given."""
    return TABLES[table] if columns is None else pa.schema([TABLES[table].field(column) for column in columns])
