"""Which true outputs a first message shows, where that leaves no doubt."""

import pytest
from builders import call_test, stdin_test

from cobalt_data.shown import positions_in_message
from sandbox import Judge

PAIR = call_test([{"$tuple": [3, 4]}, "a"], {"$tuple": [4, 5]})


@pytest.mark.parametrize(
    ("message", "shows"),
    [
        (">>> f((3, 4), 'a')\n  (4, 5)", True),
        ('assert f((3,4), "a") == (4,5)', True),
        ("`f((3, 4), 'a')` should return `(4, 5)`.", True),
        ("f((3, 4), 'a') -> (4, 5)", True),
        ("f((3, 4), 'a') ➞ (4, 5)", True),
        (">>> f((3, 4), 'a')\n(4, 5, 6)", False),
        (">>> f((3, 4), 'b')\n(4, 5)", False),
        ("What is f((3, 4), 'a')? Some other thing is (4, 5).", False),
        ("f((3, 4), 'a')", False),
        ("", False),
    ],
)
def test_a_call_followed_by_its_value(message, shows):
    assert positions_in_message(message, [PAIR], Judge(entry_point="f")) == ({0} if shows else set())


@pytest.mark.parametrize(
    ("expected", "message", "shows"),
    [
        (5, "f(1) == 5", True),
        (5, "f(1) == 5.", True),
        (5, "f(1) == 5.5", False),
        (5, "f(1) == 55", False),
        (5, "f(1) == -5", False),
        (-5, "f(1) -> -5", True),
        (5, "f(11) == 5", False),
        (True, ">>> f(1)\nTrue\n>>> f(2)\nFalse", True),
        (False, ">>> f(1)\nTrue\n>>> f(2)\nFalse", False),
    ],
)
def test_a_value_is_the_whole_value(expected, message, shows):
    assert bool(positions_in_message(message, [call_test([1], expected)], Judge(entry_point="f"))) is shows


@pytest.mark.parametrize(
    ("given", "wanted", "message", "shows"),
    [
        ("2\n1 2\n", "3\n", "Sample\n2\n1 2\n\nOutput:\n3\n", True),
        ("2\n1 2\n", "3\n", "```\n  2\n  1 2\n```\ngives\n```\n  3\n```", True),
        ("2\n1 2\n", "3\n", "3\n2\n1 2\n", False),  # in the wrong order
        ("2\n1 2\n", "3\n", "2\n1 2 3\n", False),
        ("5\n", "10\n", "Input 5 gives 10.", False),
        ("", "10\n", "10", False),
        ("5\n", "", "5", False),
    ],
)
def test_all_lines_of_an_input_and_then_those_of_its_output(given, wanted, message, shows):
    assert bool(positions_in_message(message, [stdin_test(given, wanted)], Judge())) is shows


def test_asserts_show_nothing_that_could_be_changed():
    test = {"kind": "assert", "public": True, "code": "assert f(1) == 2"}
    assert positions_in_message("assert f(1) == 2", [test], Judge(entry_point="f")) == set()
