"""The prompts of a run, and the order in which they are used.

An epoch goes through all prompts once, in an order drawn from (seed, epoch, prompt_id). A cursor counts the prompts used so
far, over all epochs: it is all that a resumed run needs to know about data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cobalt_data.dataset import Version
from cobalt_data.errors import InputError
from cobalt_data.ids import derive_seed
from cobalt_data.rows import Chat, Prompt
from cobalt_data.split import TRAIN
from cobalt_train.config import TrainConfig


@dataclass(frozen=True, slots=True)
class PromptSet:
    """The prompts of the split `train` that fit, by id, and how many did not."""

    by_id: dict[str, Prompt]
    too_long: int
    prompt_tokens: int  # of all that fit

    def take(self, seed: int, cursor: int, count: int) -> list[str]:
        """The ids of the `count` prompts from `cursor` on; a step may reach from one epoch into the next."""
        ids = tuple(self.by_id)
        places = (divmod(cursor + offset, len(ids)) for offset in range(count))
        return [_order(ids, seed, epoch)[place] for epoch, place in places]


@lru_cache(maxsize=2)
def _order(ids: Sequence[str], seed: int, epoch: int) -> list[str]:
    return sorted(ids, key=lambda prompt_id: (derive_seed(seed, "epoch", epoch, prompt_id), prompt_id))


def load_prompts(version: Version, count_tokens: Callable[[Chat], int], limit: int) -> PromptSet:
    """Reads the training prompts of at most `limit` tokens. Raises InputError if none is left, or one has no tests."""
    by_id: dict[str, Prompt] = {}
    too_long, prompt_tokens = 0, 0
    for row in version.rows("prompts", TRAIN):
        prompt = Prompt.from_row(row)
        if not prompt.tests:
            raise InputError(f"prompt {row['prompt_id']} has no tests: nothing could reward its completions")
        tokens = count_tokens(prompt.prompt)
        if tokens > limit:
            too_long += 1
            continue
        by_id[row["prompt_id"]] = prompt
        prompt_tokens += tokens
    if too_long and not by_id:
        raise InputError(
            f"all {too_long} training prompts of {version.reference} are longer than {limit} tokens: "
            "raise max_prompt_tokens, or lower max_tokens where the model's context is the limit"
        )
    if not by_id:
        raise InputError(
            f"{version.reference} has no prompts in the split {TRAIN}: run `cobalt data split` before collecting and cutting"
        )
    return PromptSet(dict(sorted(by_id.items())), too_long, prompt_tokens)


def longest_prompt(config: TrainConfig, context: int) -> int:
    """The most tokens of a prompt that is trained on: as set, and with room for a completion in the model's context."""
    if config.max_tokens >= context:
        raise InputError(
            f"max_tokens is {config.max_tokens}, but the model's context has {context} tokens: leave room for a prompt"
        )
    return min(config.max_prompt_tokens, context - config.max_tokens)


def total_steps(config: TrainConfig, prompts: PromptSet) -> int:
    return config.steps or math.ceil(config.epochs * len(prompts.by_id) / config.prompts_per_step)
