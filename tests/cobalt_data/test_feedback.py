"""The parts of feedback: what is shown of tests, values, outputs and tracebacks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobalt_data.feedback import (
    elide,
    first_failure,
    shown_call,
    shown_output,
    shown_traceback,
    shown_value,
    without_addresses,
)
from cobalt_data.rows import PublicOutcome
from sandbox import Judge, Verdict
from sandbox.values import encode

PASSED = PublicOutcome(Verdict.PASSED, "", "", None)
FAILED = PublicOutcome(Verdict.WRONG_ANSWER, "3\n", "", None)


@given(st.text(), st.integers(0, 50), st.integers(0, 50))
def test_eliding_keeps_both_ends_and_never_more_than_the_limit(text, small, more):
    limit = 9 + small
    shown = elide(text, limit)
    assert len(shown) <= limit
    assert shown == text or (shown[0], shown[-1]) == (text[0], text[-1])
    assert elide(elide(text, limit + more), limit) == shown


def test_the_middle_is_left_out():
    assert elide("a" * 300 + "b" * 300) == "a" * 197 + " [...] " + "b" * 196
    assert elide("a" * 400) == "a" * 400


def test_the_first_failing_test_is_found_even_where_the_run_stopped_early():
    tests = [{"kind": "stdin", "public": True, "input": str(i), "output": "x"} for i in range(4)]
    assert first_failure(tests, [PASSED, FAILED]) == (tests[1], FAILED)
    assert first_failure(tests, [PASSED] * 4) is None


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.complex_numbers(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.tuples(inner)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.integers()), inner)
        | st.sets(st.integers() | st.text())
        | st.frozensets(st.tuples(st.booleans(), st.text()))
    ),
    max_leaves=20,
)


@given(VALUES)
def test_a_shown_value_is_the_python_expression_of_that_value(value):
    assert eval(shown_value(encode(value)), {}) == value  # the values are this test's own


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ((1,), "(1,)"),
        ((), "()"),
        (set(), "set()"),
        ({"b", "a"}, "{'a', 'b'}"),
        (frozenset(), "frozenset()"),
        ({}, "{}"),
        ({"$x": 1}, "{'$x': 1}"),
        ({1: [True, None]}, "{1: [True, None]}"),
        (float("-inf"), "float('-inf')"),
        (b"\x00a", "b'\\x00a'"),
    ],
)
def test_values_that_json_lacks_are_shown_as_python(value, shown):
    assert shown_value(encode(value)) == shown


def test_integers_too_long_for_decimal_digits_are_shown_all_the_same():
    assert shown_value(encode(10**5000)) == hex(10**5000)


def test_a_call_is_shown_as_the_expression_that_was_evaluated():
    test = {"kind": "call", "public": True, "args": [[1, 2], {"$tuple": [3]}], "kwargs": {"k": "x"}, "expected": 1}
    assert shown_call(test, Judge(entry_point="f")) == "f([1, 2], (3,), k='x')"
    assert shown_call({**test, "args": []}, Judge(entry_point="Solution().go")) == "Solution().go(k='x')"


def test_the_output_of_a_call_is_its_value_and_of_a_program_what_it_printed():
    call = {"kind": "call", "public": True, "args": [], "kwargs": {}, "expected": None}
    stdin = {"kind": "stdin", "public": True, "input": "", "output": ""}
    returned = PublicOutcome(Verdict.WRONG_ANSWER, "debug", "", json.dumps({"$tuple": [1, "a"]}))
    assert shown_output(call, returned) == "(1, 'a')"
    assert shown_output(stdin, returned) == "debug"


@pytest.mark.parametrize("returned", ['["cut off, so no JSON any mo', "[" * 5_000 + "]" * 5_000])
def test_a_returned_value_that_cannot_be_read_is_shown_as_it_is(returned):
    call = {"kind": "call", "public": True, "args": [], "kwargs": {}, "expected": None}
    assert shown_output(call, PublicOutcome(Verdict.WRONG_ANSWER, "", "", returned)) == returned


def test_a_traceback_shows_the_programs_own_frames_only():
    stderr = """a warning of the program
Traceback (most recent call last):
  File "/somewhere/agent.py", line 91, in run
    exec(code, namespace)
  File "main.py", line 7, in <module>
    main()
  File "main.py", line 3, in main
    json.loads(input())
  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode
    raise JSONDecodeError("Expecting value", s, err.value) from None
           ^^^^^^
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)
"""
    assert (
        shown_traceback(stderr)
        == """Traceback (most recent call last):
  File "main.py", line 7, in <module>
    main()
  File "main.py", line 3, in main
    json.loads(input())
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"""
    )


def test_what_is_no_traceback_is_shown_as_it_is():
    assert shown_traceback(" exited with status 3\n") == "exited with status 3"
    assert shown_traceback("") == ""


def test_memory_addresses_are_left_out_and_other_hexadecimal_numbers_stay():
    assert (
        without_addresses("<map object at 0x7f0c2a1b3d60>, 0x7f0c2a1b3d60") == "<map object at 0x...>, 0x7f0c2a1b3d60"
    )
    assert without_addresses("look at 0xff") == "look at 0xff"
