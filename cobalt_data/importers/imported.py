"""What an import found, and the version to be made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cobalt_data.commit import Change
from cobalt_data.dataset import table_from_rows
from cobalt_data.errors import InputError
from cobalt_data.manifest import Counts
from cobalt_data.rows import Problem, Prompt, Trajectory
from cobalt_data.sources import source_digest

NO_DIFFICULTY = "none given"


@dataclass(frozen=True, slots=True)
class Imported:
    """The rows by table, sorted by id.

    `read` counts the source's rows by table and `left_out` those of them that came to nothing, by table and reason;
    `bad_rows` says each. A row of the reference code counts as a problem, however many trajectories it carries.
    """

    problems: Sequence[Problem]
    read: Mapping[str, int]
    left_out: Mapping[str, Mapping[str, int]]
    bad_rows: Sequence[str]
    trajectories: Sequence[Trajectory] = ()
    prompts: Sequence[Prompt] = ()

    @property
    def rows_in(self) -> int:
        return sum(self.read.values())

    @property
    def rows_out(self) -> int:
        """Of the tables that the source has rows of."""
        return sum(len(rows) for name, rows in self._tables.items() if name in self.read)

    @property
    def dropped(self) -> dict[str, int]:
        """By reason, over all tables."""
        return dict(sum((Counter(reasons) for reasons in self.left_out.values()), Counter()))

    def of_difficulty(self, wanted: str) -> Imported:
        """Only the problems of one difficulty; the others are counted as dropped. Raises InputError if none is left."""
        kept = [problem for problem in self.problems if problem.difficulty == wanted]
        if not kept:
            known = sorted({problem.difficulty or NO_DIFFICULTY for problem in self.problems})
            if known in ([], [NO_DIFFICULTY]):
                raise InputError("this source gives its problems no difficulty: leave --difficulty out")
            raise InputError(f"no problem has the difficulty {wanted!r}: choose one of {', '.join(known)}")
        others = {"another difficulty": len(self.problems) - len(kept)}
        return replace(self, problems=kept, left_out=self._with_left_out("problems", others))

    def as_change(self, source: str, **arguments: Any) -> Change:
        """The version to be made of it. `arguments` are those of the import; what was not asked for is not named."""
        found = {name: given for name, given in self._tables.items() if given}
        return Change(
            operation="import",
            arguments={name: value for name, value in arguments.items() if value is not None and value is not False},
            seed=None,
            tables={name: table_from_rows(name, (row.to_row() for row in given)) for name, given in found.items()},
            counts={
                name: Counts(self.read.get(name, len(given)), len(given), self.left_out.get(name, {}))
                for name, given in found.items()
            },
            recorded={"source": source, "source_sha256": source_digest(source)},
        )

    @property
    def _tables(self) -> Mapping[str, Sequence[Problem | Trajectory | Prompt]]:
        return {"problems": self.problems, "trajectories": self.trajectories, "prompts": self.prompts}

    def _with_left_out(self, table: str, reasons: Mapping[str, int]) -> dict[str, Mapping[str, int]]:
        return {**self.left_out, table: {**self.left_out.get(table, {}), **reasons}}
