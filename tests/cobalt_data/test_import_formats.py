"""What the rows of each format become, on small rows of our own and on the published files where they are at hand."""

import json
from collections import Counter
from pathlib import Path

import pytest
from builders import call_test

from cobalt_data.importers import import_problems
from cobalt_data.importers.examples import written, written_examples
from cobalt_data.importers.public import choose_public, default_public
from cobalt_data.importers.stdin_tests import holds_decimals, stdin_test
from cobalt_data.rows import Problem
from sandbox.values import decode, encode

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is missing")


def imported_rows(tmp_path, format, *rows, **options):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return import_problems(file, format, **options).problems


@pytest.mark.parametrize(("total", "public"), [(1, 1), (2, 1), (3, 2), (7, 2), (8, 2), (12, 3), (13, 3), (40, 10)])
def test_a_quarter_is_public_and_at_least_two_where_one_stays_hidden(total, public):
    assert default_public(total) == public
    tests = choose_public([{"kind": "assert", "public": False, "code": str(i)} for i in range(total)], None)
    assert [test["public"] for test in tests] == [True] * public + [False] * (total - public)
    assert [test["code"] for test in tests] == [str(i) for i in range(total)]


@pytest.mark.parametrize("count", [0, 1, 3, 9])
def test_a_given_number_is_public_and_shown_tests_come_first(count):
    tests = choose_public([{"kind": "assert", "public": False, "code": str(i)} for i in range(4)], count, shown={2})
    assert sum(test["public"] for test in tests) == min(count, 4)
    assert tests[2]["public"] == (count > 0)


def test_all_shown_tests_are_public_unless_nothing_would_stay_hidden():
    tests = [{"kind": "assert", "public": False, "code": str(i)} for i in range(4)]
    assert [test["public"] for test in choose_public(tests, None, {1, 2, 3})] == [False, True, True, True]
    assert [test["public"] for test in choose_public(tests, None, {0, 1, 2, 3})] == [True, True, False, False]


def test_line_ends_are_normalised_in_stdin_tests():
    assert stdin_test("a\r\nb\r\n", "1\r\n", True) == {
        "kind": "stdin",
        "public": True,
        "input": "a\nb\n",
        "output": "1\n",
    }


@pytest.mark.parametrize(
    ("output", "found"), [("Case #1: 0.5", True), ("1 -2.5e-7", True), ("1 2", False), ("v1.2 1.", False)]
)
def test_decimals_are_told_from_other_tokens(output, found):
    assert holds_decimals([{"output": output}]) is found


def test_humaneval_splits_the_prompt_and_makes_its_examples_public(tmp_path):
    row = {
        "task_id": "HumanEval/38",
        "prompt": "import math\n\n\ndef twice(s):\n    return s * 2\n\n\ndef f(s: str) -> str:\n    import re\n"
        '    """ Häufig.\n    >>> f("ab")\n    \'x\'\n    f("(") => ")"\n    """\n',
        "entry_point": "f",
        "canonical_solution": "    return s\n",
        "test": "def check(candidate):\n    assert candidate('zz') == 'zz'\n    assert candidate('ab') == 'x'\n"
        "    assert candidate('(') == ')'\n    assert candidate(twice('q')) == 'qq'\n    assert candidate('u') == 'u'\n",
    }
    (problem,) = imported_rows(tmp_path, "humaneval", row)
    assert problem.statement == 'Häufig.\n>>> f("ab")\n\'x\'\nf("(") => ")"'
    assert problem.judge.prelude == "import math\n\n\ndef twice(s):\n    return s * 2"
    assert problem.starter_code == problem.judge.prelude + "\n\n\ndef f(s: str) -> str:\n    import re"
    assert problem.solutions == (row["prompt"] + row["canonical_solution"],)
    assert [test["public"] for test in problem.tests] == [False, True, True, False, False]
    assert problem.tests[3]["code"].startswith("def twice(s):")


def test_mbpp_shows_the_public_tests_only(tmp_path):
    row = {
        "task_id": "MBPP/9",
        "prompt": '\n\ndef f(x, y):\n"""\nAdd.\n>>> f(1, (2,))\n3\n>>> f(1, "77")\n99\n"""\n',  # a docstring at the margin
        "entry_point": "f",
        "canonical_solution": " return 3\n",
        "description": "Add.",
        "test": "def check(candidate):\n    assert candidate(1, (2,)) == 3\n    assert candidate(2, {1: 's'}) == None\n"
        "    assert candidate(1, '77') == 99\n",
    }
    (problem,) = imported_rows(tmp_path, "mbpp", row)
    assert problem.statement == "Add.\n\nExamples:\n>>> f(1, (2,))\n3\n>>> f(2, {1: 's'})\nNone"
    assert problem.starter_code == "def f(x, y):"
    assert problem.solutions == ("def f(x, y):\n return 3\n\n",)
    assert [test["public"] for test in problem.tests] == [True, True, False]
    (problem,) = imported_rows(tmp_path, "mbpp", row, public=0)
    assert problem.statement == "Add." and problem.public_tests == ()


def test_leetcode_calls_a_method_by_keywords_and_keeps_its_header(tmp_path):
    row = {
        "task_id": "two-sum",
        "prompt": "from typing import *\nfrom math import *\n",
        "completion": "class Solution:\n    def f(self, a: List[int]) -> int:\n        return gcd(*a)\n",
        "entry_point": "Solution().f",
        "test": "def check(candidate):\n    assert candidate(a = [4, 6]) == 2\n    assert candidate(a = [3, 5]) == 1\n",
        "query": "Find it.\n\xa0\nPlease complete the following python code precisely:\n```python\nclass Solution:\n```",
        "meta": {"lang_code": "class Solution:\n    def f(self, a: List[int]) -> int:\n        ", "difficulty": "Easy"},
    }
    (problem,) = imported_rows(tmp_path, "leetcode", row)
    assert (problem.title, problem.difficulty, problem.statement) == ("Two sum", "easy", "Find it.")
    assert problem.starter_code == "class Solution:\n    def f(self, a: List[int]) -> int:"
    assert problem.judge.entry_point == "Solution().f" and problem.judge.prelude == row["prompt"].strip()
    assert problem.tests[0]["kwargs"] == {"a": [4, 6]} and problem.tests[0]["args"] == []
    scope = {}
    exec(problem.solutions[0], scope)
    assert scope["Solution"]().f([4, 6]) == 2


def test_code_jam_keeps_samples_public_limits_and_tolerance(tmp_path):
    row = {
        "id": "x",
        "title": "X",
        "source": "Code Jam 2020",
        "question": "Do.\n\nTime limit: 20 seconds.\nTime limit: 60 seconds.",
        "float_tolerance": 1e-5,
        "tests": [
            {"input": "1\r\n", "output": "Case #1: 0.25\r\n", "public": True},
            {"input": "", "output": "", "public": False},
        ],
    }
    whole = {**row, "id": "y", "question": "Do.", "tests": [{"input": "1", "output": "Case #1: 2", "public": False}]}
    first, second = imported_rows(tmp_path, "kickstart_codejam", row, whole, public=2)
    assert (first.judge.checker, first.judge.time_limit_s, first.judge.memory_mb) == ("float:1e-05", 60.0, 1024)
    assert [test["public"] for test in first.tests] == [True, False]
    assert first.tests[0]["input"] == "1\n"
    assert (second.judge.checker, second.judge.time_limit_s, second.public_tests) == ("tokens", 20.0, ())


def group(*numbers):
    return {"inputs": [f"{n}\r\n" for n in numbers], "outputs": [f"{n}" for n in numbers]}


def inputs(tests):
    return [test["input"] for test in tests]


def test_reference_rows_hide_what_is_not_public(tmp_path):
    row = {"id": 3, "difficulty": "HARD", "instruction": "Echo.", "test_cases": json.dumps(group(1, 2, 2, 3))}
    (problem,) = imported_rows(tmp_path, "reference", {**row, "public_test_cases": json.dumps(group(2))})
    assert inputs(problem.public_tests) == ["2\n"] and inputs(problem.hidden_tests) == ["1\n", "2\n", "3\n"]
    assert problem.judge.checker == "exact" and problem.difficulty == "hard" and problem.problem_id == "reference/3"
    listed = {**row, "public_test_cases": group(1), "hidden_test_cases": group(8, 9)}
    (problem,) = imported_rows(tmp_path, "reference", listed)
    assert inputs(problem.public_tests) == ["1\n"] and inputs(problem.hidden_tests) == ["8\n", "9\n"]
    (problem,) = imported_rows(tmp_path, "reference", row)
    assert [test["public"] for test in problem.tests] == [True, True, False, False]
    (problem,) = imported_rows(tmp_path, "reference", {**row, "public_test_cases": group()}, public=2)
    assert problem.public_tests == () and len(problem.hidden_tests) == 4


@pytest.fixture(scope="module")
def published():
    files = {
        "humaneval": "humaneval",
        "mbpp": "mbpp",
        "leetcode": "leetcode_test",
        "kickstart_codejam": "kickstart_codejam",
    }
    return {format: import_problems(DATA / f"{name}.jsonl.gz", format) for format, name in files.items()}


@needs_data
def test_the_published_files_import_whole(published):
    counts = {format: (imported.rows_in, len(imported.problems)) for format, imported in published.items()}
    assert counts == {
        "humaneval": (164, 164),
        "mbpp": (974, 973),
        "leetcode": (200, 200),
        "kickstart_codejam": (48, 48),
    }
    assert [message.partition(": ")[2][:12] for message in published["mbpp"].bad_rows] == ["field 'test'"]
    assert published["mbpp"].dropped == {"unusable tests": 1}  # MBPP/533: int, str and float among the arguments
    for imported in published.values():
        for problem in imported.problems:
            assert Problem.from_row(problem.to_row()) == problem
            assert problem.public_tests and problem.statement


@needs_data
def test_nearly_all_published_asserts_become_call_tests(published):
    kinds = {
        format: Counter(test["kind"] for p in published[format].problems for test in p.tests) for format in published
    }
    assert kinds["leetcode"] == {"call": 492}
    assert kinds["mbpp"] == {"call": 2910, "assert": 9}
    assert kinds["humaneval"]["assert"] == 6 and kinds["humaneval"]["call"] > 1100
    assert all(len(p.public_tests) == 2 and len(p.hidden_tests) == 1 for p in published["mbpp"].problems)


@needs_data
def test_no_mbpp_statement_shows_a_hidden_test(published):
    for problem in published["mbpp"].problems:
        public = [test for test in problem.public_tests if test["kind"] == "call"]
        assert problem.statement.count(">>> ") == len(public)
        for test in public:
            assert written(decode(test["expected"])) in problem.statement
        assert ">>>" not in problem.starter_code and '"""' not in problem.starter_code


def test_examples_with_sets_read_the_same_in_every_run():
    values = {"b", "a", "c"}
    args = [[1], (2, (3,)), {"k": values}, set()]
    (given, wanted) = written_examples("f", [call_test([encode(value) for value in args], encode(values))]).split("\n")
    assert given == ">>> f([1], (2, (3,)), {'k': {'a', 'b', 'c'}}, set())"
    assert wanted == "{'a', 'b', 'c'}"
