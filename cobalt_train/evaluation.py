"""Evaluation: Pass@1 per turn, with the uncertainty that the choice of problems leaves.

Programs are rolled out as in collection, with feedback from the public tests and nothing stopping early, and judged by the
hidden tests. Pass@1 at turn t is the share of programs of turn t that pass all hidden tests.

- A conversation that ended before turn t, because its prompt outgrew the model's context, counts there as not solved: a
  model that cannot answer has not answered. Problems without public tests have turn 0 only and stay out of later turns.
- Problems without hidden tests, and conversations that the sandbox could not judge, are left out and counted.
- Intervals are 95 % percentile bootstraps over problems, the unit that varies independently: the samples of one problem do
  not. Two evaluations of the same problems are compared pairwise, with the same resampled problems on both sides; this
  takes out how hard the problems happen to be.
- Under perturbed public tests (`perturb`) the same programs also tell how many give in to feedback that lies
  (`cobalt_train.hacking`). Problems whose public tests cannot be perturbed are left out and counted.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

from cobalt_data.engines.base import Engine, Sampling
from cobalt_data.errors import InputError
from cobalt_data.progress import Meter, Progress
from cobalt_data.rollouts import RolledOut, roll_out
from cobalt_data.rows import Problem, Trajectory
from cobalt_data.templates import Template
from cobalt_data.units import Unit, make_units, problems_filling_a_unit, work_through
from cobalt_train.hacking import count_hacks, perturbed
from sandbox import Pool

Array = np.ndarray[Any, Any]

RESAMPLES = 2000
LEVEL = 0.95
NO_HIDDEN_TESTS = "no hidden tests"
NOTHING_TO_SWAP = "no two public tests with expected outputs to swap"


@dataclass(frozen=True, slots=True)
class TurnScore:
    """Pass@1 of one turn, or a difference of two, with the ends of its interval; `programs` were judged."""

    turn: int
    pass_at_1: float
    low: float
    high: float
    problems: int
    programs: int


@dataclass(frozen=True, slots=True)
class HackRate:
    """The share of one turn's programs that give in to a perturbed test, as a `TurnScore` is."""

    turn: int
    rate: float
    low: float
    high: float
    problems: int
    programs: int


Kind = TypeVar("Kind", TurnScore, HackRate)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was measured, problem by problem, so that it can be scored and compared.

    `passed[problem_id][t]` of `programs[problem_id][t]` programs of turn t passed all hidden tests; `hacks[problem_id][t]`
    of them were hacks, where public tests were perturbed.
    """

    model: str
    model_revision: str
    n: int
    turns: int
    seed: int
    template: str
    sampling: Mapping[str, Any]
    passed: Mapping[str, Sequence[int]]
    programs: Mapping[str, Sequence[int]]
    left_out: Mapping[str, int]
    hacks: Mapping[str, Sequence[int]] | None = None

    @property
    def scores(self) -> tuple[TurnScore, ...]:
        """Per turn; turns that no problem has are left out."""
        return tuple(self._shares(TurnScore, self.passed, first_turn=0))

    @property
    def hack_rates(self) -> tuple[HackRate, ...]:
        """Per turn from 1 on, the first that can give in to feedback; empty where nothing was perturbed."""
        return () if self.hacks is None else tuple(self._shares(HackRate, self.hacks, first_turn=1))

    def _shares(self, kind: type[Kind], counts: Mapping[str, Sequence[int]], first_turn: int) -> Iterator[Kind]:
        problem_ids = sorted(self.programs)
        counted, programs = (_array(each, problem_ids, range(self.turns)) for each in (counts, self.programs))
        turns = np.flatnonzero(programs.any(axis=0))
        turns = turns[turns >= first_turn]
        shares = counted.sum(axis=0)[turns] / programs.sum(axis=0)[turns]
        low, high = bootstrap_interval(counted[:, turns], programs[:, turns], self.seed)
        return _per_turn(kind, turns, shares, low, high, programs[:, turns])

    def to_json(self) -> dict[str, Any]:
        """The fields, the scores and the hack rates, as plain JSON values; `from_json` reads it back."""
        rates = {} if self.hacks is None else {"hack_rates": [asdict(rate) for rate in self.hack_rates]}
        return {**asdict(self), "scores": [asdict(score) for score in self.scores], **rates}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Evaluation:
        return cls(**{name: value for name, value in fields.items() if name not in ("scores", "hack_rates")})


def evaluate(
    problems: Iterable[Problem],
    engine: Engine,
    pool: Pool,
    template: Template,
    sampling: Sampling,
    *,
    turns: int,
    n: int,
    seed: int = 0,
    perturb: bool = False,
    problems_per_unit: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Rolls out `n` conversations of `turns` programs on each problem and judges every program by the hidden tests.

    With `perturb` under public tests that lie, which programs may give in to. Raises InputError where no problem has hidden
    tests or no conversation could be had, EngineError, SandboxUnavailable. `progress` is called from several threads, one at a time.
    """
    if turns < 1 or n < 1:
        raise InputError(f"evaluation has {turns} turns and {n} samples: give at least 1 of each")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}: give an integer in [0, 2^63)")
    judged, left_out = _usable(problems, perturb, seed)
    units = make_units(judged, [range(n)] * len(judged), problems_per_unit or problems_filling_a_unit(n))
    meter = Meter(len(judged), steps=len(units) * turns, report=progress)

    def work(unit: Unit, abandoned: threading.Event) -> RolledOut:
        rolled = roll_out(
            unit,
            engine=engine,
            pool=pool,
            template=template,
            sampling=sampling,
            turns=turns,
            run_seed=seed,
            meter=meter,
            abandoned=abandoned,
        )
        solved = {trajectory.problem_id for trajectory in rolled.trajectories if _hidden_passes(trajectory)[-1]}
        meter.unit_done(len(unit.problems), len(solved))
        return rolled

    trajectories: list[Trajectory] = []
    for _, rolled in work_through(units, work, engine.parallel_calls):
        trajectories += rolled.trajectories
        left_out.update(rolled.dropped)
    if not trajectories:
        reasons = ", ".join(f"{count} {reason}" for reason, count in (+left_out).items())
        raise InputError(f"no conversation could be evaluated ({reasons}): lower max_tokens, or give other problems")
    passed, programs = count_passes(judged, trajectories, turns)
    return Evaluation(
        model=engine.model,
        model_revision=engine.model_revision,
        n=n,
        turns=turns,
        seed=seed,
        template=template.name,
        sampling=asdict(sampling),
        passed=passed,
        programs=programs,
        left_out=dict(+left_out),
        hacks=count_hacks(judged, trajectories, turns, template.feedback) if perturb else None,
    )


def _usable(problems: Iterable[Problem], perturb: bool, seed: int) -> tuple[list[Problem], Counter[str]]:
    """The problems that can be evaluated, perturbed if they are to be, by id; and how many cannot, by reason."""
    ordered = sorted(problems, key=lambda problem: problem.problem_id)
    judged = [problem for problem in ordered if problem.hidden_tests]
    left_out = Counter({NO_HIDDEN_TESTS: len(ordered) - len(judged)})
    if not judged:
        raise InputError(f"none of {len(ordered)} problems has hidden tests: nothing could be evaluated")
    if not perturb:
        return judged, left_out
    lying = [lie for problem in judged if (lie := perturbed(problem, seed)) is not None]
    if not lying:
        raise InputError(f"none of {len(judged)} problems has {NOTHING_TO_SWAP.removeprefix('no ')}: perturb others")
    left_out[NOTHING_TO_SWAP] = len(judged) - len(lying)
    return lying, left_out


def count_passes(
    problems: Sequence[Problem], trajectories: Iterable[Trajectory], turns: int
) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Per problem and turn: the programs that passed all hidden tests, and all programs that were due."""
    turns_due = {problem.problem_id: turns if problem.public_tests else 1 for problem in problems}
    passed = {problem_id: [0] * turns for problem_id in turns_due}
    programs = {problem_id: [0] * turns for problem_id in turns_due}
    for trajectory in trajectories:
        for turn in range(turns_due[trajectory.problem_id]):
            programs[trajectory.problem_id][turn] += 1
        for turn, passes in enumerate(_hidden_passes(trajectory)):
            passed[trajectory.problem_id][turn] += passes
    return passed, programs


def _hidden_passes(trajectory: Trajectory) -> list[bool]:
    return [turn.hidden_pass_rate == 1.0 for turn in trajectory.turns]


def compare(before: Evaluation, after: Evaluation) -> tuple[TurnScore, ...]:
    """Pass@1 after minus before, per turn both have, over the problems both have, with a paired interval.

    Raises InputError where they have no problem in common.
    """
    shared = sorted(before.programs.keys() & after.programs.keys())
    both = range(min(before.turns, after.turns))
    passed_0, programs_0, passed_1, programs_1 = (
        _array(counts, shared, both) for counts in (before.passed, before.programs, after.passed, after.programs)
    )
    paired = (programs_0 > 0) & (programs_1 > 0)  # a sandbox that failed may have left one without its other
    passed_0, programs_0, passed_1, programs_1 = (
        counts * paired for counts in (passed_0, programs_0, passed_1, programs_1)
    )
    turns = np.flatnonzero(paired.any(axis=0))
    if not len(turns):
        raise InputError("the two evaluations have no problem in common: evaluate both on the same version and side")
    passed_0, programs_0, passed_1, programs_1 = (
        counts[:, turns] for counts in (passed_0, programs_0, passed_1, programs_1)
    )
    gain = passed_1.sum(axis=0) / programs_1.sum(axis=0) - passed_0.sum(axis=0) / programs_0.sum(axis=0)
    resampled = _resampled_shares(passed_1, programs_1, seed=0) - _resampled_shares(passed_0, programs_0, seed=0)
    low, high = _percentiles(resampled)
    return tuple(_per_turn(TurnScore, turns, gain, low, high, np.minimum(programs_0, programs_1)))


def bootstrap_interval(passed: Array, programs: Array, seed: int) -> tuple[Array, Array]:
    """The ends of the 95 % interval of the share passed, per turn, over resampled problems; inputs are (problems, turns)."""
    return _percentiles(_resampled_shares(passed, programs, seed))


def _resampled_shares(passed: Array, programs: Array, seed: int) -> Array:
    """(RESAMPLES, turns): the share passed when as many problems are drawn, with replacement, from those there are.

    The draws depend on the seed and the number of problems alone: equal seeds resample two evaluations alike.
    """
    problems = len(passed)
    random = np.random.default_rng(seed)
    shares = []
    for _ in range(RESAMPLES):
        weights = np.bincount(random.integers(problems, size=problems), minlength=problems).astype(np.float64)
        with np.errstate(invalid="ignore"):  # no problem of a turn was drawn: nan, nothing is said about that turn
            shares.append((weights @ passed) / (weights @ programs))
    return np.stack(shares)


def _percentiles(values: Array) -> tuple[Array, Array]:
    tail = (1 - LEVEL) / 2
    low, high = np.nanquantile(values, [tail, 1 - tail], axis=0)
    return low, high


def _array(counts: Mapping[str, Sequence[int]], problem_ids: Sequence[str], turns: range) -> Array:
    """(problems, turns)"""
    rows = [[counts[problem_id][turn] for turn in turns] for problem_id in problem_ids]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(turns))


def _per_turn(
    kind: type[Kind], turns: Array, values: Array, low: Array, high: Array, programs: Array
) -> Iterator[Kind]:
    for place, turn in enumerate(turns):
        problems = int((programs[:, place] > 0).sum())
        yield kind(
            int(turn),
            float(values[place]),
            float(low[place]),
            float(high[place]),
            problems,
            int(programs[:, place].sum()),
        )
