"""Expectations that lie: which public tests may be said to expect something else, and what.

- `swap` (the kind of the Cobalt paper): two public tests trade their expected outputs.
- `off-by-one`: a public test that expects a number, or nothing but numbers, expects one more or one less (the first of them).

What is said and what is true differ under the problem's checker: no output satisfies both, so no correct program passes such
a test. The tests that lie come first, as feedback shows the first failure only. Hidden tests and everything that rewards a
program stay true.

A prompt is eligible if it has a program to lie about, its problem has such tests, and neither earlier feedback nor (with
`spare_statement`) the first message showed the true output of one that would lie: a conversation must not contradict itself.
Pure functions; running the program is `perturb`'s.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from typing import Any

from cobalt_data.ids import canonical_json
from cobalt_data.rows import Prompt, Turn, opening_of
from cobalt_data.shown import (
    EXPECTED_FIELD,
    Feedback,
    expected,
    position_in_feedback,
    positions_in_message,
    with_expected,
)
from sandbox import Judge, Test
from sandbox.checkers import outputs_match, trees_match
from sandbox.values import decode, encode

SWAP, OFF_BY_ONE = "swap", "off-by-one"
EXPECTATION_KINDS = (SWAP, OFF_BY_ONE)

ALREADY_PERTURBED = "perturbed already"
NO_TURN = "turn 0 has no feedback"
NO_PROGRAM = "its last completion has no program"
TOO_FEW_TESTS = {
    SWAP: "fewer than two public tests with an expected output",
    OFF_BY_ONE: "no public test with an expected output",
}
NOTHING_TO_CHANGE = {SWAP: "its public tests expect the same output", OFF_BY_ONE: "its public tests expect no number"}
SHOWN_BEFORE = "earlier feedback shows the true outputs"
SHOWN_AT_FIRST = "its first message shows the true outputs"

LARGEST_FLOAT = 2**1000
_INTEGER_TOKEN = re.compile(r"(?<!\S)[+-]?[0-9]+(?!\S)")
_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?")


@dataclass(frozen=True, slots=True)
class Lie:
    """`tests` are positions among the public tests, `false_outputs` what each of them is said to expect."""

    kind: str
    tests: tuple[int, ...]
    false_outputs: tuple[Any, ...]

    def told(self, tests: Sequence[Test]) -> tuple[Test, ...]:
        """The public tests as they are told: those that lie first, the others behind them in their order."""
        lying = zip(self.tests, self.false_outputs, strict=True)
        return (
            *(with_expected(tests[position], output) for position, output in lying),
            *(tests[position] for position in self._honest(len(tests))),
        )

    def facts(self, tests: Sequence[Test]) -> dict[str, Any]:
        """What is recorded of it, besides kind and seed."""
        true = [expected(tests[position]) for position in self.tests]
        return {"tests": list(self.tests), "true_outputs": true, "false_outputs": list(self.false_outputs)}

    def order(self, tests: int) -> list[int]:
        """The positions of the tests in the order in which they are told."""
        return [*self.tests, *self._honest(tests)]

    def _honest(self, tests: int) -> Iterator[int]:
        return (position for position in range(tests) if position not in self.tests)


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The lies that may be told, or why there is none."""

    lies: tuple[Lie, ...] = ()
    reason: str | None = None


def public_tests(prompt: Prompt) -> tuple[Test, ...]:
    return tuple(test for test in prompt.tests if test["public"])


def unfit(prompt: Prompt, turns: Sequence[Turn]) -> str | None:
    """Why `prompt` can be perturbed in no way at all; `turns` are those of its trajectory."""
    if prompt.perturbation is not None:
        return ALREADY_PERTURBED
    if prompt.turn == 0:
        return NO_TURN
    return NO_PROGRAM if turns[prompt.turn - 1].program is None else None


def eligibility(
    kind: str, prompt: Prompt, turns: Sequence[Turn], feedback: Feedback, spare_statement: bool = False
) -> Eligibility:
    """Whether `prompt` may be told such a lie; `feedback` words what its trajectory was told."""
    reason = unfit(prompt, turns)
    if reason is not None:
        return Eligibility(reason=reason)
    tests = public_tests(prompt)
    told = [position_in_feedback(tests, turn.public, prompt.judge, feedback) for turn in turns[: prompt.turn - 1]]
    first_message = opening_of(prompt.prompt, prompt.turn)[-1]["content"]
    return eligible_lies(
        kind,
        tests,
        prompt.judge,
        in_feedback={position for position in told if position is not None},
        first_message=first_message if spare_statement else "",
    )


def eligible_lies(
    kind: str, tests: Sequence[Test], judge: Judge, in_feedback: Collection[int] = (), first_message: str = ""
) -> Eligibility:
    """The lies about `tests` that contradict neither what feedback has shown nor `first_message`."""
    if sum(test["kind"] in EXPECTED_FIELD for test in tests) < (2 if kind == SWAP else 1):
        return Eligibility(reason=TOO_FEW_TESTS[kind])
    lies = swaps(tests, judge.checker) if kind == SWAP else off_by_ones(tests, judge.checker)
    if not lies:
        return Eligibility(reason=NOTHING_TO_CHANGE[kind])
    lies = _without(lies, tests, in_feedback)
    if not lies:
        return Eligibility(reason=SHOWN_BEFORE)
    lies = _without(lies, tests, positions_in_message(first_message, tests, judge))
    return Eligibility(tuple(lies)) if lies else Eligibility(reason=SHOWN_AT_FIRST)


def swaps(tests: Sequence[Test], checker: str) -> list[Lie]:
    return [
        Lie(SWAP, (first, second), (expected(tests[second]), expected(tests[first])))
        for first, second in combinations(range(len(tests)), 2)
        if _exclude_each_other(tests[first], tests[second], checker)
    ]


def off_by_ones(tests: Sequence[Test], checker: str) -> list[Lie]:
    found = []
    for position, test in enumerate(tests):
        for step in (-1, 1):
            changed = _stepped(test, step)
            if changed is not None and _exclude_each_other(test, with_expected(test, changed), checker):
                found.append(Lie(OFF_BY_ONE, (position,), (changed,)))
    return found


def _stepped(test: Test, step: int) -> Any | None:
    """The test's expected output with its first number changed by `step`; None where it holds anything but numbers."""
    if test["kind"] == "stdin":
        tokens = test["output"].split()
        if not tokens or not all(map(_NUMBER.fullmatch, tokens)):
            return None
        return test["output"].replace(tokens[0], str(Decimal(tokens[0]) + step), 1)
    if test["kind"] == "call":
        value = _value_stepped(decode(test["expected"]), step)
        return None if value is None else encode(value)
    return None


def _value_stepped(value: Any, step: int) -> Any | None:
    if isinstance(value, (list, tuple)):
        first = _value_stepped(value[0], step) if value and all(map(_is_number, value)) else None
        return None if first is None else type(value)((first, *value[1:]))
    return value + step if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < LARGEST_FLOAT  # of which nan is none


def _exclude_each_other(first: Test, second: Test, checker: str) -> bool:
    """Whether no output satisfies both expectations. Under a tolerance that takes more than being unequal."""
    kind = first["kind"]
    if kind != second["kind"] or kind not in EXPECTED_FIELD:
        return False
    one, other = expected(first), expected(second)
    if checker.startswith("float:"):
        checker = f"float:{2.001 * float(checker.removeprefix('float:'))!r}"
        in_floats = _text_in_floats if kind == "stdin" else _tree_in_floats
        one, other = in_floats(one), in_floats(other)  # a tolerant checker wants two integers to be the same text
    if kind == "stdin":
        return not outputs_match(checker, one, other) and not outputs_match(checker, other, one)
    return not trees_match(one, other, checker) and not trees_match(other, one, checker)


def _text_in_floats(text: str) -> str:
    return _INTEGER_TOKEN.sub(r"\g<0>.0", text)


def _tree_in_floats(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_tree_in_floats(item) for item in tree]
    if isinstance(tree, dict):
        return {key: _tree_in_floats(item) for key, item in tree.items()}
    return float(tree) if type(tree) is int and abs(tree) < LARGEST_FLOAT else tree


def _without(lies: Sequence[Lie], tests: Sequence[Test], shown: Collection[int]) -> list[Lie]:
    """The lies that touch no shown test, nor one that asks the same as a shown test."""
    questions = {_question(tests[position]) for position in shown}
    return [lie for lie in lies if not any(_question(tests[position]) in questions for position in lie.tests)]


def _question(test: Test) -> str:
    hidden = ("public", EXPECTED_FIELD.get(test["kind"]))
    return canonical_json({name: value for name, value in test.items() if name not in hidden})
