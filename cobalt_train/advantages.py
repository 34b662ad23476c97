"""From the rewards of a group to the advantages of its completions.

Every function takes rewards (G, n) and `valid` (G, n) and returns advantages (G, n). A completion that the sandbox failed to
judge is not valid: it has no vote in its group's baseline and an advantage of 0. A group whose valid rewards are all the
same says nothing about which completion was better; `is_dead` finds such groups, so that they are dropped and counted
before anything is computed with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

STD_FLOOR = 1e-6  # keeps the quotient finite; groups without any spread are dead and never get here


def mean(rewards: Tensor, valid: Tensor) -> Tensor:
    """Reward minus the mean reward of the group."""
    votes = valid.to(rewards.dtype)
    baseline = _masked(rewards, valid).sum(1, keepdim=True) / votes.sum(1, keepdim=True).clamp(min=1)
    return _masked(rewards - baseline, valid)


dr_grpo = mean  # Dr. GRPO (arXiv 2503.20783) takes this advantage and changes the denominator of the loss


def group_std(rewards: Tensor, valid: Tensor) -> Tensor:
    """GRPO (arXiv 2402.03300): reward minus the group's mean, divided by the group's sample standard deviation."""
    centred = mean(rewards, valid)
    degrees = (valid.sum(1, keepdim=True) - 1).clamp(min=1)
    return centred / ((centred.square().sum(1, keepdim=True) / degrees).sqrt() + STD_FLOOR)


def is_dead(rewards: Tensor, valid: Tensor) -> Tensor:
    """(G,) True where the valid rewards of a group do not differ, or fewer than two are valid."""
    highest = rewards.masked_fill(~valid, float("-inf")).amax(1)
    lowest = rewards.masked_fill(~valid, float("inf")).amin(1)
    return ~(highest > lowest)


ADVANTAGES: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "group_std": group_std,
    "mean": mean,
    "dr_grpo": dr_grpo,
}


def _masked(rewards: Tensor, valid: Tensor) -> Tensor:
    """Zero where not valid: whatever stands there, NaN included, must not spread."""
    return torch.where(valid, rewards, torch.zeros_like(rewards))
