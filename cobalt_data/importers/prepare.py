"""`prepare="paper"`: which problems, and which of their tests, the reference code of the paper trains on.

It keeps problems that read stdin, have at least 8 tests, no picture and 100 letters or digits of statement, and of more than
20 tests the 5 with the shortest and the 15 with the longest input; 4 tests are public.

The reference does not say which 4 these are: here they are those with the shortest inputs, which come first. It also turns
functions into programs by joining their arguments with spaces, which contradicts their statements: here they are left out.
"""

from __future__ import annotations

from dataclasses import replace

from cobalt_data.importers.fields import UnusableRow
from cobalt_data.importers.public import choose_public
from cobalt_data.rows import Problem

PAPER = "paper"
LEAST_TESTS, MOST_TESTS, SHORTEST, PUBLIC = 8, 20, 5, 4
LEAST_LETTERS = 100


def prepare_as_paper(problem: Problem) -> Problem:
    """Raises UnusableRow where the reference code would not use the problem. Tests of one length keep their order."""
    if any(test["kind"] != "stdin" for test in problem.tests):
        raise UnusableRow("is a function", "the problem asks for a function: the paper's preparation leaves it out")
    if len(problem.tests) < LEAST_TESTS:
        raise UnusableRow("too few tests", f"the problem has {len(problem.tests)} tests, fewer than {LEAST_TESTS}")
    if "image" in problem.statement.lower() or "\n![" in problem.statement:
        raise UnusableRow("picture", "the statement refers to a picture")
    if sum(map(str.isalnum, problem.statement)) < LEAST_LETTERS:
        raise UnusableRow("short statement", f"the statement has fewer than {LEAST_LETTERS} letters and digits")
    tests = sorted(problem.tests, key=lambda test: len(test["input"]))
    if len(tests) > MOST_TESTS:
        tests = [*tests[:SHORTEST], *tests[SHORTEST - MOST_TESTS :]]
    return replace(problem, tests=choose_public(tests, PUBLIC))
