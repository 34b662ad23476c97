"""The reference solutions of published problems pass, all but those whose data are wrong, and with one expected value changed
none of them does: what the importer and the sandbox accept together is neither too little nor too much."""

import ast
from pathlib import Path

import pytest

from cobalt_data.check_solutions import check_solutions
from cobalt_data.importers import import_problems
from sandbox import Verdict

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
if not DATA.is_dir():
    pytest.skip("../shared/data is missing", allow_module_level=True)
COUNTS = {"humaneval": 164, "leetcode": 200, "mbpp": 973}

# Canonical solutions that fail in the published file, and why.
WRONG_IN_MBPP = {
    "mbpp/160": "the release replaced the word solution in an expected string by candidate",
    "mbpp/367": "the test names a tree that nothing defines",
    "mbpp/414": "returns 0 and 1 where the test wants False and True",
    "mbpp/596": "depends on the size of an object in one version of Python",
    "mbpp/601": "the test names a class that nothing defines",
    "mbpp/607": "the solution overwrites its arguments",
    "mbpp/631": "the solution overwrites its arguments",
    "mbpp/642": "depends on the order of a set in one version of Python",
    "mbpp/927": "the test names a tree that nothing defines",
}


def problems(format):
    name = "leetcode_test" if format == "leetcode" else format
    return import_problems(DATA / f"{name}.jsonl.gz", format).problems


def other(tree):
    """A value in the tagged form that is not equal to `tree`, and as like it as can be."""
    if tree is None or isinstance(tree, bool):
        return 0 if tree is None else not tree
    if isinstance(tree, int | float):
        return 0 if tree == -3.5 else 3 * tree + 7  # far off, as tolerances are relative
    if isinstance(tree, str):
        return f"{tree}x"
    if isinstance(tree, list):
        return [*tree[:-1], other(tree[-1])] if tree else [0]
    if "$float" in tree or "$int" in tree:
        return 0
    last = next(reversed(tree), "x")
    return {**tree, last: other(tree.get(last))}


def spoilt(test):
    """`test` with its expected value changed; where that is part of a check's code, the last assert denied."""
    if test["kind"] == "call":
        return {**test, "expected": other(test["expected"])}
    module = ast.parse(test["code"])
    last = [node for node in ast.walk(module) if isinstance(node, ast.Assert)][-1]
    last.test = ast.UnaryOp(ast.Not(), last.test)
    return {**test, "code": ast.unparse(ast.fix_missing_locations(module))}


@pytest.mark.parametrize("format", ["humaneval", "leetcode", pytest.param("mbpp", marks=pytest.mark.slow)])
def test_every_published_solution_passes_unless_the_data_are_wrong(bubblewrap, format):
    check = check_solutions(problems(format), bubblewrap)
    assert {name for name, _, _ in check.failures} == (set(WRONG_IN_MBPP) if format == "mbpp" else set())
    assert (check.passed + check.failed, check.without_solution) == (COUNTS[format], 0)


@pytest.mark.parametrize("format", COUNTS)
def test_no_published_solution_passes_with_one_expected_value_changed(bubblewrap, format):
    futures = {
        problem.problem_id: bubblewrap.submit(problem.solutions[0], [spoilt(problem.tests[-1])], problem.judge)
        for problem in problems(format)
    }
    passed = [name for name, future in futures.items() if future.result().verdict is Verdict.PASSED]
    assert (len(futures), passed) == (COUNTS[format], [])
