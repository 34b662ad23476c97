"""`augment --perturb`: prompts whose last feedback does not tell the truth.

Four kinds. With `swap` and `off-by-one` (`cobalt_data.perturbation`) the last program of an eligible prompt is executed against
public tests of which some lie, and the last feedback becomes what that run says, in the words of the trajectory's own
template: verdict and output are true, only the expectation lies. With `stale` and `misreport` (`cobalt_data.misleading`) the
feedback is another program's, or its verdict lies. Tests, pass rates and rewards of the row stay true. A run that says nothing
new leaves its prompt ineligible; so does one that the sandbox cannot judge.

Several kinds may be asked for at once, each for a fraction of the prompts that are eligible for it. A prompt is perturbed in
one way only: kinds choose in the order of KINDS, each `round(fraction * eligible)` prompts, or as many as are left of them,
first those that come first in the order of a hash of (seed, kind, prompt_id). Prompts that an earlier run with the same seed
perturbed count among them and keep their places, so that a repetition adds nothing and a larger fraction only adds.

The `perturbation` of a row says what was done and what the row was before: with `replace` it takes the original's place.
`cobalt_data.unperturb` restores the originals bit for bit.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from cobalt_data.commit import Change
from cobalt_data.dataset import Version
from cobalt_data.errors import InputError, SandboxError
from cobalt_data.field_checks import parsed_perturbation
from cobalt_data.ids import derive_seed
from cobalt_data.judged_turns import public_outcome
from cobalt_data.manifest import Counts, check_seed
from cobalt_data.misleading import MISREPORT, STALE, Told, misreport, stale
from cobalt_data.perturbation import EXPECTATION_KINDS, OFF_BY_ONE, SWAP, Lie, eligibility, public_tests, unfit
from cobalt_data.rollouts import SANDBOX_FAILED
from cobalt_data.rows import Chat, Prompt, Row
from cobalt_data.shown import position_in_feedback
from cobalt_data.spool import Spool
from cobalt_data.stories import Stories, Story, open_stories
from cobalt_data.templates import Template
from sandbox import Pool, ProgramResult

KINDS = (MISREPORT, OFF_BY_ONE, SWAP, STALE)  # those that few prompts are eligible for choose first

UNCHANGED = "the perturbed tests say nothing new"
BEYOND_FRACTION = "beyond the fraction"
HAS_ONE = "has its perturbed version already"
TAKEN = "perturbed by another kind"

AT_A_TIME = 1024  # attempts that are being executed, or wait for their turn to be read


@dataclass(frozen=True, slots=True)
class PerturbConfig:
    """`kinds`: the fraction of each. `tokenizer` names what the tokens of the new prompts are counted with.

    `spare_statement`: also, no test is made to lie whose true output the first message shows (`cobalt_data.shown`).
    """

    tokenizer: str
    kinds: Mapping[str, float] = field(default_factory=lambda: {SWAP: 0.5})
    seed: int = 0
    replace: bool = False
    spare_statement: bool = False

    def __post_init__(self) -> None:
        check_kinds(self.kinds, KINDS)
        check_seed("perturb.seed", self.seed)


def check_kinds(kinds: Mapping[str, float], known: Collection[str]) -> None:
    """Raises InputError where a kind is none of `known`, or its fraction no share."""
    if not kinds:
        raise InputError(f"perturb.kinds is empty: use {', '.join(known)}")
    for kind, fraction in kinds.items():
        if kind not in known:
            raise InputError(f"perturb.kinds has {kind!r}: use {', '.join(known)}")
        if not 0 <= fraction <= 1:
            raise InputError(f"perturb.kinds has the fraction {fraction} for {kind}: give a share in [0, 1]")


def counted(kind: str) -> str:
    """The name of the counts of a kind: of all prompts, those that got a version perturbed like this."""
    return f"perturbed by {kind}"


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A prompt that may be perturbed: with `lie`, its last program is being executed against the tests that lie."""

    kind: str
    prompt: Prompt
    template: Template
    outcome: Told | Future[ProgramResult]
    lie: Lie | None = None


@dataclass(slots=True)
class _Outcome:
    """What became of a kind: the id of the perturbed version of each eligible prompt, and the others by reason."""

    lies: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)


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
    the prompts done and all of them. Raises InputError where a template is not the one that the trajectories were made with.

    In memory are the ids of the prompts, the places of the stories, and the attempts of the moment.
    """
    before, rows = _perturbed_before(version, config.seed), version.manifest.rows("prompts")
    outcomes = {kind: _Outcome() for kind in KINDS if kind in config.kinds}
    with open_stories(version, template, all_of_them=STALE in config.kinds) as stories:
        attempts = _attempts(version, before, outcomes, partial(_attempt, stories=stories, config=config, pool=pool))
        finish = partial(_finish, config=config, count_tokens=count_tokens)
        told = (lambda number: progress(number, rows)) if progress is not None else (lambda _number: None)
        lies = Spool.of_rows("prompts", _lies(attempts, outcomes, finish, told))
    if progress is not None:
        progress(rows, rows)  # the last of them may not be eligible
    new = _choose(outcomes, before, config)
    chosen = pa.array([lie for lies_of_kind in new.values() for lie in lies_of_kind.values()], pa.string())
    added = Spool("prompts", (piece.filter(pc.is_in(piece["prompt_id"], chosen)) for piece in lies.ordered()))
    removed = {original for lies_of_kind in new.values() for original in lies_of_kind} if config.replace else set()
    eligible = {kind: len(before[kind] | outcome.lies.keys()) for kind, outcome in outcomes.items()}
    return Change(
        operation="augment",
        arguments=asdict(config),
        seed=config.seed,
        tables={},
        counts={"prompts": Counts(rows, rows + added.num_rows - len(removed))}
        | {counted(kind): Counts(rows, len(new[kind]), dict(+outcome.left_out)) for kind, outcome in outcomes.items()},
        recorded={"eligible": eligible} | ({"template": template.name} if template else {}),
        added={"prompts": added} if added.num_rows else {},
        removed={"prompts": removed} if removed else {},
    )


def _perturbed_before(version: Version, seed: int) -> Mapping[str, set[str]]:
    """By kind, the originals, in the table or replaced, that have a perturbed version with this seed."""
    before: dict[str, set[str]] = defaultdict(set)
    for row in version.rows("prompts", columns=["prompt_id", "perturbation"]):
        perturbation = parsed_perturbation(row["perturbation"], row["prompt_id"])
        if perturbation is not None and perturbation.get("seed") == seed and "original" in perturbation:
            before[perturbation["kind"]].add(perturbation["original"]["prompt_id"])
    return before


def _attempts(
    version: Version,
    before: Mapping[str, Set[str]],
    outcomes: Mapping[str, _Outcome],
    attempt: Callable[[str, Prompt], _Attempt | str],
) -> Iterator[tuple[int, _Attempt]]:
    """Begins with every prompt that may be eligible, and yields it with the number of prompts so far; counts the others."""
    for number, row in enumerate(version.rows("prompts"), start=1):
        prompt = Prompt.from_row(row)
        for kind, outcome in outcomes.items():
            if prompt.prompt_id in before[kind]:
                outcome.left_out[HAS_ONE] += 1
            elif any(prompt.prompt_id in originals for originals in before.values()):
                outcome.left_out[TAKEN] += 1
            else:
                begun = attempt(kind, prompt)
                if isinstance(begun, _Attempt):
                    yield number, begun
                else:
                    outcome.left_out[begun] += 1


def _lies(
    attempts: Iterator[tuple[int, _Attempt]],
    outcomes: Mapping[str, _Outcome],
    finish: Callable[[_Attempt], Prompt | str],
    progress: Callable[[int], None],
) -> Iterator[Row]:
    """The perturbed prompt of every eligible one; the others are counted."""
    for number, attempt in _begun_ahead(attempts):
        lie, outcome = finish(attempt), outcomes[attempt.kind]
        if isinstance(lie, Prompt):
            outcome.lies[attempt.prompt.prompt_id] = lie.prompt_id
            yield lie.to_row()
        else:
            outcome.left_out[lie] += 1
        progress(number)


def _begun_ahead(attempts: Iterator[tuple[int, _Attempt]]) -> Iterator[tuple[int, _Attempt]]:
    """Each attempt when the `AT_A_TIME` behind it have begun."""
    begun: deque[tuple[int, _Attempt]] = deque()
    for attempt in attempts:
        begun.append(attempt)
        if len(begun) > AT_A_TIME:
            yield begun.popleft()
    yield from begun


def _attempt(kind: str, prompt: Prompt, stories: Stories, config: PerturbConfig, pool: Pool) -> _Attempt | str:
    """Or why there can be none."""
    story = stories.of(prompt)
    if isinstance(story, str):
        return story
    reason = unfit(prompt, story.turns)
    if reason is not None:
        return reason
    if kind in EXPECTATION_KINDS:
        return _run(kind, prompt, story, config, pool)
    if kind == STALE:
        said = stories.said(prompt.problem_id)
        told = stale(prompt, story.turns, said, story.template.hash, config.seed)
    else:
        told = misreport(prompt, story.turns, story.template.feedback, config.seed)
    return told if isinstance(told, str) else _Attempt(kind, prompt, story.template, told)


def _run(kind: str, prompt: Prompt, story: Story, config: PerturbConfig, pool: Pool) -> _Attempt | str:
    found = eligibility(kind, prompt, story.turns, story.template.feedback, config.spare_statement)
    if found.reason is not None:
        return found.reason
    lie = found.lies[derive_seed(config.seed, "pair", kind, prompt.prompt_id) % len(found.lies)]
    program = story.turns[prompt.turn - 1].program
    result = pool.submit(program, lie.told(public_tests(prompt)), prompt.judge, stop_early=True)
    return _Attempt(kind, prompt, story.template, result, lie)


def _finish(attempt: _Attempt, config: PerturbConfig, count_tokens: Callable[[Chat], int]) -> Prompt | str:
    """The perturbed prompt, or why there is none."""
    prompt, told = attempt.prompt, attempt.outcome
    if isinstance(told, Future):
        try:
            told = _what_the_run_says(attempt, told.result())
        except SandboxError:
            return SANDBOX_FAILED
    original = prompt.prompt[-1]["content"]
    if told.feedback == original:
        return UNCHANGED
    perturbation = {
        "kind": attempt.kind,
        "seed": config.seed,
        **told.facts,
        "original": {"prompt_id": prompt.prompt_id, "feedback": original, "prompt_tokens": prompt.prompt_tokens},
    }
    lie = prompt.with_last_message(told.feedback, perturbation)
    return replace(lie, prompt_tokens=count_tokens(lie.prompt))


def _what_the_run_says(attempt: _Attempt, result: ProgramResult) -> Told:
    lie, prompt, feedback = attempt.lie, attempt.prompt, attempt.template.feedback
    assert lie is not None
    true, false = public_tests(prompt), lie.told(public_tests(prompt))
    outcomes = [public_outcome(test) for test in result.tests]
    lying = len(lie.tests)
    shown = position_in_feedback(false[:lying], outcomes[:lying], prompt.judge, feedback)
    facts = lie.facts(true) | {"shown": None if shown is None else lie.tests[shown]}  # whose lie the feedback shows
    return Told(feedback(false, outcomes, prompt.judge), facts)


def _choose(
    outcomes: Mapping[str, _Outcome], before: Mapping[str, Set[str]], config: PerturbConfig
) -> dict[str, dict[str, str]]:
    """By kind, the ids of the new perturbed prompts by those of their originals; what is not chosen is counted."""
    taken: set[str] = set()
    new = {}
    for kind, outcome in outcomes.items():
        eligible = before[kind] | outcome.lies.keys()
        chosen = first_by_hash(eligible - taken, round(config.kinds[kind] * len(eligible)), config.seed, kind)
        new[kind] = {original: lie for original, lie in outcome.lies.items() if original in chosen}
        outcome.left_out[TAKEN] += len(outcome.lies.keys() & taken)
        outcome.left_out[BEYOND_FRACTION] += len(outcome.lies.keys() - taken - chosen)
        taken |= chosen
    return new


def first_by_hash(ids: Collection[str], count: int, seed: int, kind: str) -> set[str]:
    """`count` of `ids`, the same whatever their order."""
    return set(sorted(ids, key=lambda each: (derive_seed(seed, kind, each), each))[:count])
