"""Partial-trajectory prompts: which trajectories are worth cutting, and where.

The rules are those of the Cobalt paper and its reference code, each a setting. A context is a prefix of a trajectory that
ends with the feedback to its last program; turn t means t programs. For every problem:

1. Of its trajectories the first `n` are looked at, by sample index (by default all).
2. Unless all of its turn-0 programs pass everything (`skip_solved`), its turn-0 prompt is emitted, once (`keep_turn0`).
3. Trajectories are chosen by their pass rates over all tests. `paper`: the rate varies and reaches 1; `improving`: it varies.
   Of these, the `m` whose ranges (max - min) vary most. `all`: every trajectory, whatever its rates. On the validation side
   (`validation_rule`) it is one trajectory per problem, whatever `select` says: the one with the smallest positive range.
   Trajectories that were rolled out under perturbed tests are chosen like this among themselves, so they displace no other.
4. A chosen trajectory is cut at turns 1, 2, ... `turns`. Cutting stops before the first context whose last two programs both
   passed all public tests (`stop_when_passing`), or that has more than `max_prompt_tokens`; before turn 1 already where
   programs 0 and 2 both pass everything (`look_ahead`). A problem without public tests has no feedback, hence no contexts;
   a conversation of others may end with its last program, whose context is then left out.
   A program passes the public tests if it was told so; pass rates are always those of the true tests.

Every context that the trajectories hold is counted: emitted, or dropped for one reason. Whatever prompts the version had
are replaced. Equal texts are not looked for here: that is `dedup`.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Literal, get_args

import pyarrow as pa

from cobalt_data.commit import Change
from cobalt_data.dataset import Version
from cobalt_data.downsample import max_variance_subset
from cobalt_data.duck import open_duckdb
from cobalt_data.errors import InputError
from cobalt_data.field_checks import parsed_perturbation
from cobalt_data.manifest import Counts
from cobalt_data.rows import Chat, Prompt, opening_of
from cobalt_data.split import VALIDATION
from cobalt_data.spool import Spool
from sandbox import Judge, Verdict

Select = Literal["paper", "improving", "all"]

BEYOND_N = "beyond the first n trajectories of its problem"
SOLVED = "its problem is solved at once"
NO_TURN0 = "turn 0 is not wanted"
FLAT = "its pass rate does not vary"
NEVER_SOLVED = "its trajectory never passes everything"
DOWN_SAMPLED = "down-sampled"
NOT_SMALLEST = "another validation trajectory has a smaller range"
NO_FEEDBACK = "its problem has no public tests"
ENDS_UNTOLD = "no feedback to its last program"
TOO_LATE = "beyond the last turn"
LOOKED_AHEAD = "programs 0 and 2 pass everything"
KEEPS_PASSING = "two successive programs pass all public tests"
TOO_LONG = "too many tokens"


@dataclass(frozen=True, slots=True)
class CutConfig:
    """`tokenizer` names what `max_prompt_tokens` are counted with; the rest is described above."""

    tokenizer: str
    select: Select = "paper"
    n: int | None = None
    m: int = 4
    turns: int = 3
    max_prompt_tokens: int = 10_000
    keep_turn0: bool = True
    skip_solved: bool = True
    stop_when_passing: bool = True
    look_ahead: bool = True
    validation_rule: bool = True

    def __post_init__(self) -> None:
        if self.select not in get_args(Select):
            raise InputError(f"cut.select is {self.select!r}: use {', '.join(get_args(Select))}")
        for name, least in (("n", 1), ("m", 1), ("turns", 0), ("max_prompt_tokens", 1)):
            if getattr(self, name) is not None and getattr(self, name) < least:
                raise InputError(f"cut.{name} is {getattr(self, name)}: give at least {least}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the choice of a trajectory rests on. `passes_public` is None for problems without public tests."""

    trajectory_id: str
    sample_index: int
    is_perturbed: bool
    pass_rates: tuple[float, ...]
    passes_public: tuple[bool | None, ...]

    @property
    def range(self) -> float:
        return max(self.pass_rates) - min(self.pass_rates)

    @classmethod
    def of(
        cls,
        trajectory_id: str,
        sample_index: int,
        is_perturbed: bool,
        pass_rates: Sequence[float],
        public_pass_rates: Sequence[float | None],
        verdicts: Sequence[Sequence[str]],
    ) -> Candidate:
        """From what each program earned over all tests and over the public ones, and what the latter are said to have said."""
        passes_public = map(_was_told_to_pass, public_pass_rates, verdicts)
        return cls(trajectory_id, sample_index, is_perturbed, tuple(pass_rates), tuple(passes_public))


def _was_told_to_pass(public_pass_rate: float | None, verdicts: Sequence[str]) -> bool | None:
    """Verdicts count before the rate, which is that of the true tests; trajectories of others may have the rate alone."""
    if verdicts:
        return all(verdict == Verdict.PASSED for verdict in verdicts)
    return None if public_pass_rate is None else public_pass_rate == 1.0


@dataclass(slots=True)
class Plan:
    """At which turns to cut each trajectory that is cut at all, and how many contexts are left out for which reason."""

    turns: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    dropped: Counter[str] = field(default_factory=Counter)


def cut(version: Version, config: CutConfig, count_tokens: Callable[[Chat], int]) -> Change:
    """Replaces the prompts of `version`. Raises InputError if it has no trajectories.

    In memory are the texts of tests and judges, the trajectories chosen so far, and the candidates of one problem.
    """
    plan = Plan()
    rows_in = 0
    for side, candidates in _by_problem(version):
        plan_problem(plan, candidates, config, is_validation=side == VALIDATION)
        rows_in += 1 + _contexts(candidates)
    prompts = Spool.of_rows("prompts", _cut_trajectories(version, plan, config, count_tokens))
    return Change(
        operation="cut",
        arguments=asdict(config),
        seed=None,
        tables={"prompts": prompts},
        counts={"prompts": Counts(rows_in, prompts.num_rows, dict(+plan.dropped))},
    )


def _by_problem(version: Version) -> Iterator[tuple[str, list[Candidate]]]:
    """The side and the trajectories of every problem that has some, a problem at a time: DuckDB brings them together."""
    with open_duckdb() as database:
        found = database.execute(_PASS_RATES, {"trajectories": version.files("trajectories")})
        rows = iter(partial(found.fetchmany, 1024), [])
        for (side, _), of_problem in groupby(chain.from_iterable(rows), key=itemgetter(0, 1)):
            yield side, [Candidate.of(*facts) for _, _, *facts in of_problem]


_PASS_RATES = """
    SELECT split, problem_id, trajectory_id, sample_index, perturbation IS NOT NULL,
           list_transform(json_extract(turns, '$[*].pass_rate'), lambda rate: CAST(rate AS DOUBLE)),
           list_transform(json_extract(turns, '$[*].public_pass_rate'), lambda rate: CAST(rate AS DOUBLE)),
           list_transform(json_extract(turns, '$[*].public'), lambda told: json_extract_string(told, '$[*].verdict'))
    FROM read_parquet($trajectories)
    ORDER BY split, problem_id, trajectory_id
"""


def plan_problem(plan: Plan, candidates: Sequence[Candidate], config: CutConfig, is_validation: bool = False) -> None:
    """Adds to `plan` the turns at which the trajectories of one problem are to be cut, whatever their order."""
    candidates = _first(candidates, config, plan.dropped)
    if config.skip_solved and all(candidate.pass_rates[0] == 1.0 for candidate in candidates):
        plan.dropped[SOLVED] += 1 + sum(len(candidate.pass_rates) for candidate in candidates)
        return
    if config.keep_turn0:
        plan.turns[candidates[0].trajectory_id].append(0)
    else:
        plan.dropped[NO_TURN0] += 1
    choose = _choose_for_validation if is_validation and config.validation_rule else _choose
    chosen = {
        trajectory_id
        for is_perturbed in (False, True)
        for trajectory_id in choose(
            [each for each in candidates if each.is_perturbed is is_perturbed], config, plan.dropped
        )
    }
    for candidate in candidates:
        if candidate.trajectory_id in chosen:
            plan.turns[candidate.trajectory_id] += _turns_to_cut(candidate, config, plan.dropped)


def _first(candidates: Sequence[Candidate], config: CutConfig, dropped: Counter[str]) -> list[Candidate]:
    """The first `n` benign ones and the first `n` perturbed ones, ordered by their ids."""
    first: list[Candidate] = []
    for is_perturbed in (False, True):
        group = [each for each in candidates if each.is_perturbed is is_perturbed]
        in_order = sorted(group, key=lambda each: (each.sample_index, each.trajectory_id))
        dropped[BEYOND_N] += _contexts(in_order) - _contexts(in_order[: config.n])
        first += sorted(in_order[: config.n], key=lambda each: each.trajectory_id)
    return first


def _choose(candidates: Sequence[Candidate], config: CutConfig, dropped: Counter[str]) -> list[str]:
    if config.select == "all":
        return [candidate.trajectory_id for candidate in candidates]
    qualified = []
    for candidate in candidates:
        if candidate.range == 0:
            dropped[FLAT] += len(candidate.pass_rates)
        elif config.select == "paper" and max(candidate.pass_rates) < 1:
            dropped[NEVER_SOLVED] += len(candidate.pass_rates)
        else:
            qualified.append(candidate)
    best = [qualified[position] for position in max_variance_subset([each.range for each in qualified], config.m)]
    dropped[DOWN_SAMPLED] += _contexts(qualified) - _contexts(best)
    return [candidate.trajectory_id for candidate in best]


def _choose_for_validation(candidates: Sequence[Candidate], config: CutConfig, dropped: Counter[str]) -> list[str]:
    varying = [candidate for candidate in candidates if candidate.range > 0]
    dropped[FLAT] += _contexts(candidates) - _contexts(varying)
    smallest = sorted(varying, key=lambda candidate: candidate.range)[:1]
    dropped[NOT_SMALLEST] += _contexts(varying) - _contexts(smallest)
    return [candidate.trajectory_id for candidate in smallest]


def _contexts(candidates: Sequence[Candidate]) -> int:
    return sum(len(candidate.pass_rates) for candidate in candidates)


def _turns_to_cut(candidate: Candidate, config: CutConfig, dropped: Counter[str]) -> list[int]:
    contexts = len(candidate.pass_rates)
    for turn in range(1, contexts + 1):
        if stop := _stop_before(turn, candidate, config):
            dropped[stop] += contexts - turn + 1
            return list(range(1, turn))
    return list(range(1, contexts + 1))


def _stop_before(turn: int, candidate: Candidate, config: CutConfig) -> str | None:
    """Why the context with `turn` programs, and with it every longer one, is left out; None if it is not."""
    passes_all = [rate == 1.0 for rate in candidate.pass_rates]
    passes_public = candidate.passes_public
    if passes_public[turn - 1] is None:
        return NO_FEEDBACK
    if turn > config.turns:
        return TOO_LATE
    if config.look_ahead and turn == 1 and len(passes_all) > 2 and passes_all[0] and passes_all[2]:
        return LOOKED_AHEAD
    if config.stop_when_passing and turn > 1 and passes_public[turn - 2] and passes_public[turn - 1]:
        return KEEPS_PASSING
    return None


def _cut_trajectories(
    version: Version, plan: Plan, config: CutConfig, count_tokens: Callable[[Chat], int]
) -> Iterator[dict[str, Any]]:
    texts = version.table("problems", columns=["problem_id", "tests", "judge"])
    places = {problem_id: place for place, problem_id in enumerate(texts["problem_id"].to_pylist())}
    for piece in version.pieces("trajectories"):
        chosen = pa.array(
            [plan.turns.get(row_id, []) != [] for row_id in piece["trajectory_id"].to_pylist()], pa.bool_()
        )
        for row in piece.filter(chosen).to_pylist():
            place, turns = places[row["problem_id"]], plan.turns[row["trajectory_id"]]
            if turns[-1] == row["num_turns"] and row["messages"][-1]["role"] != "user":
                turns.pop()
                plan.dropped[ENDS_UNTOLD] += 1
            # The problem's own texts: to parse them and to write them again would give the same, at a price.
            judged_by = {"tests": texts["tests"][place].as_py(), "judge": texts["judge"][place].as_py()}
            for position, prompt in enumerate(_prompts(turns, row, count_tokens)):
                if prompt.prompt_tokens > config.max_prompt_tokens:
                    plan.dropped[TOO_LONG] += len(turns) - position
                    break
                yield prompt.to_row() | judged_by


def _prompts(turns: Sequence[int], row: Mapping[str, Any], count_tokens: Callable[[Chat], int]) -> Iterator[Prompt]:
    """The prompts of one trajectory, without the tests and the judge of its problem."""
    rates = [fields["pass_rate"] for fields in json.loads(row["turns"])]
    perturbation = parsed_perturbation(row["perturbation"], row["trajectory_id"])
    for turn in turns:
        chat = context(row["messages"], row["num_turns"], turn)
        yield Prompt(
            trajectory_id=row["trajectory_id"] if turn else None,
            problem_id=row["problem_id"],
            turn=turn,
            prompt=chat,
            tests=(),
            judge=Judge(),
            prev_best_pass_rate=max(rates[:turn], default=0.0),
            perturbation=perturbation if turn else None,
            prompt_tokens=count_tokens(chat),
            split=row["split"],
        )


def context(messages: Chat, turns: int, turn: int) -> Chat:
    """Of a trajectory of `turns` programs, the messages up to the feedback to the first `turn` of them."""
    return tuple(messages[: len(opening_of(messages, turns)) + 2 * turn])
