"""What every table inherits from the rows it was made from.

A trajectory lives as long as its problem, a prompt as long as its problem and its trajectory; and every row stands on the
side that its problem stands on. `commit` applies this to each new version, so no verb can break it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

Dropped = Mapping[str, int]


def inherit(tables: Mapping[str, pa.Table]) -> tuple[dict[str, pa.Table], dict[str, Dropped]]:
    """Returns the tables with orphans removed and sides inherited, and what was dropped, by table and reason.

    A table that needs no change is returned as the same object.
    """
    settled = dict(tables)
    dropped: dict[str, Dropped] = {}
    for name in ("trajectories", "prompts"):
        if name not in settled:
            continue
        table, reasons = settled[name], {}
        for key, parent in (("problem_id", "problems"), ("trajectory_id", "trajectories")):
            if parent in settled and parent != name:
                kept = _with_parent(table, key, settled[parent])
                if kept.num_rows < table.num_rows:
                    reasons[f"its {key.removesuffix('_id')} was removed"] = table.num_rows - kept.num_rows
                    table = kept
        settled[name] = _on_its_problems_side(table, settled["problems"]) if "problems" in settled else table
        if reasons:
            dropped[name] = reasons
    return settled, dropped


def _with_parent(table: pa.Table, key: str, parents: pa.Table) -> pa.Table:
    known = pc.or_(pc.is_null(table[key]), pc.is_in(table[key], value_set=parents[key].combine_chunks()))
    return table if pc.all(known).as_py() is not False else table.filter(known)


def _on_its_problems_side(table: pa.Table, problems: pa.Table) -> pa.Table:
    place = pc.index_in(table["problem_id"], value_set=problems["problem_id"].combine_chunks())
    side = problems["split"].combine_chunks().take(place.combine_chunks())
    if side.equals(table["split"].combine_chunks()):
        return table
    return table.set_column(table.schema.get_field_index("split"), table.schema.field("split"), side)
