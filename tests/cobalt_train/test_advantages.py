import math
import statistics

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cobalt_train.advantages import ADVANTAGES, dr_grpo, group_std, is_dead, mean

REWARDS = torch.tensor([[1.0, 0.2, -0.1, 0.2], [1.0, 1.0, 1.0, 1.0]], dtype=torch.float64)
ALL = torch.ones(2, 4, dtype=torch.bool)


def test_group_std_matches_a_reference_written_with_the_statistics_module():
    rewards = REWARDS[0].tolist()
    expected = [(r - statistics.fmean(rewards)) / statistics.stdev(rewards) for r in rewards]
    assert group_std(REWARDS, ALL)[0].tolist() == pytest.approx(expected, rel=1e-5)


def test_mean_subtracts_the_mean_and_nothing_else():
    assert mean(REWARDS, ALL)[0].tolist() == pytest.approx([0.675, -0.125, -0.425, -0.125])
    assert torch.equal(dr_grpo(REWARDS, ALL), mean(REWARDS, ALL))


@pytest.mark.parametrize("advantage", ADVANTAGES.values())
def test_a_completion_without_verdict_has_no_vote_and_no_advantage(advantage):
    rewards = torch.tensor([[1.0, 0.0, float("nan"), 0.5]])
    valid = torch.tensor([[True, True, False, True]])
    with_masked_row = advantage(rewards, valid)
    without_it = advantage(rewards[:, [0, 1, 3]], valid[:, [0, 1, 3]])
    assert with_masked_row[0, 2] == 0
    assert torch.equal(with_masked_row[:, [0, 1, 3]], without_it)


@pytest.mark.parametrize("advantage", ADVANTAGES.values())
@given(rewards=st.lists(st.floats(-1, 1), min_size=2, max_size=16))
def test_advantages_of_a_group_are_finite_and_sum_to_zero(advantage, rewards):
    values = advantage(torch.tensor([rewards], dtype=torch.float64), torch.ones(1, len(rewards), dtype=torch.bool))
    assert values.isfinite().all()
    assert abs(values.sum().item()) < 1e-6


@pytest.mark.parametrize(
    ("rewards", "valid", "dead"),
    [
        ([0.2, 0.2, 0.2], [True, True, True], True),
        ([0.2, 0.2, 0.3], [True, True, True], False),
        ([0.2, 0.2, 0.3], [True, True, False], True),
        ([0.2, 0.3, 0.4], [True, False, False], True),
        ([0.2, 0.3, 0.4], [False, False, False], True),
        ([0.2, math.nan, 0.2], [True, False, True], True),
    ],
)
def test_a_group_is_dead_if_its_valid_rewards_do_not_differ(rewards, valid, dead):
    assert is_dead(torch.tensor([rewards]), torch.tensor([valid])).tolist() == [dead]
