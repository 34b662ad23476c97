"""Reference solutions are run by the real sandbox, and what it says of them is recorded with the problem."""

from dataclasses import replace

import pytest

from cobalt_data.check_solutions import check_solutions
from cobalt_data.rows import Problem
from sandbox import Judge, Pool, Verdict


@pytest.fixture(scope="module")
def pool():
    with Pool(backend="process") as started:
        yield started


def echo_problem(name, *solutions):
    tests = tuple({"kind": "stdin", "public": False, "input": f"{n}\n", "output": f"{n}\n"} for n in range(3))
    return Problem(f"made/{name}", "made", name, None, "Echo.", "", tests, Judge(), solutions, {"origin_id": name})


def test_verdicts_are_recorded_in_the_order_of_the_solutions(pool):
    problems = [
        echo_problem("right", "print(input())"),
        echo_problem("mixed", "print(0)", "print(input())", "raise ValueError('no')", "print("),
        echo_problem("bare"),
    ]
    told = []
    check = check_solutions(problems, pool, told.append)
    assert (check.passed, check.failed, check.without_solution) == (2, 3, 1)
    recorded = [problem.metadata.get("solution_check") for problem in check.problems]
    assert recorded == [["passed"], ["wrong_answer", "passed", "runtime_error", "syntax_error"], None]
    assert [replace(problem, metadata={"origin_id": problem.title}) for problem in check.problems] == problems
    assert told == [1, 2, 3, 4, 5]
    assert [Problem.from_row(problem.to_row()) for problem in check.problems] == check.problems


def test_a_failure_says_in_one_line_what_went_wrong(pool):
    check = check_solutions([echo_problem("a", "print(0)", "raise ValueError('no\\nyes')", "x = (")], pool)
    assert [(name, verdict) for name, verdict, _ in check.failures] == [
        ("made/a", Verdict.WRONG_ANSWER),
        ("made/a", Verdict.RUNTIME_ERROR),
        ("made/a", Verdict.SYNTAX_ERROR),
    ]
    details = [detail for _, _, detail in check.failures]
    assert details[0] == "test 1: '0', wanted '1\\n'"
    assert all("\n" not in detail and len(detail) < 300 for detail in details)


def test_a_test_that_cannot_be_used_is_no_fault_of_the_solution(pool):
    code = "f = lambda: 0\nassert candidate(f) == 0"
    tests = ({"kind": "assert", "public": False, "code": code},)
    problem = replace(echo_problem("a", "def call(f):\n    return f()"), tests=tests, judge=Judge(entry_point="call"))
    check = check_solutions([problem], pool)
    assert check.problems[0].metadata["solution_check"] == ["unusable_test"]
    assert "not plain data" in check.failures[0][2]
