"""`augment --perturb`: prompts whose last feedback lies about what the public tests expect.

The last program of an eligible prompt (rules in `cobalt_data.perturbation`) is executed against the perturbed public tests,
and the last feedback becomes what that run says, in the words of the trajectory's own template: verdict and output are true,
only the expectation lies. Tests, pass rates and rewards of the row stay true. A run that says nothing new leaves its prompt
ineligible; so does one that the sandbox cannot judge.

Of the eligible prompts exactly `round(fraction * eligible)` have a perturbed version in the end: those that come first in
the order of a hash of (seed, prompt_id). Prompts that an earlier run with the same kind and seed perturbed count among them
and keep their places, so that a repetition adds nothing and a larger fraction only adds. The `perturbation` of a row says
what was done and what the row was before: with `replace` it takes the original's place, which can be restored bit for bit.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cobalt_data.commit import Change
from cobalt_data.dataset import Version, table_from_rows
from cobalt_data.errors import InputError, SandboxError
from cobalt_data.ids import derive_seed
from cobalt_data.manifest import Counts
from cobalt_data.perturbation import NO_TURN, SWAP, Pair, eligibility, expected, public_tests, shown_test, swap
from cobalt_data.rollouts import SANDBOX_FAILED, public_outcome
from cobalt_data.rows import Chat, Prompt, Turn
from cobalt_data.templates import Template
from sandbox import Pool, ProgramResult

PERTURBED = "perturbed prompts"  # the name of the counts: of all prompts, those that got a perturbed version

NO_TRAJECTORY = "its trajectory is not in the dataset"
UNCHANGED = "the perturbed tests say nothing new"
BEYOND_FRACTION = "beyond the fraction"
HAS_ONE = "has its perturbed version already"


@dataclass(frozen=True, slots=True)
class PerturbConfig:
    """`tokenizer` names what the tokens of the new prompts are counted with; the rest is described above."""

    tokenizer: str
    kind: str = SWAP
    fraction: float = 0.5
    seed: int = 0
    replace: bool = False

    def __post_init__(self) -> None:
        if self.kind != SWAP:
            raise InputError(f"perturb.kind is {self.kind!r}: use {SWAP}")
        if not 0 <= self.fraction <= 1:
            raise InputError(f"perturb.fraction is {self.fraction}: give a share in [0, 1]")


@dataclass(frozen=True, slots=True)
class _Story:
    """What a trajectory tells about the prompts made from it: its turns, and the template that worded them."""

    turns: Sequence[Turn]
    template: Template


@dataclass(frozen=True, slots=True)
class _Run:
    """A prompt's last program, being executed against perturbed tests."""

    prompt: Prompt
    pair: Pair
    template: Template
    result: Future[ProgramResult]


def perturb(
    version: Version,
    config: PerturbConfig,
    pool: Pool,
    count_tokens: Callable[[Chat], int],
    template: Template | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Change:
    """Adds perturbed prompts, or puts them in the place of their originals.

    `template` is needed only where the trajectories were collected with a template of the user's own. `progress` is told
    the runs done and all of them. Raises InputError where a template is not the one that the trajectories were made with.
    """
    prompts = version.table("prompts")
    before = _perturbed_before(prompts, config)
    runs, left_out = _start_runs(version, before, config, pool, template)
    lies: dict[str, Prompt] = {}
    for done, run in enumerate(runs, start=1):
        lie = _finish(run, config, count_tokens)
        if isinstance(lie, Prompt):
            lies[run.prompt.prompt_id] = lie
        else:
            left_out[lie] += 1
        if progress is not None:
            progress(done, len(runs))
    chosen = _first_by_hash(before | lies.keys(), config)
    new = {original: lie for original, lie in lies.items() if original in chosen}
    left_out[BEYOND_FRACTION] = len(lies) - len(new)
    kept = _without(prompts, new.keys()) if config.replace else prompts
    table = pa.concat_tables([kept, table_from_rows("prompts", [lie.to_row() for lie in new.values()])])
    return Change(
        operation="augment",
        arguments=asdict(config),
        seed=config.seed,
        tables={"prompts": table},
        counts={
            "prompts": Counts(prompts.num_rows, table.num_rows),
            PERTURBED: Counts(prompts.num_rows, len(new), dict(+left_out)),
        },
        recorded={"eligible": len(before | lies.keys())} | ({"template": template.name} if template else {}),
    )


def _perturbed_before(prompts: pa.Table, config: PerturbConfig) -> set[str]:
    """The originals, in the table or replaced, that have a perturbed version of this kind and seed."""
    before = set()
    for text in prompts["perturbation"].drop_null().to_pylist():
        perturbation = json.loads(text)
        if (
            perturbation["kind"] == config.kind
            and perturbation.get("seed") == config.seed
            and "original" in perturbation
        ):
            before.add(perturbation["original"]["prompt_id"])
    return before


def _start_runs(
    version: Version, before: Set[str], config: PerturbConfig, pool: Pool, template: Template | None
) -> tuple[list[_Run], Counter[str]]:
    """Starts a run for every prompt that may be eligible; counts the others by reason."""
    stories = _stories(version, template)
    runs: list[_Run] = []
    left_out: Counter[str] = Counter()
    for row in version.rows("prompts"):
        prompt = Prompt.from_row(row)
        if prompt.prompt_id in before:
            left_out[HAS_ONE] += 1
        elif prompt.turn == 0:
            left_out[NO_TURN] += 1
        elif prompt.trajectory_id not in stories:
            left_out[NO_TRAJECTORY] += 1
        else:
            story = stories[prompt.trajectory_id]
            found = eligibility(prompt, story.turns, story.template.feedback)
            if found.reason is None:
                runs.append(_start(prompt, story, found.pairs, config, pool))
            else:
                left_out[found.reason] += 1
    return runs, left_out


def _stories(version: Version, template: Template | None) -> dict[str, _Story]:
    """The trajectories that prompts were made from, by id."""
    if not version.has("trajectories"):
        return {}
    told = set(version.table("prompts")["trajectory_id"].drop_null().to_pylist())
    templates: dict[str, Template] = {}
    stories = {}
    for row in version.rows("trajectories", columns=["trajectory_id", "sampling", "turns"]):
        if row["trajectory_id"] in told:
            sampling = row["sampling"]
            if sampling not in templates:
                templates[sampling] = _template_of(json.loads(sampling), template)
            turns = tuple(Turn.from_json(fields) for fields in json.loads(row["turns"]))
            stories[row["trajectory_id"]] = _Story(turns, templates[sampling])
    return stories


def _template_of(sampling: Mapping[str, Any], given: Template | None) -> Template:
    name, wanted = sampling.get("template"), sampling.get("template_hash")
    if given is not None and given.hash == wanted:
        return given
    if not isinstance(name, str):
        raise InputError("the trajectories do not say which template they were made with: they cannot be perturbed")
    template = Template.load(name)
    if template.hash != wanted:
        raise InputError(
            f"template {name} has changed since the trajectories were made (its hash is {template.hash}, theirs {wanted}): "
            "give the file that they were made with (--template), or collect again"
        )
    return template


def _start(prompt: Prompt, story: _Story, pairs: Sequence[Pair], config: PerturbConfig, pool: Pool) -> _Run:
    pair = pairs[derive_seed(config.seed, "pair", config.kind, prompt.prompt_id) % len(pairs)]
    program = story.turns[prompt.turn - 1].program
    assert program is not None  # or it would not be eligible
    result = pool.submit(program, swap(public_tests(prompt), pair), prompt.judge, stop_early=True)
    return _Run(prompt, pair, story.template, result)


def _finish(run: _Run, config: PerturbConfig, count_tokens: Callable[[Chat], int]) -> Prompt | str:
    """The perturbed prompt, or why there is none."""
    prompt, tests = run.prompt, swap(public_tests(run.prompt), run.pair)
    try:
        results = run.result.result().tests
    except SandboxError:
        return SANDBOX_FAILED
    outcomes = [public_outcome(result) for result in results]
    feedback = run.template.feedback(tests, outcomes, prompt.judge)
    original = prompt.prompt[-1]["content"]
    if feedback == original:
        return UNCHANGED
    true_outputs = [expected(public_tests(prompt)[position]) for position in run.pair]
    shown = shown_test(tests[:2], outcomes[:2], prompt.judge, run.template.feedback)
    perturbation = {
        "kind": config.kind,
        "seed": config.seed,
        "tests": list(run.pair),  # positions among the public tests
        "true_outputs": true_outputs,
        "shown": None if shown is None else run.pair[shown],  # the test whose false expectation the feedback shows
        "original": {"prompt_id": prompt.prompt_id, "feedback": original, "prompt_tokens": prompt.prompt_tokens},
    }
    lie = prompt.with_last_message(feedback, perturbation)
    return replace(lie, prompt_tokens=count_tokens(lie.prompt))


def _first_by_hash(originals: Set[str], config: PerturbConfig) -> set[str]:
    """Exactly `round(fraction * n)` of them, the same whatever their order."""
    in_order = sorted(originals, key=lambda original: (derive_seed(config.seed, config.kind, original), original))
    return set(in_order[: round(config.fraction * len(in_order))])


def _without(prompts: pa.Table, originals: Set[str]) -> pa.Table:
    return prompts.filter(pc.invert(pc.is_in(prompts["prompt_id"], pa.array(originals, pa.string()))))
