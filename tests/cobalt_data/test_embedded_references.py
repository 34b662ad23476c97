"""That the tests of embedded problems judge: references pass them, plausible wrong programs do not."""

import ast
import signal
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType

import pytest

from cobalt_data.embedded import embedded_problems
from cobalt_data.embedded.build import run
from cobalt_data.rows import Problem
from sandbox import Pool, Test, Verdict
from sandbox.checkers import outputs_match

PROBLEMS = {row["problem_id"]: Problem.from_row(row) for row in embedded_problems()}


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in the body, by its own CPU time: a busy machine must not turn a right program into a failure."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def passes(problem: Problem, program: str | CodeType, tests: tuple[Test, ...] | None = None) -> bool:
    """Whether a program written here passes the tests (all of them by default). A crash and an endless loop fail."""
    code = program if isinstance(program, CodeType) else compile(program, problem.problem_id, "exec")
    try:
        with cpu_limit(0.1):
            return all(
                outputs_match(problem.judge.checker, test["output"], run(code, test["input"]))
                for test in (tests or problem.tests)
            )
    except Exception:
        return False


def off_by_one(program: str) -> Iterator[CodeType]:
    """The program with one integer of it made greater by one, or one comparison made (not) strict, at each place."""
    strict = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
    for place, node in enumerate(ast.walk(ast.parse(program))):
        tree = ast.parse(program)
        twin = list(ast.walk(tree))[place]
        if isinstance(node, ast.Constant) and type(node.value) is int:
            twin.value += 1
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in strict:
            twin.ops[0] = strict[type(node.ops[0])]()
        else:
            continue
        yield compile(tree, "mutant", "exec")


def test_every_reference_passes_all_its_tests() -> None:
    assert [name for name, problem in PROBLEMS.items() if not passes(problem, problem.solutions[0])] == []


def test_every_reference_passes_every_fifth_test_in_the_sandbox(bubblewrap: Pool) -> None:
    results = [
        bubblewrap.submit(problem.solutions[0], problem.tests[::5], problem.judge) for problem in PROBLEMS.values()
    ]
    verdicts = {name: future.result().verdict for name, future in zip(PROBLEMS, results, strict=True)}
    assert {name: verdict for name, verdict in verdicts.items() if verdict is not Verdict.PASSED} == {}


def test_no_reference_passes_the_tests_of_another_problem_with_the_same_input() -> None:
    same_input = defaultdict(list)
    for problem in PROBLEMS.values():
        code = compile(problem.solutions[0], problem.problem_id, "exec")
        same_input[problem.statement.split("\nInput: ")[1].split("\nOutput: ")[0]].append((problem, code))
    confused = [
        (other.problem_id, problem.problem_id)
        for group in same_input.values()
        for problem, _ in group
        for other, code in group
        if other is not problem and passes(problem, code)
    ]
    assert confused == []


@pytest.mark.parametrize("test_index", range(4))
def test_printing_one_public_output_fails(test_index: int) -> None:
    for problem in PROBLEMS.values():
        assert not passes(problem, f"print({problem.tests[test_index]['output']!r})"), problem.problem_id


def test_a_program_that_knows_the_public_tests_by_heart_fails() -> None:
    for problem in PROBLEMS.values():
        known = {test["input"]: test["output"] for test in problem.public_tests}
        program = f"import sys\nprint({known!r}.get(sys.stdin.read(), {problem.tests[0]['output']!r}))"
        assert passes(problem, program, problem.public_tests), problem.problem_id
        assert not passes(problem, program), problem.problem_id


def test_copying_the_input_fails() -> None:
    for problem in PROBLEMS.values():
        assert not passes(problem, "import sys\nprint(sys.stdin.read())"), problem.problem_id


def test_off_by_one_references_fail_but_for_those_that_do_the_same() -> None:
    """`n < 0` and `n <= 0` select the same sum: one mutant in twenty may pass, which is about what we know to be equal."""
    passed = [passes(problem, mutant) for problem in PROBLEMS.values() for mutant in off_by_one(problem.solutions[0])]
    assert len(passed) > len(PROBLEMS)
    assert sum(passed) <= 0.05 * len(passed)


WRONG = {
    "list-summary/largest": "numbers = list(map(int, input().split()))\nbest = 0\nfor x in numbers:\n"
    "    best = max(best, x)\nprint(best)",
    "list-summary/second-largest": "print(sorted(set(map(int, input().split())))[-2])",
    "list-summary/average": "a = list(map(int, input().split()))\nprint(int(sum(a) / len(a)))",
    "one-integer/halves": "print(int(int(input()) / 2))",
    "two-integers/larger": "a, b = map(abs, map(int, input().split()))\nprint(max(a, b))",
    "number-check/prime": "n = int(input())\nprint('YES' if all(n % d for d in range(2, n)) else 'NO')",
    "digits/sum": "n = int(input())\nprint(n // 10 + n % 10)",
    "clock/leap": "n = int(input())\nprint(366 if n % 4 == 0 else 365)",
    "count-characters/vowels": "print(sum(c in 'aeiou' for c in input()))",
    "words-in-line/longest": "words = input().split()\nbest = ''\nfor w in words:\n"
    "    if len(w) >= len(best):\n        best = w\nprint(best)",
    "fizz/fizzbuzz": "for i in range(1, int(input()) + 1):\n"
    "    print('Fizz' if i % 3 == 0 else 'Buzz' if i % 5 == 0 else 'FizzBuzz' if i % 15 == 0 else i)",
    "drawing/pyramid": "n = int(input())\nfor i in range(n):\n    print('*' * (2 * i + 1))",
    "brackets/balanced": "s = input()\nprint('YES' if s.count('(') == s.count(')') else 'NO')",
    "account/highest": "n = int(input())\nc = [int(input()) for _ in range(n)]\n"
    "print(max(sum(c[:i + 1]) for i in range(n)))",
    "map/largest-island": "h = int(input())\nprint(max(input().count('#') for _ in range(h)))",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_likely_mistake_fails(name: str) -> None:
    assert not passes(PROBLEMS[f"embedded/{name}"], WRONG[name])
