"""Which side of the train / validation / test divide a problem is on.

A problem's side is read off a hash of (seed, problem_id): a number in [0, 1) that falls into the share of one side. So the
side depends on nothing but the problem itself. It stays when problems are added or removed, when the file is imported again
elsewhere, and when the shares of the other two sides trade places: no later import can carry a test problem into training.

The price is stated, not hidden. Sides reach their shares on average, within each difficulty as well (every stratum sees
the same shares, up to chance), but not exactly; and of very few problems a side may get none, as no rule can both keep
every problem where it is and give every subset of three problems all three sides. `side_sizes` says what came out.

Near-duplicate problems are not kept together yet.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass

import pyarrow as pa

from cobalt_data.commit import Change
from cobalt_data.dataset import Version
from cobalt_data.errors import InputError
from cobalt_data.ids import derive_seed
from cobalt_data.manifest import Counts
from cobalt_data.rows import UNSPLIT

TRAIN, VALIDATION, TEST = "train", "validation", "test"


@dataclass(frozen=True, slots=True)
class SplitConfig:
    """The share of each side. Problems that have a side, from their source or from an earlier split, keep it unless
    `reassign`."""

    train: float = 0.8
    validation: float = 0.1
    test: float = 0.1
    seed: int = 0
    reassign: bool = False

    def __post_init__(self) -> None:
        for side in (TRAIN, VALIDATION, TEST):
            share = getattr(self, side)
            if not 0 <= share <= 1:
                raise InputError(f"split.{side} is {share}: give a share in [0, 1]")
        total = self.train + self.validation + self.test
        if not math.isclose(total, 1, abs_tol=1e-9):
            raise InputError(f"split.train + validation + test is {total:g}: the shares must add up to 1")


def split(version: Version, config: SplitConfig) -> Change:
    """Gives every problem its side; trajectories and prompts follow their problem when the change is committed."""
    problems = version.table("problems")
    sides = [
        side_of(problem_id, config) if config.reassign or side == UNSPLIT else side
        for problem_id, side in zip(problems["problem_id"].to_pylist(), problems["split"].to_pylist(), strict=True)
    ]
    column = problems.schema.get_field_index("split")
    placed = problems.set_column(column, problems.schema.field("split"), pa.array(sides, pa.string()))
    return Change(
        operation="split",
        arguments=asdict(config),
        seed=config.seed,
        tables={"problems": placed},
        counts={"problems": Counts(problems.num_rows, problems.num_rows)},
    )


def side_of(problem_id: str, config: SplitConfig) -> str:
    """The test side lies lowest, then validation: a share moved between the other two leaves the test set alone."""
    position = derive_seed(config.seed, "split", problem_id) / 2**63
    if position < config.test:
        return TEST
    if position < config.test + config.validation or config.train == 0:
        return VALIDATION
    return TRAIN


def side_sizes(problems: pa.Table) -> dict[str, int]:
    """Problems on each side; 0 for one of the three that got none."""
    return {TRAIN: 0, VALIDATION: 0, TEST: 0, **Counter(problems["split"].to_pylist())}
