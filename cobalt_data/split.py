"""Which side of the train / validation / test divide a problem is on.

Near-duplicate problems (`cobalt_data.duplicate_problems`, transitively) stay together. The side of a cluster is read off a hash
of (seed, the smallest problem_id in it): a number in [0, 1) that falls into the share of one side. So the side of a problem
that is like no other depends on nothing but the problem itself. It stays when problems are added or removed, when the file is
imported again elsewhere, and when the shares of the other two sides trade places: no later import can carry a test problem
into training. And a problem that has a side keeps it: what comes later and is like it joins it there. A newcomer that is like
problems on two sides would tie these together; it is left out, and so are newcomers that do so as a cluster.

The price is stated, not hidden. Sides reach their shares on average, within each difficulty as well (every stratum sees
the same shares, up to chance), but not exactly; and of very few problems a side may get none, as no rule can both keep
every problem where it is and give every subset of three problems all three sides. `side_sizes` says what came out. Problems
that have been placed are not moved, even if some are copies of others across sides, as may be after a merge. Such pairs are
counted: `dedup` drops copies, and `reassign` places all problems anew.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cobalt_data.commit import Change
from cobalt_data.dataset import Version
from cobalt_data.duplicate_problems import alike_problems
from cobalt_data.errors import InputError
from cobalt_data.ids import derive_seed
from cobalt_data.manifest import Counts, check_seed
from cobalt_data.near import NEAR_THRESHOLD, check_threshold
from cobalt_data.rows import UNSPLIT

TRAIN, VALIDATION, TEST = "train", "validation", "test"
LEFT_OUT = "like problems on two sides"


@dataclass(frozen=True, slots=True)
class SplitConfig:
    """The share of each side. Problems that have a side, from their source or from an earlier split, keep it unless
    `reassign`. From a Jaccard similarity of `threshold` on, statements are alike."""

    train: float = 0.8
    validation: float = 0.1
    test: float = 0.1
    seed: int = 0
    reassign: bool = False
    threshold: float = NEAR_THRESHOLD

    def __post_init__(self) -> None:
        for side in (TRAIN, VALIDATION, TEST):
            share = getattr(self, side)
            if not 0 <= share <= 1:
                raise InputError(f"split.{side} is {share}: give a share in [0, 1]")
        total = self.train + self.validation + self.test
        if not math.isclose(total, 1, abs_tol=1e-9):
            raise InputError(f"split.train + validation + test is {total:g}: the shares must add up to 1")
        check_seed("split.seed", self.seed)
        check_threshold("split.threshold", self.threshold)


def split(version: Version, config: SplitConfig) -> Change:
    """Gives every problem its side; trajectories and prompts follow their problem when the change is committed.

    `recorded` names the problems that were left out, each with the sides between which it stood, and says how many copies stand
    on another side than the original.
    """
    problems = version.table("problems")
    given = dict(zip(problems["problem_id"].to_pylist(), problems["split"].to_pylist(), strict=True))
    before = {problem: None if config.reassign or side == UNSPLIT else side for problem, side in given.items()}
    pairs = alike_problems(version, config.threshold)
    sides, left_out = place(before, list(pairs), config)
    copies = [pair for pair, is_copy in pairs.items() if is_copy and sides.keys() >= set(pair)]
    across = sum(sides[one] != sides[other] for one, other in copies)
    kept = problems.filter(pc.is_in(problems["problem_id"], pa.array(sorted(sides), pa.string())))
    column = pa.array([sides[problem] for problem in kept["problem_id"].to_pylist()], pa.string())
    placed = kept.set_column(kept.schema.get_field_index("split"), kept.schema.field("split"), column)
    return Change(
        operation="split",
        arguments=asdict(config),
        seed=config.seed,
        tables={"problems": placed},
        counts={"problems": Counts(len(before), len(sides), {LEFT_OUT: len(left_out)} if left_out else {})},
        recorded={"left_out": left_out, "copies_across_sides": across},
    )


def place(
    before: Mapping[str, str | None], pairs: Sequence[tuple[str, str]], config: SplitConfig
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """(the side of each problem, those left out with the sides that they are like), given the sides so far and what is alike."""
    near_sides: dict[str, set[str]] = {problem: set() for problem, side in before.items() if side is None}
    for one, other in (*pairs, *((other, one) for one, other in pairs)):
        side = before[other]
        if before[one] is None and side is not None:
            near_sides[one].add(side)
    left_out = {problem: found for problem, found in near_sides.items() if len(found) > 1}
    sides = {problem: side for problem, side in before.items() if side is not None}
    for cluster in _clusters(near_sides.keys() - left_out.keys(), pairs):
        found = set().union(*(near_sides[problem] for problem in cluster))
        if len(found) > 1:
            left_out |= dict.fromkeys(cluster, found)
        else:
            sides |= dict.fromkeys(cluster, found.pop() if found else side_of(min(cluster), config))
    return sides, {problem: sorted(left_out[problem]) for problem in sorted(left_out)}


def _clusters(problems: Set[str], pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The problems, those that pairs join directly or through others together."""
    joined: dict[str, list[str]] = {problem: [problem] for problem in problems}
    for one, other in pairs:
        if one in joined and other in joined and joined[one] is not joined[other]:
            small, large = sorted((joined[one], joined[other]), key=len)
            large += small
            joined |= dict.fromkeys(small, large)
    return [cluster for problem, cluster in joined.items() if problem == cluster[0]]


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
