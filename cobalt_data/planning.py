"""What a collection will cost, before it is started: conversations, tokens and time.

Prompts are counted as they would be served, with a typical feedback to each program. How long completions are and how fast
they come is measured on the first units, with at most 64 tokens per completion: the chance of a completion to end at a token is
taken to be the same at every token. Where no completion ended within these, each is expected to take all of `max_tokens`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cobalt_data.collection import CollectConfig, Work, lay_out
from cobalt_data.dataset import Version
from cobalt_data.engines.base import Completion, Engine, Sampling
from cobalt_data.ids import derive_seed
from cobalt_data.rows import Problem, PublicOutcome
from cobalt_data.templates import Template
from cobalt_data.units import Unit, work_through
from sandbox import Verdict

CALIBRATION_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Plan:
    """What is left to be done, expected; `seconds` and `completion_tokens` as `basis` says."""

    problems: int
    trajectories: int
    already_there: int
    programs: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    basis: str


def plan(version: Version, engine: Engine, config: CollectConfig) -> Plan:
    """Foresees a collection that nothing has been done of yet. Raises as `lay_out` does, and EngineError."""
    work = lay_out(version, engine, config)
    if not work.units:
        return Plan(0, 0, work.present, 0, 0, 0, 0.0, "nothing is left to collect")
    measured, seconds = _calibrate(work, engine, config)
    length = expected_length(measured, config.sampling.max_tokens)
    drawn = sum(completion.completion_tokens for completion in measured)
    programs, prompt_tokens = 0, 0.0
    for unit in work.units:
        for problem, samples in zip(unit.problems, unit.samples, strict=True):
            turns = config.turns if problem.public_tests else 1
            first, added = _prompt_lengths(problem, work.template, engine)
            programs += len(samples) * turns
            prompt_tokens += len(samples) * sum(first + turn * (added + length) for turn in range(turns))
    completion_tokens = programs * length
    return Plan(
        problems=work.problems,
        trajectories=work.conversations - work.present,
        already_there=work.present,
        programs=programs,
        prompt_tokens=round(prompt_tokens),
        completion_tokens=round(completion_tokens),
        seconds=completion_tokens * seconds / drawn if drawn else 0.0,
        basis=f"measured on {len(measured)} completions in {seconds:.1f} s, {drawn / seconds:.0f} tokens/s",
    )


def expected_length(measured: Sequence[Completion], max_tokens: int) -> float:
    """The mean length of completions of up to `max_tokens`, from some that were cut short.

    With the same chance h of ending at every token: (1 - (1 - h)^max_tokens) / h, and h estimated as ends per token.
    """
    tokens = sum(completion.completion_tokens for completion in measured)
    ends = sum(completion.finish_reason == "stop" for completion in measured)
    if not ends:
        return float(max_tokens)
    chance = ends / max(tokens, ends)  # an endpoint may not count the token that ends an answer
    return (1 - (1 - chance) ** max_tokens) / chance


def _calibrate(work: Work, engine: Engine, config: CollectConfig) -> tuple[list[Completion], float]:
    """Completions for turn 0 of the first units, as many at once as in earnest, and the seconds they took."""
    short = replace(config.sampling, max_tokens=min(CALIBRATION_TOKENS, config.sampling.max_tokens))
    measured: list[Completion] = []
    started = time.monotonic()
    units = work.units[: engine.parallel_calls]
    for _, completions in work_through(
        units, lambda unit, _: _draw(unit, engine, work.template, short, config.seed), len(units)
    ):
        measured += completions
    return measured, time.monotonic() - started


def _draw(unit: Unit, engine: Engine, template: Template, sampling: Sampling, seed: int) -> list[Completion]:
    chats = [template.first_turn(problem) for problem in unit.problems]
    seeds = [
        [derive_seed(seed, problem.problem_id, index, 0) for index in samples]
        for problem, samples in zip(unit.problems, unit.samples, strict=True)
    ]
    return [completion for completions in engine.complete(chats, seeds, sampling) for completion in completions]


def _prompt_lengths(problem: Problem, template: Template, engine: Engine) -> tuple[int, int]:
    """Tokens of the first prompt, and what a turn adds to it besides the answer: here, a wrong answer's feedback."""
    chat = list(template.first_turn(problem))
    first = engine.count_tokens(chat)
    wrong = [PublicOutcome(Verdict.WRONG_ANSWER, stdout="0", stderr="", returned="0")] * len(problem.public_tests)
    feedback = template.feedback(problem.public_tests, wrong, problem.judge)
    chat += [{"role": "assistant", "content": ""}, {"role": "user", "content": feedback}]
    return first, engine.count_tokens(chat) - first
