"""What every table inherits from the rows it was made from.

A trajectory lives as long as its problem, a prompt as long as its problem and its trajectory; and every row stands on the
side that its problem stands on. `commit` applies this to each new version, table after table and a piece at a time, so no
verb can break it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa

KEY_COLUMNS = {  # what inheriting looks at
    "problems": ("problem_id", "split"),
    "trajectories": ("trajectory_id", "problem_id", "split"),
    "prompts": ("prompt_id", "problem_id", "trajectory_id", "split"),
}


@dataclass(slots=True)
class Family:
    """What the tables that are settled already hold; None for a table that the version does not have."""

    sides: dict[str, str] | None = None  # of problems, by id
    trajectories: set[str] | None = None

    def learn(self, name: str, settled: pa.Table) -> None:
        """Takes note of the whole of a table, of which only `KEY_COLUMNS` matter."""
        if name == "problems":
            self.sides = dict(zip(settled["problem_id"].to_pylist(), settled["split"].to_pylist(), strict=True))
        elif name == "trajectories":
            self.trajectories = set(settled["trajectory_id"].to_pylist())

    def settle(self, piece: pa.Table) -> tuple[pa.Table, Counter[str]]:
        """The piece without orphans, each row on its problem's side; and how many rows are left out, by reason."""
        keep, dropped = self._with_parents(piece)
        if dropped:
            piece = piece.filter(pa.array(keep))
        if self.sides is None:
            return piece, dropped
        sides = pa.array([self.sides[problem] for problem in piece["problem_id"].to_pylist()], pa.string())
        column = piece.schema.get_field_index("split")
        return piece.set_column(column, piece.schema.field("split"), sides), dropped

    def _with_parents(self, piece: pa.Table) -> tuple[list[bool], Counter[str]]:
        dropped: Counter[str] = Counter()
        keep = [True] * piece.num_rows
        for key, known in (("problem_id", self.sides), ("trajectory_id", self.trajectories)):
            if known is not None:
                for row, parent in enumerate(piece[key].to_pylist()):
                    if keep[row] and parent is not None and parent not in known:
                        keep[row] = False
                        dropped[f"its {key.removesuffix('_id')} was removed"] += 1
        return keep, dropped
