"""Runs the reference solutions that problems carry: published problems come with wrong tests and wrong solutions.

The verdicts go into `metadata["solution_check"]`, in the order of `solutions`, or `unusable_test` where a test turns out to be
at fault, so that whoever uses a problem can ask whether anyone has been seen to solve it. Nothing is removed: which problems
to keep is for the user to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from cobalt_data.errors import InputError
from cobalt_data.rows import Problem
from sandbox import Pool, ProgramResult, Verdict

UNUSABLE = "unusable_test"


@dataclass(frozen=True, slots=True)
class SolutionCheck:
    """`passed` and `failed` count solutions, `without_solution` problems; `failures`: (problem_id, verdict, detail)."""

    problems: list[Problem]
    passed: int
    failed: int
    without_solution: int
    failures: list[tuple[str, str, str]]


def check_solutions(
    problems: Iterable[Problem], pool: Pool, progress: Callable[[int], None] | None = None
) -> SolutionCheck:
    """The problems with their verdicts. `progress` is told how many solutions have been judged so far.

    Raises SandboxError where the sandbox itself cannot judge a solution.
    """
    runs = [
        (problem, [pool.submit(solution, problem.tests, problem.judge) for solution in problem.solutions])
        for problem in problems
    ]
    checked: list[Problem] = []
    failures: list[tuple[str, str, str]] = []
    judged = 0
    for problem, futures in runs:
        verdicts: list[str] = []
        for future in futures:
            verdict, detail = _judged(problem, future)
            verdicts.append(verdict)
            if verdict != Verdict.PASSED:
                failures.append((problem.problem_id, verdict, detail))
            judged += 1
            if progress:
                progress(judged)
        metadata = {**problem.metadata, "solution_check": verdicts} if verdicts else problem.metadata
        checked.append(replace(problem, metadata=metadata))
    without = sum(not problem.solutions for problem in checked)
    return SolutionCheck(checked, judged - len(failures), len(failures), without, failures)


def _judged(problem: Problem, future: Future[ProgramResult]) -> tuple[str, str]:
    """The verdict as text and what explains it."""
    try:
        result = future.result()
    except InputError as error:
        return UNUSABLE, str(error)
    return result.verdict.value, _detail(problem, result)


def _detail(problem: Problem, result: ProgramResult) -> str:
    """The first failing test in one line: its number, what it said and what it should have been."""
    for index, test in enumerate(result.tests):
        if test.verdict is not Verdict.PASSED:
            said = test.stderr.strip().splitlines()[-1:] or [test.returned or test.stdout]
            return f"test {index}: {said[0].strip()[:120]!r}, wanted {_wanted(problem, index)[:120]!r}"
    return "no test ran"


def _wanted(problem: Problem, index: int) -> str:
    test = problem.tests[index]
    return str(test.get("expected", test.get("output", test.get("code"))))
