"""What may be perturbed, and how: public tests that swap their expected outputs (`swap`, the kind of the Cobalt paper).

A pair of public tests can be swapped if no output satisfies both of their expectations under the problem's checker; so no
correct program passes a swapped test. The two come first among the perturbed tests, as feedback shows the first failure
only. Hidden tests and everything that rewards a program stay true.

A prompt is eligible if it has a program to lie about, its problem has such a pair, and no earlier feedback showed the true
output of either of the two: a conversation must not contradict itself. Pure functions; running the program is `perturb`'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from cobalt_data.ids import canonical_json
from cobalt_data.rows import Prompt, PublicOutcome, Turn
from sandbox import Judge, Test
from sandbox.checkers import outputs_match, trees_match

SWAP = "swap"

EXPECTED_FIELD = {"stdin": "output", "call": "expected"}  # an assert has no output of its own to swap
MARK = "\x00expectation\x00"  # an output that no test expects

ALREADY_PERTURBED = "perturbed already"
NO_TURN = "turn 0 has no feedback"
NO_PROGRAM = "its last completion has no program"
TOO_FEW_TESTS = "fewer than two public tests with an expected output"
SAME_OUTPUTS = "its public tests expect the same output"
SHOWN_BEFORE = "earlier feedback shows the true outputs"

LARGEST_FLOAT = 2**1000
_INTEGER_TOKEN = re.compile(r"(?<!\S)[+-]?[0-9]+(?!\S)")

Pair = tuple[int, int]  # positions among the public tests, ascending
Feedback = Callable[[Sequence[Test], Sequence[PublicOutcome], Judge], str]  # `Template.feedback`


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The pairs that may be swapped, or why there is none."""

    pairs: tuple[Pair, ...] = ()
    reason: str | None = None


def public_tests(prompt: Prompt) -> tuple[Test, ...]:
    return tuple(test for test in prompt.tests if test["public"])


def eligibility(prompt: Prompt, turns: Sequence[Turn], feedback: Feedback) -> Eligibility:
    """Whether `prompt` may be perturbed; `turns` are those of its trajectory, `feedback` words what they were told."""
    if prompt.perturbation is not None:
        return Eligibility(reason=ALREADY_PERTURBED)
    if prompt.turn == 0:
        return Eligibility(reason=NO_TURN)
    if turns[prompt.turn - 1].program is None:
        return Eligibility(reason=NO_PROGRAM)
    tests = public_tests(prompt)
    if sum(test["kind"] in EXPECTED_FIELD for test in tests) < 2:
        return Eligibility(reason=TOO_FEW_TESTS)
    pairs = swappable_pairs(tests, prompt.judge.checker)
    if not pairs:
        return Eligibility(reason=SAME_OUTPUTS)
    earlier = turns[: prompt.turn - 1]
    shown = {test for turn in earlier if (test := shown_test(tests, turn.public, prompt.judge, feedback)) is not None}
    pairs = _without(pairs, tests, shown)
    return Eligibility(tuple(pairs)) if pairs else Eligibility(reason=SHOWN_BEFORE)


def swappable_pairs(tests: Sequence[Test], checker: str) -> list[Pair]:
    return [
        (first, second)
        for first, second in combinations(range(len(tests)), 2)
        if _can_swap(tests[first], tests[second], checker)
    ]


def swap(tests: Sequence[Test], pair: Pair) -> tuple[Test, ...]:
    """The tests with the expectations of `pair` exchanged, these two first, the others behind them in their order."""
    first, second = pair
    swapped = (
        with_expected(tests[first], expected(tests[second])),
        with_expected(tests[second], expected(tests[first])),
    )
    return (*swapped, *(test for position, test in enumerate(tests) if position not in pair))


def shown_test(
    tests: Sequence[Test], outcomes: Sequence[PublicOutcome], judge: Judge, feedback: Feedback
) -> int | None:
    """The position of the test whose expected output the feedback to `outcomes` shows; None if it shows none.

    Found by asking: with another expectation the feedback would read differently. So it holds for any template.
    """
    told = feedback(tests, outcomes, judge)
    for position, test in enumerate(tests):
        if test["kind"] in EXPECTED_FIELD:
            marked = [*tests[:position], with_expected(test, MARK), *tests[position + 1 :]]
            if feedback(marked, outcomes, judge) != told:
                return position
    return None


def expected(test: Test) -> Any:
    return test[EXPECTED_FIELD[test["kind"]]]


def with_expected(test: Test, value: Any) -> Test:
    return {**test, EXPECTED_FIELD[test["kind"]]: value}


def _can_swap(first: Test, second: Test, checker: str) -> bool:
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


def _without(pairs: Sequence[Pair], tests: Sequence[Test], shown: Collection[int]) -> list[Pair]:
    """The pairs that touch no shown test, nor one that asks the same as a shown test."""
    questions = {_question(tests[position]) for position in shown}
    return [pair for pair in pairs if not any(_question(tests[position]) in questions for position in pair)]


def _question(test: Test) -> str:
    hidden = ("public", EXPECTED_FIELD.get(test["kind"]))
    return canonical_json({name: value for name, value in test.items() if name not in hidden})
