"""Which tests may be swapped, and that a swap lies about two expectations and about nothing else."""

import pytest
from builders import TEMPLATE, call_test, make_problem, make_turn, stdin_test
from hypothesis import given
from hypothesis import strategies as st

from cobalt_data.perturbation import EXPECTATION_KINDS, SWAP, Lie, eligibility, off_by_ones, swaps
from cobalt_data.rows import Prompt, PublicOutcome, Turn
from cobalt_data.shown import position_in_feedback
from sandbox import Judge, Verdict
from sandbox.checkers import outputs_match, values_match
from sandbox.values import decode, encode

CHECKERS = st.sampled_from(["tokens", "lines", "exact", "multiset", "float:0", "float:1e-6", "float:0.1", "float:0.6"])
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.integers(10**7, 10**7 + 9),
    st.floats(-4, 4).map(lambda x: round(x, 2)),
    st.just(float("nan")),
)
OUTPUTS = st.lists(st.one_of(NUMBERS.map(str), st.sampled_from(["a", "A", "1.0", "01"])), max_size=3).flatmap(
    lambda tokens: st.sampled_from([" ", "\n", " \n"]).map(lambda gap: gap.join(tokens))
)
VALUES = st.recursive(
    st.one_of(NUMBERS, st.booleans(), st.none(), st.sampled_from(["1", "a"])),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.lists(inner, max_size=2).map(tuple)),
    max_leaves=4,
)


@given(OUTPUTS, OUTPUTS, OUTPUTS, CHECKERS)
def test_no_output_is_right_for_both_of_two_swappable_tests(one, other, output, checker):
    if swaps([stdin_test("1", one), stdin_test("2", other)], checker):
        assert not (outputs_match(checker, one, output) and outputs_match(checker, other, output))


@given(VALUES, VALUES, VALUES, CHECKERS)
def test_no_value_is_right_for_both_of_two_swappable_calls(one, other, value, checker):
    if swaps([call_test([1], encode(one)), call_test([2], encode(other))], checker):
        assert not (values_match(one, value, checker) and values_match(other, value, checker))


@pytest.mark.parametrize(
    ("checker", "one", "other", "can"),
    [
        ("tokens", "1 2\n", "1  2", False),
        ("exact", "1 2\n", "1  2", True),
        ("multiset", "1 2", "2 1", False),
        ("tokens", "1 2", "2 1", True),
        ("float:0.1", "1.00", "1.15", False),  # 1.07 would be right for both
        ("float:0.1", "1.00", "1.35", True),
        ("float:1e-6", "10000000", "10000001", False),  # 10000000.5 would be right for both
        ("tokens", "10000000", "10000001", True),
    ],
)
def test_outputs_must_differ_under_the_problems_checker(checker, one, other, can):
    assert bool(swaps([stdin_test("1", one), stdin_test("2", other)], checker)) is can


def test_asserts_and_tests_of_different_kinds_cannot_be_swapped():
    check = {"kind": "assert", "public": True, "code": "assert f(1) == 2"}
    assert swaps([check, check], "tokens") == []
    assert swaps([stdin_test("1", "1"), call_test([1], 2)], "tokens") == []


@given(OUTPUTS, OUTPUTS, CHECKERS)
def test_no_output_is_right_for_a_number_and_for_one_more_or_less(true, output, checker):
    for lie in off_by_ones([stdin_test("1", true)], checker):
        assert not (outputs_match(checker, true, output) and outputs_match(checker, lie.false_outputs[0], output))
        assert not outputs_match(checker, lie.false_outputs[0], true)


@given(VALUES, VALUES, CHECKERS)
def test_no_value_is_right_for_a_number_and_for_one_more_or_less(true, value, checker):
    for lie in off_by_ones([call_test([1], encode(true))], checker):
        false = decode(lie.false_outputs[0])
        assert not (values_match(true, value, checker) and values_match(false, value, checker))
        assert type(false) is type(true) and not values_match(false, true, checker)


@pytest.mark.parametrize(
    ("test", "checker", "wanted"),
    [
        (stdin_test("", "7\n"), "tokens", ["6\n", "8\n"]),
        (stdin_test("", "-1 5\n3\n"), "lines", ["-2 5\n3\n", "0 5\n3\n"]),
        (stdin_test("", "2.50"), "tokens", ["1.50", "3.50"]),
        (stdin_test("", "10000000.0"), "float:1e-6", []),  # one more is within the tolerance
        (stdin_test("", "Case #1: 7"), "tokens", []),
        (stdin_test("", "YES"), "tokens", []),
        (stdin_test("", "1e5"), "tokens", []),
        (stdin_test("", "007"), "tokens", []),
        (stdin_test("", "9" * 5000), "tokens", []),
        (stdin_test("", ""), "tokens", []),
        (call_test([], 0), "tokens", [-1, 1]),
        (call_test([], 0.5), "float:1e-6", [-0.5, 1.5]),
        (call_test([], {"$tuple": [1, 2]}), "tokens", [{"$tuple": [0, 2]}, {"$tuple": [2, 2]}]),
        (call_test([], True), "tokens", []),
        (call_test([], [1, "a"]), "tokens", []),
        (call_test([], {"$float": "nan"}), "tokens", []),
        (call_test([], []), "tokens", []),
        ({"kind": "assert", "public": True, "code": "assert 1"}, "tokens", []),
    ],
)
def test_numbers_and_nothing_else_are_off_by_one(test, checker, wanted):
    lies = off_by_ones([stdin_test("0", "x"), test], checker)
    assert [lie.false_outputs for lie in lies] == [(each,) for each in wanted]
    assert all(lie.tests == (1,) and lie.told([stdin_test("0", "x"), test])[1]["output"] == "x" for lie in lies)


STATEMENT = """Double the number.

Input
1
Output
2

Then 3 gives 6."""


@pytest.mark.parametrize("kind", EXPECTATION_KINDS)
def test_a_test_whose_true_output_the_first_message_shows_is_spared_where_asked_for(kind):
    turns, told = [turn(WRONG, WRONG, WRONG, WRONG)], TEMPLATE.feedback
    spared = eligibility(kind, prompt(1, asked=STATEMENT), turns, told, spare_statement=True)
    assert spared.lies and not any(0 in lie.tests for lie in spared.lies)
    everything = eligibility(kind, prompt(1, asked=STATEMENT), turns, told)
    assert any(0 in lie.tests for lie in everything.lies)
    all_shown = "\n".join(f"{test['input']}\n{test['output']}" for test in PROBLEM.public_tests)
    assert (
        eligibility(kind, prompt(1, asked=all_shown), turns, told, spare_statement=True).reason
        == "its first message shows the true outputs"
    )


TESTS = st.lists(st.integers(0, 5), min_size=2, max_size=6).map(
    lambda outputs: [stdin_test(f"in{number}", str(output)) for number, output in enumerate(outputs)]
)


@given(TESTS, st.data())
def test_a_swap_exchanges_two_expectations_puts_them_first_and_changes_nothing_else(tests, data):
    first, second = data.draw(st.sampled_from([(a, b) for b in range(len(tests)) for a in range(b)]))
    lie = Lie(SWAP, (first, second), (tests[second]["output"], tests[first]["output"]))
    swapped = lie.told(tests)
    assert swapped[0] == tests[first] | {"output": tests[second]["output"]}
    assert swapped[1] == tests[second] | {"output": tests[first]["output"]}
    assert list(swapped[2:]) == [test for position, test in enumerate(tests) if position not in (first, second)]
    assert [tests[position]["input"] for position in lie.order(len(tests))] == [test["input"] for test in swapped]


def outcome(verdict, stdout="0\n"):
    return PublicOutcome(verdict, stdout, "Traceback", None)


def turn(*verdicts, program="print(0)"):
    return Turn(program, tuple(map(outcome, verdicts)), 0.0, 0.0, 0.0, "", "stop", 1, 1)


RIGHT, WRONG, CRASH = Verdict.PASSED, Verdict.WRONG_ANSWER, Verdict.RUNTIME_ERROR
PROBLEM = make_problem()  # four public tests with different outputs


def prompt(turns, problem=PROBLEM, perturbation=None, asked="?"):
    answered = ({"role": "assistant", "content": "!"}, {"role": "user", "content": "feedback"})
    return Prompt(
        "t",
        problem.problem_id,
        turns,
        ({"role": "user", "content": asked}, *(turns * answered)),
        problem.tests,
        problem.judge,
        0.0,
        perturbation,
        1,
        "train",
    )


def test_feedback_shows_the_expectation_of_the_first_wrong_answer_only():
    def shown(*verdicts):
        return position_in_feedback(
            PROBLEM.public_tests, list(map(outcome, verdicts)), PROBLEM.judge, TEMPLATE.feedback
        )

    assert shown(RIGHT, WRONG, WRONG, RIGHT) == 1
    assert shown(RIGHT, CRASH, WRONG, RIGHT) is None
    assert shown(RIGHT, RIGHT, RIGHT, RIGHT) is None


def test_any_two_tests_may_be_swapped_where_nothing_was_shown():
    found = eligibility(SWAP, prompt(1), [turn(WRONG, WRONG, WRONG, WRONG)], TEMPLATE.feedback)
    assert len(found.lies) == 6 and found.reason is None


@given(st.lists(st.lists(st.sampled_from([RIGHT, WRONG, CRASH]), min_size=4, max_size=4), min_size=1, max_size=4))
def test_a_test_whose_true_output_earlier_feedback_showed_is_never_swapped(told):
    turns = [turn(*verdicts) for verdicts in told]
    shown = set()
    for earlier in turns[:-1]:
        feedback = TEMPLATE.feedback(PROBLEM.public_tests, earlier.public, PROBLEM.judge)
        shown |= {number for number in range(4) if f"Expected output:\n{2 * number + 2}\n" in feedback}
    found = eligibility(SWAP, prompt(len(turns)), turns, TEMPLATE.feedback)
    assert {test for lie in found.lies for test in lie.tests}.isdisjoint(shown)
    assert bool(found.lies) == (len(shown) < 3)
    assert found.reason == (None if found.lies else "earlier feedback shows the true outputs")


def test_a_test_that_asks_the_same_as_a_shown_one_is_not_swapped_either():
    twins = make_problem(tests=[stdin_test("1", "2"), stdin_test("1", "2"), stdin_test("3", "6"), stdin_test("4", "8")])
    turns = [turn(WRONG, RIGHT, RIGHT, RIGHT), turn(WRONG, WRONG, WRONG, WRONG)]
    assert eligibility(SWAP, prompt(2, twins), turns, TEMPLATE.feedback).lies == (Lie(SWAP, (2, 3), ("8", "6")),)


@pytest.mark.parametrize(
    ("turns", "tests", "perturbation", "reason"),
    [
        ([turn(WRONG)], None, {"kind": "swap"}, "perturbed already"),
        ([], None, None, "turn 0 has no feedback"),
        ([turn(program=None)], None, None, "its last completion has no program"),
        (
            [turn(WRONG)],
            [stdin_test("1", "1"), stdin_test("2", "2", public=False)],
            None,
            "fewer than two public tests",
        ),
        (
            [turn(WRONG)],
            [{"kind": "assert", "public": True, "code": "assert 1"}] * 3,
            None,
            "fewer than two public tests",
        ),
        ([turn(WRONG)], [stdin_test("1", "1"), stdin_test("2", "1\n")], None, "expect the same output"),
    ],
)
def test_what_is_not_eligible_has_its_reason(turns, tests, perturbation, reason):
    problem = make_problem(tests=tests)
    found = eligibility(SWAP, prompt(len(turns), problem, perturbation), turns, TEMPLATE.feedback)
    assert found.lies == () and reason in found.reason


def test_a_program_without_feedback_of_its_own_is_no_obstacle():
    assert eligibility(SWAP, prompt(1), [make_turn("print(0)")], TEMPLATE.feedback).reason is None


def test_the_tolerance_of_a_checker_is_read_from_the_judge():
    problem = make_problem(tests=[stdin_test("1", "1.0"), stdin_test("2", "1.1")], judge=Judge(checker="float:0.3"))
    assert eligibility(SWAP, prompt(1, problem), [turn(WRONG, WRONG)], TEMPLATE.feedback).reason is not None
