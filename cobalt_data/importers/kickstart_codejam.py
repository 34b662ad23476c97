"""Problems of Code Jam and Kick Start: `id, title, source, question, float_tolerance, tests: [{input, output, public}]`.

Samples are public, secret tests hidden. The limits are those that the statement itself promises, the largest where it has
one per test set; its last word is what a reader optimises for.
"""

from __future__ import annotations

import re

from cobalt_data.importers.fields import BadRow, Fields, array, filled_text, flag, identifier, number, record, text
from cobalt_data.importers.stdin_tests import holds_decimals, stdin_test
from cobalt_data.rows import Problem
from sandbox import Judge, Test

FIELDS = ("id", "title", "source", "question", "float_tolerance", "tests")
DEFAULT_SECONDS = 20.0  # what most of these contests allow
MEMORY_MB = 1024  # the same in all of them
TIME_LIMIT = re.compile(r"Time limit: (\d+) seconds")


def to_problem(row: Fields, public: int | None) -> Problem:
    """`public` is not used: the source says which tests are samples."""
    problem_id, question = identifier(row, "id"), filled_text(row, "question")
    tests = tuple(_test(given, f"tests[{index}]") for index, given in enumerate(array(row, "tests")))
    if not tests:
        raise BadRow("no tests", "field 'tests' is empty: nothing could judge a program")
    tolerance = number(row, "float_tolerance")
    if not 0 <= tolerance < 1:
        raise BadRow("wrong type", f"field 'float_tolerance' is {tolerance:g}: it must lie in [0, 1)")
    stated = [float(seconds) for seconds in TIME_LIMIT.findall(question)]
    return Problem(
        problem_id=f"kickstart_codejam/{problem_id}",
        source="kickstart_codejam",
        title=filled_text(row, "title").strip(),
        difficulty=None,
        statement=question.strip(),
        starter_code="",
        tests=tests,
        judge=Judge(
            checker=f"float:{tolerance:g}" if holds_decimals(tests) else "tokens",
            time_limit_s=min(max(stated, default=DEFAULT_SECONDS), 3600.0),
            memory_mb=MEMORY_MB,
        ),
        solutions=(),
        metadata={"origin_id": problem_id, "contest": filled_text(row, "source").strip()},
    )


def _test(given: object, at: str) -> Test:
    fields = record(given, at)
    return stdin_test(
        text(fields, "input", f"{at}."), text(fields, "output", f"{at}."), flag(fields, "public", f"{at}.")
    )
