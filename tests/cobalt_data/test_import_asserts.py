"""Asserts become call tests where that is exact, and self-contained assert tests where it is not."""

import ast
import time

import pytest

from cobalt_data.importers.asserts import asserts_to_tests
from cobalt_data.importers.fields import BadRow, UnusableRow
from cobalt_data.importers.literals import NotLiteral, literal
from sandbox.values import decode


def check(*lines):
    return "def check(candidate):\n" + "".join(f"    {line}\n" for line in lines)


def only_test(*lines, entry_point="f", helpers=""):
    (test,), _ = asserts_to_tests(check(*lines), entry_point, helpers)
    return test


@pytest.mark.parametrize(
    ("line", "args", "kwargs", "expected"),
    [
        ("assert candidate(1, 'a') == [2, 'b']", [1, "a"], {}, [2, "b"]),
        ("assert candidate(nums = [3, 1], k = -2) == -4", [], {"nums": [3, 1], "k": -2}, -4),
        ("assert candidate() == (1, (2, [None]))", [], {}, (1, (2, [None]))),
        ("assert candidate({1: {'a': {2, 3}}}) == {(1, 2): True}", [{1: {"a": {2, 3}}}], {}, {(1, 2): True}),
        ("assert 3 == candidate(2)", [2], {}, 3),
        ("assert candidate(2) is True, 'message'", [2], {}, True),
        ("assert candidate(2) is None", [2], {}, None),
        ("assert candidate(2)", [2], {}, True),
        ("assert not candidate(2)", [2], {}, False),
        ("assert candidate(3 * 5, 1.0 / 4, 'ab' + 'c', 0 ** 0) == 2 ** 40", [15, 0.25, "abc", 1], {}, 2**40),
        ("assert candidate(set([1, 2])) == frozenset({1})", [{1, 2}], {}, frozenset({1})),
        ("assert candidate(float('inf')) == -float('inf')", [float("inf")], {}, -float("inf")),
        ("assert candidate('x') == Counter({'x': 1})", ["x"], {}, {"x": 1}),
        ("assert candidate(b'a', 1j) == dict([(1, 2)])", [b"a", 1j], {}, {1: 2}),
        ("assert tuple(candidate([1])) == tuple([1, 2])", [[1]], {}, [1, 2]),
        ("assert f(1) == 2", [1], {}, 2),
    ],
)
def test_an_assert_on_literals_becomes_a_call_test(line, args, kwargs, expected):
    test = only_test(line)
    assert test["kind"] == "call" and test["public"] is False
    assert [decode(value) for value in test["args"]] == args
    assert {name: decode(value) for name, value in test["kwargs"].items()} == kwargs
    assert decode(test["expected"]) == expected
    assert type(decode(test["expected"])) is type(expected)


@pytest.mark.parametrize(
    "line",
    [
        "assert candidate(1) != 2",
        "assert candidate(1) in (1, 2)",
        "assert candidate(1) == candidate(2)",
        "assert 0 < candidate(1) < 3",
        "assert candidate(list(map(str, [1]))) == 1",
        "assert candidate(*[1, 2]) == 3",
        "assert candidate(**{'a': 1}) == 3",
        "assert candidate(1).x == 3",
        "assert sorted(candidate(1)) == [1]",
        "assert round(candidate(1), 2) == 0.5",
        "assert candidate(1) == float('nan')",
        "assert candidate(1) == 'x' % ()",
        "assert candidate(1) == ...",
        "assert candidate(1) == 9 ** 9 ** 9",
        "assert candidate(1) == [[0] * 10 ** 5] * 10 ** 5",
        "assert abs(candidate(1) - 2) < 0.5",
        "assert candidate(1) == 2 and candidate(2) == 3",
    ],
)
def test_everything_else_stays_an_assert_with_its_meaning(line):
    assert only_test(line) == {"kind": "assert", "public": False, "code": ast.unparse(ast.parse(line))}


def test_a_tolerance_becomes_the_checker_of_the_problem():
    source = check(
        "assert candidate(3.5) == 0.5",
        "assert abs(candidate(1.33) - 0.33) < 1e-6",
        "assert abs(2 / 3 - candidate(x=2)) <= 1e-6",
    )
    tests, checker = asserts_to_tests(source, "f")
    assert checker == "float:1e-06"
    assert [(test["kind"], decode(test["expected"])) for test in tests] == [
        ("call", 0.5),
        ("call", 0.33),
        ("call", 2 / 3),
    ]
    _, checker = asserts_to_tests(check("assert math.isclose(candidate(1), 0.1, rel_tol=1e-4)"), "f")
    assert checker == "float:0.0001"
    _, checker = asserts_to_tests(check("assert math.isclose(candidate(1), 0.1)"), "f")
    assert checker == "float:1e-09"
    tests, checker = asserts_to_tests(check("assert math.isclose(candidate(1), 0.1, rel_tol='x')"), "f")
    assert (tests[0]["kind"], checker) == ("assert", None)


def test_two_tolerances_in_one_problem_stay_in_their_asserts():
    source = check("assert abs(candidate(1) - 1.5) < 1e-3", "assert abs(candidate(2) - 2.5) < 1e-6", "assert f(3) == 1")
    tests, checker = asserts_to_tests(source, "f")
    assert checker is None
    assert [test["kind"] for test in tests] == ["assert", "assert", "call"]


def test_asserts_that_hold_for_every_program_are_left_out():
    source = check("assert True, 'simple'", "assert f([1]) == candidate([1])", "print", "assert candidate(1) == 2")
    tests, _ = asserts_to_tests(source, "f")
    assert [test["kind"] for test in tests] == ["call"]


def test_an_assert_test_carries_what_it_needs_and_nothing_else():
    helpers = (
        "import math\nimport os\n\ndef poly(xs, x):\n    return sum(c * math.pow(x, i) for i, c in enumerate(xs))\n"
    )
    source = "METADATA = {'author': 'x'}\n" + check(
        "import random",
        "unused = 3",
        "random.seed(0)",
        "for _ in range(3):",
        "    xs = [random.randint(1, 9), 1]",
        "    assert abs(poly(xs, candidate(xs))) < 1e-4",
    )
    (test,), _ = asserts_to_tests(source, "find_zero", helpers)
    code = test["code"]
    assert "METADATA" not in code and "unused" not in code and "import os" not in code
    exec(compile(code, "test", "exec"), {"candidate": lambda xs: -xs[0] / xs[1]})
    with pytest.raises(AssertionError):
        exec(compile(code, "test", "exec"), {"candidate": lambda xs: 0.0})


def test_the_result_of_one_call_does_not_reach_the_test_of_another():
    lines = ("a = candidate(1)", "assert a.x == 1", "b = candidate(2)", "assert b.x == 2")
    tests, _ = asserts_to_tests(check(*lines), "f")
    assert [test["code"] for test in tests] == [
        "a = candidate(1)\nassert a.x == 1",
        "b = candidate(2)\nassert b.x == 2",
    ]


def test_a_helper_that_asserts_is_a_test_where_it_is_given_the_candidate():
    test = only_test("def same(g, x):", "    assert g(x) == x", "same(candidate, 5)")
    assert test["kind"] == "assert"
    exec(test["code"], {"candidate": lambda x: x})
    with pytest.raises(AssertionError):
        exec(test["code"], {"candidate": lambda x: x + 1})


def test_asserts_need_no_check_function_around_them():
    tests, _ = asserts_to_tests("assert add(1, 2) == 3\nassert add(2, 2) == 4", "add")
    assert [decode(test["expected"]) for test in tests] == [3, 4]


@pytest.mark.parametrize("argument", ["int", "lambda x: x", "[1, (str, 2)]", "key=len"])
def test_an_assert_that_hands_over_code_is_left_out(argument):
    lines = (f"assert candidate({argument}) == 1", "assert candidate(1) == 2")
    tests, _ = asserts_to_tests(check(*lines), "f")
    assert [test["kind"] for test in tests] == ["call"]
    with pytest.raises(UnusableRow, match="field 'test' hands functions or types to f"):
        asserts_to_tests(check(lines[0]), "f")


@pytest.mark.parametrize("source", ["", "def check(candidate):\n    pass", "def check(c):\n    assert True", "x = 1"])
def test_a_source_without_a_test_is_a_bad_row(source):
    with pytest.raises(BadRow, match="field 'test' has no assert that calls f or candidate"):
        asserts_to_tests(source, "f")


@pytest.mark.parametrize(
    "source", ["def check(:", "assert \0", "(" * 5000, "assert candidate(" + "-" * 20000 + "1) == 2"]
)
def test_a_source_that_is_no_python_is_a_bad_row(source):
    with pytest.raises(BadRow, match="field 'test' is no Python source"):
        asserts_to_tests(source, "f")


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9",
        "10**5 * 'abcdefghijk'",
        "[1] * 10**9",
        "x",
        "open('a')",
        "__import__('os')",
        "1 / 0",
        "{[]}",
        "set(3)",
    ],
)
def test_a_literal_runs_no_code_and_stays_small(text):
    start = time.perf_counter()
    with pytest.raises(NotLiteral):
        literal(ast.parse(text, mode="eval").body)
    assert time.perf_counter() - start < 1
