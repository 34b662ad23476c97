"""Rewards: functions of what is known about one completion, with a value in [-1, 1].

`paper` is the reward of Cobalt (arXiv 2602.03806), term by term; `pass_rate` and `binary` are the plain ones. A completion
that the sandbox failed to judge has no reward at all and never gets here (`cobalt_train.rollout` masks it).

Where the paper's prose leaves a number open, the constant says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cobalt_data.programs import THINK_END, strip_thinking
from cobalt_train.repetition import is_repetitive

NO_CODE = -1.0
BAD_FORMAT = -0.9

ALL_TESTS, HALF_OF_TESTS, SOME_TESTS, NO_TESTS = 1.0, 0.2, 0.0, -0.1

IMPROVEMENT = 0.1  # what closing the whole gap between the best earlier program and all tests is worth
STAGNATION = -0.1  # a failing program that is no better than the best earlier one, plus up to REGRESSION below that
REGRESSION = 0.1

THINKING_TOKENS, RESPONSE_TOKENS, EXPLANATION_TOKENS = 4096, 2048, 512  # beyond these a part is too long
TOO_LONG_ON_SUCCESS = -0.01  # once, however many parts are too long
TOO_LONG_ON_FAILURE = -0.1  # for each part that is too long
THINKING_BONUS, THINKING_SCALE = 0.075, 1024  # thought before a failure is worth up to this much
REFLECTION_BONUS = 0.025  # and words of doubt in it up to this much
REFLECTION_COUNT = 5  # words for the full bonus; ours, the paper says only "up to"
REFLECTION = re.compile(
    r"\b(?:wait|however|alternatively|actually|let me (?:check|verify)|double-check)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class RewardInput:
    """All that a reward may depend on. Token counts are in the policy's own tokens.

    `thinks` tells whether the policy is a reasoning model, whose completions must hold exactly one `</think>`. The thinking
    is what stands before it, the response what follows, the explanation the response without its program.
    """

    completion: str
    program: str | None
    pass_rate: float  # over all tests, public and hidden
    prev_best_pass_rate: float  # the best of the earlier programs in the prompt, 0 where there is none
    finish_reason: str = "stop"
    thinks: bool = False
    thinking_tokens: int = 0
    response_tokens: int = 0
    explanation_tokens: int = 0

    @property
    def response(self) -> str:
        return strip_thinking(self.completion, max_chars=None)

    @property
    def thinking(self) -> str:
        return self.completion.rpartition(THINK_END)[0]


Reward = Callable[[RewardInput], float]


def paper(given: RewardInput) -> float:
    """The sum of the outcome (base and improvement), the format term and the length term, clamped to [-1, 1]."""
    if given.program is None:
        return NO_CODE
    outcome = outcome_term(given.pass_rate, given.prev_best_pass_rate)
    total = outcome + format_term(given) + length_term(given, outcome)
    return max(-1.0, min(1.0, total))


def pass_rate(given: RewardInput) -> float:
    """The share of tests that the program passes; 0 without a program."""
    return given.pass_rate


def binary(given: RewardInput) -> float:
    """1 if the program passes every test, else 0."""
    return float(given.pass_rate == 1.0)


REWARDS: Mapping[str, Reward] = {"paper": paper, "pass_rate": pass_rate, "binary": binary}


def outcome_term(pass_rate: float, prev_best: float) -> float:
    """The base by pass rate; after an earlier partial success, a failing program is measured against the best so far.

    A better one adds its share of the gap to the base. One that is not better has its base replaced: standing still at 0.9
    scores -0.1, less than a first attempt that passes nothing but costs no progress.
    """
    base = base_term(pass_rate)
    if pass_rate == 1 or prev_best == 0:
        return base
    if pass_rate > prev_best:
        return base + IMPROVEMENT * (pass_rate - prev_best) / (1 - prev_best)
    return STAGNATION + REGRESSION * (pass_rate - prev_best) / prev_best


def base_term(pass_rate: float) -> float:
    if pass_rate == 1:
        return ALL_TESTS
    if pass_rate >= 0.5:
        return HALF_OF_TESTS
    return SOME_TESTS if pass_rate > 0 else NO_TESTS


def format_term(given: RewardInput) -> float:
    """A fine for repetition, for thinking that is not closed exactly once, and for fences other than one python block."""
    misthought = given.thinks and given.completion.count(THINK_END) != 1
    return (
        BAD_FORMAT if misthought or not has_one_python_block(given.response) or is_repetitive(given.completion) else 0.0
    )


def has_one_python_block(response: str) -> bool:
    """One fence that opens a python block, one that closes it, and no other backticks of a fence."""
    return response.count("```") == 2 and response.find("```python") == response.find("```")


def length_term(given: RewardInput, outcome: float) -> float:
    """After success, a small fine for excess; after failure, a bonus for thought and a large fine for excess."""
    too_long = (
        (given.thinking_tokens > THINKING_TOKENS)
        + (given.response_tokens > RESPONSE_TOKENS)
        + (given.explanation_tokens > EXPLANATION_TOKENS)
    )
    if outcome >= 0:
        return TOO_LONG_ON_SUCCESS if too_long else 0.0
    reflections = sum(1 for _ in REFLECTION.finditer(given.thinking))
    return (
        THINKING_BONUS * math.tanh(given.thinking_tokens / THINKING_SCALE)
        + REFLECTION_BONUS * min(1.0, reflections / REFLECTION_COUNT)
        + TOO_LONG_ON_FAILURE * too_long
    )


def count_parts(completion: str, program: str | None, count_tokens: Callable[[str], int]) -> dict[str, int]:
    """The three token counts of a `RewardInput`."""
    thinking, _, _ = completion.rpartition(THINK_END)
    response = strip_thinking(completion, max_chars=None)
    explanation = response if program is None else response.replace(program, "")
    return {
        "thinking_tokens": count_tokens(thinking) if thinking else 0,
        "response_tokens": count_tokens(response),
        "explanation_tokens": count_tokens(explanation),
    }
