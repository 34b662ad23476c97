"""Whole trajectories, rolled out by the policy under training: what `grpo-mt` and `verpo` learn from.

The conversations are those of collection (`cobalt_data.rollouts`): feedback from the public tests, nothing stops early, the
sandbox runs the programs of one unit while the engine writes those of the next. What is new is credit. The group of an
online algorithm is all trajectories of a problem; every turn of every trajectory becomes one row with a scalar advantage. The
prompts of a trajectory are nested, and all of a problem begin alike: what they share is computed once (`cobalt_train.packing`).

A trajectory of which the sandbox could not judge a program is masked whole: it has no vote and is not learned from.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cobalt_data.cut import context
from cobalt_data.engines.token_engine import TokenEngine
from cobalt_data.ids import derive_seed
from cobalt_data.progress import Meter
from cobalt_data.rollouts import SANDBOX_FAILED, Draw, roll_out
from cobalt_data.rollouts import RolledOut as UnitRolledOut
from cobalt_data.rows import Chat, Problem, Prompt, Trajectory
from cobalt_data.templates import Template
from cobalt_data.units import Unit, make_units, work_through
from cobalt_train.advantages import ADVANTAGES, is_dead
from cobalt_train.config import TrainConfig
from cobalt_train.credit import broadcast, verpo_advantages, verpo_outcomes, verpo_turn_rewards
from cobalt_train.rewarding import Rewarder
from cobalt_train.rollout import ROWS_PER_CALL, Group, Row, executed
from sandbox import Pool, Verdict


@dataclass(frozen=True, slots=True)
class Attempts:
    """The trajectories of one problem that could be judged, by sample index: n of up to T turns."""

    problem: Problem
    trajectories: tuple[Trajectory, ...]
    draws: tuple[tuple[Draw, ...], ...]

    @property
    def taken(self) -> Tensor:
        """(n, T) bool: the turns that there are."""
        lengths = torch.tensor([len(draws) for draws in self.draws])
        return torch.arange(int(lengths.max())) < lengths[:, None]

    @property
    def passed(self) -> Tensor:
        """(n, T, J) bool: which tests the program of a turn passed."""
        passed = torch.zeros(*self.taken.shape, len(self.problem.tests), dtype=torch.bool)
        for sample, draws in enumerate(self.draws):
            for turn, draw in enumerate(draws):
                passed[sample, turn] = torch.tensor([verdict is Verdict.PASSED for verdict in draw.tests])
        return passed


@dataclass(frozen=True, slots=True)
class Credit:
    """What the turns of a group are worth, both (n, T); where it is dead, no advantage differs from 0."""

    rewards: Tensor
    advantages: Tensor
    dead: bool


@dataclass(frozen=True, slots=True)
class RolledOut:
    """Per problem its attempts; `masked` trajectories have none. Seconds: in the engine, and of the rest."""

    attempts: tuple[Attempts, ...]
    masked: int
    generate_seconds: float
    judge_seconds: float


def roll_out_problems(
    problems: Sequence[Problem],
    step: int,
    engine: TokenEngine,
    pool: Pool,
    template: Template,
    longest_prompt: int,
    config: TrainConfig,
) -> RolledOut:
    """`config.group_size` trajectories of each problem. Raises InputError, EngineError or SandboxUnavailable."""
    size, started = config.group_size, time.perf_counter()
    units = make_units(problems, [range(size)] * len(problems), max(1, ROWS_PER_CALL // size))
    meter = Meter(len(problems), steps=len(units) * config.turns)

    def work(unit: Unit, abandoned: threading.Event) -> UnitRolledOut:
        return roll_out(
            unit,
            engine=engine,
            pool=pool,
            template=template,
            sampling=config.sampling(),
            turns=config.turns,
            run_seed=derive_seed(config.seed, "trajectory", step),
            longest_prompt=longest_prompt,
            meter=meter,
            abandoned=abandoned,
        )

    if len(units) == 1:
        rolled = [work(units[0], threading.Event())]  # in this thread, for the reason that `roll_out_groups` has
    else:
        finished = {unit.name: done for unit, done in work_through(units, work, engine.parallel_calls)}
        rolled = [finished[unit.name] for unit in units]
    attempts = tuple(attempt for unit, done in zip(units, rolled, strict=True) for attempt in _attempts(unit, done))
    progress = meter.snapshot()
    generating = progress.model_share * progress.seconds
    return RolledOut(
        attempts,
        sum(done.dropped.get(SANDBOX_FAILED, 0) for done in rolled),
        generating,
        time.perf_counter() - started - generating,
    )


def _attempts(unit: Unit, rolled: UnitRolledOut) -> Iterator[Attempts]:
    pairs = list(zip(rolled.trajectories, rolled.draws, strict=True))
    for problem in unit.problems:
        own = [pair for pair in pairs if pair[0].problem_id == problem.problem_id]
        yield Attempts(problem, tuple(trajectory for trajectory, _ in own), tuple(draws for _, draws in own))


def grpo_mt_credit(attempts: Attempts, rewarder: Rewarder, config: TrainConfig) -> Credit:
    """The reward of a trajectory's final (or best) program, and the advantage it has in its group, for all of its turns."""
    rewards = torch.tensor([_outcome(*pair, rewarder, config.outcome) for pair in _pairs(attempts)]).double()
    everyone = torch.ones(1, len(rewards), dtype=torch.bool)
    advantages = ADVANTAGES[config.advantage](rewards[None], everyone)[0]
    taken = attempts.taken
    return Credit(broadcast(rewards, taken), broadcast(advantages, taken), bool(is_dead(rewards[None], everyone)))


def verpo_credit(attempts: Attempts, config: TrainConfig) -> Credit:
    """The outcome of a trajectory plus the dense reward of each turn (`cobalt_train.credit`)."""
    settings, taken = config.verpo(), attempts.taken
    solved = [[rate == 1.0 for rate in trajectory.pass_rates] for trajectory in attempts.trajectories]
    succeeded = [turns[-1] if config.outcome == "final" else any(turns) for turns in solved]
    programs = [turns.index(True) + 1 if any(turns) else len(turns) for turns in solved]
    outcomes = verpo_outcomes(torch.tensor(succeeded), torch.tensor(programs), settings)
    turn_rewards = verpo_turn_rewards(attempts.passed, taken, settings)
    advantages = verpo_advantages(outcomes, turn_rewards, taken, settings)
    rewards = broadcast(outcomes, taken) + settings.beta * turn_rewards
    return Credit(rewards, advantages, dead=not bool(advantages.any()))


def _outcome(trajectory: Trajectory, draws: Sequence[Draw], rewarder: Rewarder, outcome: str) -> float:
    """The reward of the final program, or the highest of all, each rewarded as an answer to what stood before it."""
    rates, last = trajectory.pass_rates, len(draws) - 1
    return max(
        rewarder(
            f"turn {turn} of trajectory {trajectory.sample_index} of problem {trajectory.problem_id}",
            draws[turn].completion,
            trajectory.turns[turn].program,
            rates[turn],
            max(rates[:turn], default=0.0),
        )
        for turn in ([last] if outcome == "final" else range(last + 1))
    )


def rows_of(attempts: Attempts, credit: Credit, engine: TokenEngine) -> Iterator[tuple[Group, Tensor]]:
    """Per prompt that was served, turn by turn: its completions and their advantages (m,)."""
    for turn in range(credit.rewards.shape[1]):
        served: dict[tuple[str, ...], tuple[Chat, list[int]]] = {}
        for sample, trajectory in enumerate(attempts.trajectories):
            if turn < len(trajectory.turns):
                chat = context(trajectory.messages, len(trajectory.turns), turn)
                texts = tuple(message["content"] for message in chat)
                served.setdefault(texts, (chat, []))[1].append(sample)
        for chat, samples in served.values():
            prompt_ids = tuple(engine.render(chat))
            prompt = _prompt(attempts.trajectories[samples[0]], attempts.problem, turn, chat, len(prompt_ids))
            rows = tuple(_row(attempts, credit, sample, turn) for sample in samples)
            name = f"{prompt.problem_id}, turn {turn}, sample {rows[0].sample_index}"
            yield Group(name, prompt, prompt_ids, rows), credit.advantages[samples, turn]


def _row(attempts: Attempts, credit: Credit, sample: int, turn: int) -> Row:
    trajectory, draw = attempts.trajectories[sample], attempts.draws[sample][turn]
    return Row(
        sample_index=trajectory.sample_index,
        completion=draw.completion,
        program=trajectory.turns[turn].program,
        verdict=draw.verdict,
        pass_rate=trajectory.turns[turn].pass_rate,
        reward=credit.rewards[sample, turn].item(),
        executed_tests=executed(draw.tests),
    )


def _prompt(trajectory: Trajectory, problem: Problem, turn: int, chat: Chat, prompt_tokens: int) -> Prompt:
    return Prompt(
        trajectory_id=None,
        problem_id=problem.problem_id,
        turn=turn,
        prompt=chat,
        tests=problem.tests,
        judge=problem.judge,
        prev_best_pass_rate=max(trajectory.pass_rates[:turn], default=0.0),
        perturbation=None,
        prompt_tokens=prompt_tokens,
        split=problem.split,
    )


def _pairs(attempts: Attempts) -> Iterator[tuple[Trajectory, Sequence[Draw]]]:
    return zip(attempts.trajectories, attempts.draws, strict=True)
