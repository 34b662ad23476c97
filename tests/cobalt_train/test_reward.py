import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobalt_train.reward import REWARDS, RewardInput, binary, count_parts, paper, pass_rate

GOOD = "Read the number.\n```python\nprint(int(input()) * 2)\n```\n"
PROGRAM = "print(int(input()) * 2)"


def score(passed: float, best: float = 0.0, completion: str = GOOD, program: str | None = PROGRAM, **fields) -> float:
    return paper(RewardInput(completion, program, passed, best, **fields))


@pytest.mark.parametrize(
    ("passed", "reward"),
    [(1.0, 1.0), (0.99, 0.2), (0.5, 0.2), (0.49, 0.0), (0.01, 0.0), (0.0, -0.1)],
)
def test_the_base_follows_the_pass_rate(passed, reward):
    assert score(passed) == pytest.approx(reward)


@pytest.mark.parametrize(
    ("passed", "best", "reward"),
    [
        (1.0, 0.9, 1.0),
        (1.0, 1.0, 1.0),
        (0.95, 0.9, 0.2 + 0.1 * 0.5),
        (0.6, 0.2, 0.2 + 0.1 * 0.5),
        (0.4, 0.2, 0.0 + 0.1 * 0.25),
        (0.9, 0.9, -0.1),
        (0.45, 0.9, -0.15),
        (0.0, 0.9, -0.2),
        (0.5, 1.0, -0.15),
        (0.0, 0.0, -0.1),
        (0.3, 0.0, 0.0),
    ],
)
def test_improvement_is_measured_against_the_best_earlier_program(passed, best, reward):
    assert score(passed, best) == pytest.approx(reward)


@pytest.mark.parametrize("passed", [0.0, 1.0])
def test_without_code_nothing_else_counts(passed):
    assert score(passed, 0.5, completion="wait " * 900, program=None, thinks=True, thinking_tokens=9000) == -1


@pytest.mark.parametrize(
    "completion",
    [
        "```\nprint(1)\n```",
        "```py\nprint(1)\n```",
        GOOD + GOOD,
        GOOD + "```",
        GOOD + "```text\noutput\n```",
        "``` then ```python\nprint(1)\n",
        GOOD + "All done, I hope it is right!!!\n" * 8,
    ],
    ids=["no label", "other label", "two blocks", "stray fence", "another language", "fences swapped", "repetition"],
)
def test_all_tests_in_a_bad_format_score_a_tenth(completion):
    assert score(1.0, completion=completion) == pytest.approx(0.1)


def test_single_backticks_in_an_explanation_are_no_fence():
    assert score(1.0, completion=GOOD + "`input()` reads a line.") == 1.0


@pytest.mark.parametrize(
    ("completion", "reward"), [(f"hm</think>{GOOD}", 1.0), (GOOD, 0.1), (f"hm</think>so</think>{GOOD}", 0.1)]
)
def test_a_thinking_model_closes_its_thinking_exactly_once(completion, reward):
    assert score(1.0, completion=completion, thinks=True) == pytest.approx(reward)


def test_the_fine_for_bad_format_adds_to_a_failure_and_is_clamped():
    assert score(0.0, 0.9, completion=GOOD + GOOD) == -1
    assert score(0.3, completion=GOOD + GOOD) == pytest.approx(-0.9)


@pytest.mark.parametrize(
    ("counts", "fine"),
    [
        ({"thinking_tokens": 4096, "response_tokens": 2048, "explanation_tokens": 512}, 0),
        ({"thinking_tokens": 4097}, -0.01),
        ({"response_tokens": 2049}, -0.01),
        ({"explanation_tokens": 513}, -0.01),
        ({"thinking_tokens": 4097, "response_tokens": 2049, "explanation_tokens": 513}, -0.01),
    ],
)
def test_length_costs_a_hundredth_after_success(counts, fine):
    assert score(1.0, **counts) == pytest.approx(1.0 + fine)
    assert score(0.3, **counts) == pytest.approx(0.0 + fine)


def test_after_failure_thought_is_worth_a_little_and_length_costs_a_tenth_each():
    thought = f"Wait. However, wait: let me check. Actually</think>{GOOD}"
    assert score(0.0, thinking_tokens=1024) == pytest.approx(-0.1 + 0.075 * math.tanh(1))
    assert score(0.0, completion=thought) == pytest.approx(-0.1 + 0.025)
    assert score(0.0, completion=f"await it</think>{GOOD}") == pytest.approx(-0.1)
    assert score(0.0, response_tokens=2049) == pytest.approx(-0.2)
    assert score(0.0, response_tokens=2049, explanation_tokens=513) == pytest.approx(-0.3)
    assert score(0.0, thinking_tokens=10**6) == pytest.approx(-0.1 + 0.075 - 0.1)


@given(
    passed=st.floats(0, 1), best=st.floats(0, 1), tokens=st.integers(0, 10**5), program=st.sampled_from([PROGRAM, None])
)
@pytest.mark.parametrize("name", REWARDS)
def test_every_reward_is_a_number_between_minus_one_and_one(name, passed, best, tokens, program):
    given = RewardInput(GOOD, program, passed, best, thinking_tokens=tokens, response_tokens=tokens)
    assert -1 <= REWARDS[name](given) <= 1


def test_the_plain_rewards_look_at_the_pass_rate_alone():
    almost = RewardInput(GOOD, PROGRAM, 0.9, 0.95)
    assert (pass_rate(almost), binary(almost)) == (0.9, 0.0)
    assert binary(RewardInput(GOOD, PROGRAM, 1.0, 0.0)) == 1.0


def test_parts_are_counted_with_the_given_tokenizer():
    counts = count_parts(f"one two three</think>{GOOD}", PROGRAM, lambda text: len(text.split()))
    assert counts == {"thinking_tokens": 3, "response_tokens": 8, "explanation_tokens": 5}
    assert count_parts("no code here", None, len)["explanation_tokens"] == len("no code here")
