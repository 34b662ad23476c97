"""`augment --perturb --recollect`: trajectories rolled out again, this time under public tests that lie.

Where `perturb` changes the last feedback of a prompt, here a model really lives with the lie for a whole conversation. Of every
problem that a kind of lie can be told about, a fraction is chosen, and one lie for each; all conversations on a problem are
told the same. The rest is a collection like any other (`cobalt_data.collection`): resumable, and its rows record the lie as
their `perturbation`. Pass rates stay true. `cut` makes prompts of them, which carry the lie on.

Left out: kinds that say nothing about tests (`stale`, `misreport`): there is nothing that could hold for a whole conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from cobalt_data.collection import OPERATION, CollectConfig, Lies
from cobalt_data.dataset import Version
from cobalt_data.errors import InputError
from cobalt_data.history import Entry, history
from cobalt_data.ids import derive_seed
from cobalt_data.manifest import Counts
from cobalt_data.perturb import BEYOND_FRACTION, TAKEN, check_kinds, counted, first_by_hash
from cobalt_data.perturbation import EXPECTATION_KINDS, OFF_BY_ONE, SWAP, Lie, eligible_lies
from cobalt_data.problems import choose_problems
from cobalt_data.rows import Problem
from cobalt_data.templates import Template, template_for


@dataclass(frozen=True, slots=True)
class RecollectConfig:
    """`kinds`: of the problems that can be lied about like this, the fraction that is. `spare_statement` as for prompts."""

    kinds: Mapping[str, float] = field(default_factory=lambda: {SWAP: 0.5})
    spare_statement: bool = False

    def __post_init__(self) -> None:
        check_kinds(self.kinds, EXPECTATION_KINDS)


def draw_lies(version: Version, model: str, collecting: CollectConfig, config: RecollectConfig) -> Lies:
    """Which problems are lied about, and how: decided by the seed of the collection and the problem alone.

    Raises InputError where there is nothing to lie about.
    """
    problems = choose_problems(version, collecting.split, collecting.limit)
    template, seed = template_for(collecting.template, model), collecting.seed
    chosen: dict[str, Lie] = {}
    counts = {}
    for kind in (OFF_BY_ONE, SWAP):
        if kind in config.kinds:
            found, left_out = _lies(kind, problems, template, seed, config.spare_statement)
            free = found.keys() - chosen.keys()
            ids = first_by_hash(free, round(config.kinds[kind] * len(found)), seed, kind)
            left_out[TAKEN] += len(found) - len(free)
            left_out[BEYOND_FRACTION] += len(free) - len(ids)
            counts[f"problems {counted(kind)}"] = Counts(len(problems), len(ids), dict(+left_out))
            chosen |= {problem_id: found[problem_id] for problem_id in ids}
    if not chosen:
        reasons = sorted({reason for count in counts.values() for reason in count.dropped})
        raise InputError(f"{version.reference}: no problem can be lied about ({'; '.join(reasons)})")
    return Lies(chosen, asdict(config), counts)


def last_collection(version: Version) -> Entry:
    """What made the newest trajectories of `version`. Raises InputError where its history has no collection."""
    for entry in history(version):
        if entry.operation == OPERATION:
            return entry
    raise InputError(
        f"{version.reference} has no collection in its history whose settings could be used again: "
        "collect first (`cobalt data collect`), in this dataset"
    )


def _lies(
    kind: str, problems: Sequence[Problem], template: Template, seed: int, spare_statement: bool
) -> tuple[dict[str, Lie], Counter[str]]:
    """One lie for each problem that there can be one about; the others by reason."""
    found: dict[str, Lie] = {}
    left_out: Counter[str] = Counter()
    for problem in problems:
        asked = template.first_turn(problem)[-1]["content"] if spare_statement else ""
        eligible = eligible_lies(kind, problem.public_tests, problem.judge, first_message=asked)
        if eligible.reason is None:
            draw = derive_seed(seed, "lie", kind, problem.problem_id)
            found[problem.problem_id] = eligible.lies[draw % len(eligible.lies)]
        else:
            left_out[eligible.reason] += 1
    return found, left_out
