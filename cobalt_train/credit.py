"""Credit in whole trajectories: from what the turns of a group passed to an advantage for every turn.

A group is the n trajectories of one problem, of up to T turns, judged by the same J tests. `passed` (n, T, J) says which
tests each turn's program passed, `taken` (n, T) which turns there are. Computed in float64, since a density over tests and
a baseline over turns are differences of nearly equal numbers.

`broadcast` is GRPO-MT's: all turns of a trajectory share its advantage. `verpo_advantages` is VeRPO (arXiv 2601.03525): a
trajectory's outcome plus a dense reward per turn, in which a test weighs more the fewer programs of the group pass it and
the fewer tests are as hard. The paper leaves its five constants open; the defaults of
`TrainConfig` are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cobalt_data.errors import InputError

SAME = 1e-9  # of the largest value: a difference that is none


@dataclass(frozen=True, slots=True)
class Verpo:
    """`alpha`: how much a test loses by being passed often; `sigma`: how near pass rates are equally hard, `delta` softens
    that; `beta`: what turns count beside the outcome; `gamma`: what a success keeps for every program it took.
    """

    alpha: float
    sigma: float
    delta: float
    beta: float
    gamma: float

    def __post_init__(self) -> None:
        for name in ("alpha", "delta", "beta"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"verpo_{name} is {getattr(self, name)}: give a number of at least 0")
        if not 0 < self.sigma < float("inf"):
            raise InputError(f"verpo_sigma is {self.sigma}: give a number above 0")
        if not 0 < self.gamma <= 1:
            raise InputError(f"verpo_gamma is {self.gamma}: give a number in (0, 1]")


def broadcast(advantages: Tensor, taken: Tensor) -> Tensor:
    """(n, T): the advantage (n,) of a trajectory for each of its turns, 0 where there is none."""
    return torch.where(taken, advantages[:, None], 0.0)


def weights_of_tests(passed: Tensor, taken: Tensor, settings: Verpo) -> Tensor:
    """(J,) float64: `exp(-alpha rho) / (N(rho) + delta)`, where rho is the share of the group's programs that pass a test
    and N counts the tests about as hard, itself included."""
    programs = taken.sum().clamp(min=1)
    shares = (passed & taken[..., None]).sum((0, 1)).double() / programs
    distances = shares[:, None] - shares[None, :]
    crowd = (-distances.square() / (2 * settings.sigma**2)).exp().sum(1)
    return (-settings.alpha * shares).exp() / (crowd + settings.delta)


def verpo_turn_rewards(passed: Tensor, taken: Tensor, settings: Verpo) -> Tensor:
    """(n, T) float64: the weights of the tests that each program passed, summed; 0 where there is no turn."""
    weights = weights_of_tests(passed, taken, settings)
    return ((passed & taken[..., None]).double() * weights).sum(-1)


def verpo_outcomes(succeeded: Tensor, programs: Tensor, settings: Verpo) -> Tensor:
    """(n,) float64: `gamma ** programs` for a trajectory that succeeded, its solution being program number `programs`."""
    return torch.where(succeeded, settings.gamma ** programs.double(), 0.0)


def verpo_advantages(outcomes: Tensor, turn_rewards: Tensor, taken: Tensor, settings: Verpo) -> Tensor:
    """(n, T) float64: the outcome over its mean, and `beta` times the turn's reward over the mean of all turns of the group.

    Neither is divided by a standard deviation. All are exactly 0 where nothing differs: such a group is dead.
    """
    above = _above_mean(outcomes, torch.ones_like(outcomes, dtype=torch.bool))
    return torch.where(taken, above[:, None] + settings.beta * _above_mean(turn_rewards, taken), 0.0)


def _above_mean(values: Tensor, counted: Tensor) -> Tensor:
    """The counted values minus their mean; exactly 0 where they are the same but for the rounding of sums."""
    known = values[counted]
    alike = known.max() - known.min() <= SAME * known.abs().max()
    return torch.where(alike, torch.zeros_like(values), values - known.mean())
