"""What a conversation has shown of the true outputs of its public tests: in earlier feedback, and in its first message.

A perturbed expectation must not contradict either. Feedback is asked: with another expectation it would read differently, which
holds for any template. The first message is searched for two forms that leave no doubt:

- of a call test, the call followed by its value (`>>> f(2)` and `4` on the next line, `assert f(2) == 4`, `f(2) -> 4`), spaces
  and the kind of quotes aside;
- of a stdin test, all lines of its input and, further down, all lines of its output, each line alone.

Left out: examples in any other form (values in prose, `nums = [1, 2]`), which would have to be guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from cobalt_data.feedback import shown_call, shown_value
from cobalt_data.rows import PublicOutcome
from sandbox import Judge, Test

EXPECTED_FIELD = {"stdin": "output", "call": "expected"}  # an assert has no output of its own
MARK = "\x00expectation\x00"  # an output that no test expects

Feedback = Callable[[Sequence[Test], Sequence[PublicOutcome], Judge], str]  # `Template.feedback`

_BETWEEN = r"(?:==|=>|->|➞|→|=|:|#|`|\)|\n|returns?|should(?:return|be)|is)*"  # a call and its value, spaces taken out


def expected(test: Test) -> Any:
    return test[EXPECTED_FIELD[test["kind"]]]


def with_expected(test: Test, value: Any) -> Test:
    return {**test, EXPECTED_FIELD[test["kind"]]: value}


def position_in_feedback(
    tests: Sequence[Test], outcomes: Sequence[PublicOutcome], judge: Judge, feedback: Feedback
) -> int | None:
    """The position of the test whose expected output the feedback to `outcomes` shows; None if it shows none."""
    told = feedback(tests, outcomes, judge)
    for position, test in enumerate(tests):
        if test["kind"] in EXPECTED_FIELD:
            marked = [*tests[:position], with_expected(test, MARK), *tests[position + 1 :]]
            if feedback(marked, outcomes, judge) != told:
                return position
    return None


def positions_in_message(message: str, tests: Sequence[Test], judge: Judge) -> set[int]:
    """The positions of the tests whose expected output `message` shows."""
    return {position for position, test in enumerate(tests) if _is_in_message(message, test, judge)}


def _is_in_message(message: str, test: Test, judge: Judge) -> bool:
    if test["kind"] == "stdin":
        return _holds_example(_lines(message), _lines(test["input"].strip()), _lines(test["output"].strip()))
    if test["kind"] == "call":
        call, value = _plain(shown_call(test, judge)), _plain(shown_value(test["expected"]))
        value_follows = re.compile(rf"{_BETWEEN}{re.escape(value)}(?!\w|\.\d)")
        text = _plain(message)
        return any(value_follows.match(text, found.end()) for found in re.finditer(re.escape(call), text))
    return False


def _plain(text: str) -> str:
    return re.sub(r"[ \t]", "", text).replace('"', "'")


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def _holds_example(lines: Sequence[str], given: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether `given` stands in `lines` with `wanted` behind it."""
    if not any(given) or not any(wanted):
        return False
    start = _find(lines, given, 0)
    return start is not None and _find(lines, wanted, start + len(given)) is not None


def _find(lines: Sequence[str], block: Sequence[str], start: int) -> int | None:
    places = range(start, len(lines) - len(block) + 1)
    return next((place for place in places if list(lines[place : place + len(block)]) == list(block)), None)
