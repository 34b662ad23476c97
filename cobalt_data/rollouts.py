"""Rolling out trajectories: conversations of a model with the sandbox, turn by turn.

All conversations of a unit go through their turns together: one call of the engine draws a program for each, then the
sandbox judges them all by all tests, public and hidden. Conversations whose chats are still the same (the group of a problem
at turn 0) are one prompt with several seeds, so the engine computes that prompt once.

- Nothing stops early: a program that passes everything gets its feedback and a next turn like any other.
- A problem without public tests has nothing to give feedback from: its conversations have turn 0 only, and no feedback.
- A conversation whose next prompt, with room for the answer, is longer than the model's context, or longer than asked for,
  ends with the turns it has. One that does not fit at turn 0 is dropped.
- A program that the sandbox could not judge, after its retries, says nothing about the model: its conversation is dropped.

What becomes of a program is `cobalt_data.judged_turns`'s to say. What is dropped is counted by reason. The assistant's text is kept without its thinking, which is what the next turn is shown;
so a stored prompt is exactly what was served.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from cobalt_data.engines.base import Completion, Engine, Sampling, Session
from cobalt_data.errors import SandboxError
from cobalt_data.ids import derive_seed
from cobalt_data.judged_turns import judge, judged_turn
from cobalt_data.perturbation import Lie
from cobalt_data.programs import extract_program, strip_thinking
from cobalt_data.progress import Meter
from cobalt_data.rows import Chat, Message, Problem, Trajectory, Turn
from cobalt_data.templates import Template
from cobalt_data.units import Abandoned, Unit
from sandbox import Pool, Verdict

PROMPT_TOO_LONG = "prompt too long for the model"
SANDBOX_FAILED = "the sandbox failed"


@dataclass(frozen=True, slots=True)
class Draw:
    """One turn as it was drawn and judged: what a learner needs and a trajectory does not record."""

    completion: Completion
    verdict: Verdict
    tests: tuple[Verdict, ...]  # of every test, in the problem's order


@dataclass(frozen=True, slots=True)
class RolledOut:
    """The trajectories of a unit, by problem and sample index, and how many conversations were dropped, by reason.

    `draws[i][t]` is turn t of `trajectories[i]`.
    """

    trajectories: tuple[Trajectory, ...]
    draws: tuple[tuple[Draw, ...], ...]
    dropped: Mapping[str, int]


@dataclass(slots=True)
class _Conversation:
    problem: Problem
    sample_index: int
    messages: list[Message]
    lie: Lie | None = None
    turns: list[Turn] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)
    ended: bool = False
    dropped: str | None = None

    @property
    def goes_on(self) -> bool:
        return not self.ended and self.dropped is None

    @property
    def said(self) -> tuple[str, ...]:
        return tuple(message["content"] for message in self.messages)


def recorded_sampling(sampling: Sampling, template: Template, turns: int) -> dict[str, Any]:
    """How a trajectory was drawn, as its row and its id record it."""
    return {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "template": template.name,
        "template_hash": template.hash,
        "turns": turns,
    }


def roll_out(
    unit: Unit,
    *,
    engine: Engine,
    pool: Pool,
    template: Template,
    sampling: Sampling,
    turns: int,
    run_seed: int,
    longest_prompt: int | None = None,
    lies: Mapping[str, Lie] = MappingProxyType({}),
    meter: Meter | None = None,
    abandoned: threading.Event | None = None,
) -> RolledOut:
    """Rolls out the conversations of a unit. Raises EngineError or SandboxUnavailable; Abandoned if that event is set.

    `longest_prompt` bounds the tokens of a prompt where the model's context is not to. `lies`: what the public tests of a
    problem are said to expect, by problem_id. The result depends on the arguments alone if the engine's completions do.
    """
    meter = meter or Meter(problems=len(unit.problems), steps=turns)
    conversations = [
        _Conversation(problem, index, list(template.first_turn(problem)), lies.get(problem.problem_id))
        for problem, indices in zip(unit.problems, unit.samples, strict=True)
        for index in indices
    ]
    room, session = _room(engine, sampling, longest_prompt), engine.session()
    for turn in range(turns):
        _end_what_does_not_fit(conversations, engine, room)
        going = [conversation for conversation in conversations if conversation.goes_on]
        if not going:
            meter.turns_left_out(turns - turn)
            break
        _leave_if(abandoned)
        with meter.generating():
            completions = _complete(going, session, sampling, run_seed, turn)
        _judge_and_answer(going, completions, pool, template)
        meter.turn_done(len(going), sum(completion.completion_tokens for completion in completions))
    _leave_if(abandoned)  # what a pool that was being closed did to the last turn must not count
    recorded = recorded_sampling(sampling, template, turns)
    kept = [conversation for conversation in conversations if conversation.dropped is None]
    return RolledOut(
        tuple(
            replace(
                blank_trajectory(
                    conversation.problem, conversation.sample_index, engine, recorded, run_seed, conversation.lie
                ),
                messages=tuple(conversation.messages),
                turns=tuple(conversation.turns),
            )
            for conversation in kept
        ),
        tuple(tuple(conversation.draws) for conversation in kept),
        Counter(conversation.dropped for conversation in conversations if conversation.dropped is not None),
    )


def _leave_if(abandoned: threading.Event | None) -> None:
    if abandoned is not None and abandoned.is_set():
        raise Abandoned


def _room(engine: Engine, sampling: Sampling, longest_prompt: int | None) -> int | None:
    """The most tokens that a prompt may have; None for any number."""
    left = None if engine.context is None else engine.context - sampling.max_tokens
    return min((limit for limit in (longest_prompt, left) if limit is not None), default=None)


def _end_what_does_not_fit(conversations: Sequence[_Conversation], engine: Engine, room: int | None) -> None:
    """Before a turn: ends conversations whose prompt has more than `room` tokens, drops those that have no turn yet."""
    if room is None:
        return
    tokens: dict[tuple[str, ...], int] = {}  # a group's chat is counted once
    for conversation in conversations:
        if not conversation.goes_on:
            continue
        chat = conversation.said
        if chat not in tokens:
            tokens[chat] = engine.count_tokens(conversation.messages)
        if tokens[chat] > room:
            conversation.ended = True
            conversation.dropped = None if conversation.turns else PROMPT_TOO_LONG


def _complete(
    going: Sequence[_Conversation], session: Session, sampling: Sampling, run_seed: int, turn: int
) -> list[Completion]:
    """One completion per conversation, in their order, from one call; equal chats are sent once, with all their seeds."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for position, conversation in enumerate(going):
        groups.setdefault(conversation.said, []).append(position)
    chats: list[Chat] = [tuple(going[positions[0]].messages) for positions in groups.values()]
    seeds = [
        [
            derive_seed(run_seed, going[position].problem.problem_id, going[position].sample_index, turn)
            for position in group
        ]
        for group in groups.values()
    ]
    drawn = session.complete(chats, seeds, sampling)
    by_position = {
        position: completion
        for group, completions in zip(groups.values(), drawn, strict=True)
        for position, completion in zip(group, completions, strict=True)
    }
    return [by_position[position] for position in range(len(going))]


def _judge_and_answer(
    going: Sequence[_Conversation], completions: Sequence[Completion], pool: Pool, template: Template
) -> None:
    """Judges the programs of a turn, all at once, and appends to each conversation what was said and what came of it."""
    programs = [extract_program(completion.text) for completion in completions]
    judged = [
        judge(program, conversation.problem, conversation.lie, pool)
        for program, conversation in zip(programs, going, strict=True)
    ]
    for conversation, completion, program, runs in zip(going, completions, programs, judged, strict=True):
        try:
            results = [run.result() for run in runs]
        except SandboxError:
            conversation.dropped = SANDBOX_FAILED
            continue
        turn = judged_turn(conversation.problem, conversation.lie, completion, program, results, template)
        conversation.turns.append(turn)
        conversation.draws.append(
            Draw(completion, results[0].verdict, tuple(test.verdict for test in results[0].tests))
        )
        conversation.messages.append({"role": "assistant", "content": strip_thinking(completion.text)})
        if turn.feedback:
            conversation.messages.append({"role": "user", "content": turn.feedback})
        else:
            conversation.ended = True


def blank_trajectory(
    problem: Problem,
    sample_index: int,
    engine: Engine,
    recorded: Mapping[str, Any],
    run_seed: int,
    lie: Lie | None = None,
) -> Trajectory:
    """The trajectory to be, which has its id already: that depends on how it is drawn, not on what comes of it."""
    return Trajectory(
        problem_id=problem.problem_id,
        sample_index=sample_index,
        model=engine.model,
        model_revision=engine.model_revision,
        engine=engine.name,
        sampling=recorded,
        seed=run_seed,
        perturbation=None if lie is None else {"kind": lie.kind, "seed": run_seed, **lie.facts(problem.public_tests)},
        messages=(),
        turns=(),
        split=problem.split,
    )
