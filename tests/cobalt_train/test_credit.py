"""Credit of turns in whole trajectories, against references written in plain Python."""

import math
import statistics
from itertools import chain

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cobalt_data.errors import InputError
from cobalt_train.credit import (
    Verpo,
    broadcast,
    verpo_advantages,
    verpo_outcomes,
    verpo_turn_rewards,
    weights_of_tests,
)

SETTINGS = Verpo(alpha=1.5, sigma=0.2, delta=0.01, beta=0.7, gamma=0.9)


@st.composite
def groups(draw):
    """`passed[i][t][j]` of trajectories of different lengths, judged by the same tests."""
    tests = draw(st.integers(1, 4))
    program = st.lists(st.booleans(), min_size=tests, max_size=tests)
    return draw(st.lists(st.lists(program, min_size=1, max_size=3), min_size=1, max_size=4))


def tensors(group):
    turns, tests = max(map(len, group)), len(group[0][0])
    passed = torch.ones(len(group), turns, tests, dtype=torch.bool)  # what stands beyond the last turn must not count
    taken = torch.zeros(len(group), turns, dtype=torch.bool)
    for i, trajectory in enumerate(group):
        passed[i, : len(trajectory)] = torch.tensor(trajectory)
        taken[i, : len(trajectory)] = True
    return passed, taken


def reference_weights(group, s):
    programs = [program for trajectory in group for program in trajectory]
    rho = [statistics.fmean(map(float, column)) for column in zip(*programs, strict=True)]
    crowds = [sum(math.exp(-((one - other) ** 2) / (2 * s.sigma**2)) for other in rho) for one in rho]
    return [math.exp(-s.alpha * share) / (crowd + s.delta) for share, crowd in zip(rho, crowds, strict=True)]


@given(groups())
def test_weights_and_turn_rewards_match_the_formula(group):
    passed, taken = tensors(group)
    weights = reference_weights(group, SETTINGS)
    assert weights_of_tests(passed, taken, SETTINGS).tolist() == pytest.approx(weights, rel=1e-12)
    rewards = verpo_turn_rewards(passed, taken, SETTINGS)
    for i, trajectory in enumerate(group):
        expected = [sum(w for w, ok in zip(weights, program, strict=True) if ok) for program in trajectory]
        assert rewards[i, : len(trajectory)].tolist() == pytest.approx(expected, rel=1e-12)
        assert not rewards[i, len(trajectory) :].any()


@given(groups())
def test_advantages_match_the_formula_and_are_zero_beyond_the_last_turn(group):
    passed, taken = tensors(group)
    solved = [all(trajectory[-1]) for trajectory in group]
    lengths = [len(trajectory) for trajectory in group]
    outcomes = verpo_outcomes(torch.tensor(solved), torch.tensor(lengths), SETTINGS)
    rewards = verpo_turn_rewards(passed, taken, SETTINGS)
    advantages = verpo_advantages(outcomes, rewards, taken, SETTINGS)
    traj = [SETTINGS.gamma**length if ok else 0.0 for ok, length in zip(solved, lengths, strict=True)]
    turn = [rewards[i, : len(trajectory)].tolist() for i, trajectory in enumerate(group)]
    traj_mean, turn_mean = statistics.fmean(traj), statistics.fmean(chain.from_iterable(turn))
    for i, trajectory in enumerate(group):
        expected = [traj[i] - traj_mean + SETTINGS.beta * (value - turn_mean) for value in turn[i]]
        assert advantages[i, : len(trajectory)].tolist() == pytest.approx(expected, abs=1e-12)
        assert not advantages[i, len(trajectory) :].any()


@given(groups(), st.randoms())
def test_advantages_follow_their_trajectories_and_do_not_depend_on_the_order_of_tests(group, random):
    order, columns = list(range(len(group))), list(range(len(group[0][0])))
    random.shuffle(order)
    random.shuffle(columns)
    shuffled = [[[program[j] for j in columns] for program in group[i]] for i in order]

    def advantages(group):
        passed, taken = tensors(group)
        outcomes = verpo_outcomes(
            torch.tensor([all(t[-1]) for t in group]), torch.tensor(list(map(len, group))), SETTINGS
        )
        return verpo_advantages(outcomes, verpo_turn_rewards(passed, taken, SETTINGS), taken, SETTINGS)

    torch.testing.assert_close(advantages(shuffled), advantages(group)[order], rtol=0, atol=1e-12)


def test_a_test_that_few_pass_weighs_more_and_a_crowd_of_equal_tests_no_more_than_one():
    group = [[[True, False, False]], [[True, False, False]], [[True, False, False]], [[True, True, True]]]
    easy, *hard = weights_of_tests(*tensors(group), Verpo(1.0, 0.01, 0.0, 1.0, 1.0)).tolist()
    assert hard[0] == hard[1] > easy / 2
    assert sum(hard) == pytest.approx(math.exp(-0.25)) and easy == pytest.approx(math.exp(-1))


def test_a_group_in_which_nothing_differs_has_advantages_of_exactly_zero():
    passed, taken = tensors([[[True, False, True]] * 3] * 7)
    outcomes = verpo_outcomes(torch.tensor([True] * 7), torch.tensor([3] * 7), SETTINGS)
    assert not verpo_advantages(outcomes, verpo_turn_rewards(passed, taken, SETTINGS), taken, SETTINGS).any()


def test_sums_that_differ_by_their_rounding_alone_make_no_group_live():
    taken, outcomes = torch.ones(3, 1, dtype=torch.bool), torch.zeros(3, dtype=torch.float64)
    rewards = torch.tensor([[0.1 + 0.2], [0.3], [0.3]], dtype=torch.float64)
    assert rewards[0] != rewards[1]
    assert not verpo_advantages(outcomes, rewards, taken, SETTINGS).any()


def test_turns_differ_even_where_all_trajectories_fail():
    passed, taken = tensors([[[False, False], [True, False]], [[False, False], [False, False]]])
    outcomes = verpo_outcomes(torch.tensor([False, False]), torch.tensor([2, 2]), SETTINGS)
    advantages = verpo_advantages(outcomes, verpo_turn_rewards(passed, taken, SETTINGS), taken, SETTINGS)
    assert advantages[0, 1] > 0 > advantages[0, 0] == advantages[1, 0] == advantages[1, 1]


def test_a_success_is_worth_less_the_more_programs_it_took():
    outcomes = verpo_outcomes(torch.tensor([True, True, False]), torch.tensor([1, 3, 1]), SETTINGS)
    assert outcomes.tolist() == pytest.approx([0.9, 0.9**3, 0.0])


def test_all_turns_of_a_trajectory_share_its_advantage():
    taken = torch.tensor([[True, True, True], [True, False, False]])
    assert broadcast(torch.tensor([0.5, -0.5]), taken).tolist() == [[0.5, 0.5, 0.5], [-0.5, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("field", "value"),
    [("alpha", -1.0), ("sigma", 0.0), ("delta", -1e-9), ("beta", math.inf), ("gamma", 0.0), ("gamma", 1.1)],
)
def test_constants_without_meaning_are_refused_by_name(field, value):
    fields = {"alpha": 1.0, "sigma": 0.1, "delta": 0.0, "beta": 0.5, "gamma": 0.95}
    with pytest.raises(InputError, match=f"verpo_{field} is {value}"):
        Verpo(**{**fields, field: value})
