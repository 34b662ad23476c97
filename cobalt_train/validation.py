"""How good the policy is on the side `validation`: practice like in a step, over all of its prompts, and nothing is learned.

The draws are the same each time, so that two validations differ by the policy alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cobalt_train.algorithms import Algorithm, practise_together
from cobalt_train.metrics import reward_metrics
from cobalt_train.ranks import Ranks

DRAWS = 0  # steps count from 1: these draws are no step's


def score(figures: Mapping[str, Any], algo: str) -> float | None:
    """What tells the best of several validations: the mean reward; of `verpo`, which weighs tests anew in every group, so that
    its rewards compare within one alone, the pass rate."""
    value: float | None = figures["pass_rate" if algo == "verpo" else "reward"]
    return value


def validate(algorithm: Algorithm, ranks: Ranks) -> dict[str, Any]:
    """Figures over the completions of all of the algorithm's prompts. All processes call it together."""
    prompts = algorithm.prompts.by_id
    practice = practise_together(algorithm, DRAWS, prompts, ranks)
    return {"prompts": len(prompts), **reward_metrics(practice.groups)}
