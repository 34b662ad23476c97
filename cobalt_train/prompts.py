"""The prompts of a run, and the order in which they are used.

For `cobalt` they are the prompts of the dataset, for the online algorithms its problems, whose later prompts come to be in
the rollout. An epoch goes through all of them once, in an order drawn from (seed, epoch, id). A cursor counts those used
so far, over all epochs: it is all that a resumed run needs to know about data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from cobalt_data.dataset import Version
from cobalt_data.errors import InputError
from cobalt_data.ids import derive_seed
from cobalt_data.rows import Chat, Problem, Prompt
from cobalt_data.split import TRAIN
from cobalt_data.templates import Template
from cobalt_train.config import TrainConfig

Item = TypeVar("Item", Prompt, Problem)


@dataclass(frozen=True, slots=True)
class PromptSet(Generic[Item]):
    """The prompts (or problems) of one side that fit, by id, and how many did not."""

    by_id: dict[str, Item]
    too_long: int
    prompt_tokens: int  # of all that fit

    def take(self, seed: int, cursor: int, count: int) -> dict[str, Item]:
        """The `count` prompts from `cursor` on, in order. They may reach from one epoch into the next; one that both
        have is there once."""
        ids = tuple(self.by_id)
        places = (divmod(cursor + offset, len(ids)) for offset in range(count))
        taken = (_order(ids, seed, epoch)[place] for epoch, place in places)
        return {prompt_id: self.by_id[prompt_id] for prompt_id in taken}


@lru_cache(maxsize=2)
def _order(ids: Sequence[str], seed: int, epoch: int) -> list[str]:
    return sorted(ids, key=lambda prompt_id: (derive_seed(seed, "epoch", epoch, prompt_id), prompt_id))


def load_prompts(
    version: Version, count_tokens: Callable[[Chat], int], limit: int, side: str = TRAIN
) -> PromptSet[Prompt]:
    """Reads a side's prompts of at most `limit` tokens. Raises InputError if none is left, or one has no tests."""
    prompts = {row["prompt_id"]: Prompt.from_row(row) for row in version.rows("prompts", side)}
    for prompt_id, prompt in prompts.items():
        if not prompt.tests:
            raise InputError(f"prompt {prompt_id} has no tests: nothing could reward its completions")
    if not prompts:
        raise InputError(
            f"{version.reference} has no prompts in the split {side}: run `cobalt data split` before collecting and cutting"
        )
    chats = ((prompt_id, prompt, prompt.prompt) for prompt_id, prompt in prompts.items())
    return _fitting(version, chats, count_tokens, limit)


def load_problems(
    version: Version, template: Template, count_tokens: Callable[[Chat], int], limit: int, side: str = TRAIN
) -> PromptSet[Problem]:
    """Reads a side's problems whose first prompt has at most `limit` tokens. Raises InputError if none is left."""
    problems = [Problem.from_row(row) for row in version.rows("problems", side)]
    if not problems:
        raise InputError(f"{version.reference} has no problems in the split {side}: run `cobalt data split` first")
    chats = ((problem.problem_id, problem, template.first_turn(problem)) for problem in problems)
    return _fitting(version, chats, count_tokens, limit)


def _fitting(
    version: Version, items: Iterable[tuple[str, Item, Chat]], count_tokens: Callable[[Chat], int], limit: int
) -> PromptSet[Item]:
    """`items` are ids, what they name, and the chat that has to fit."""
    by_id: dict[str, Item] = {}
    too_long, prompt_tokens = 0, 0
    for item_id, item, chat in items:
        tokens = count_tokens(chat)
        if tokens > limit:
            too_long += 1
            continue
        by_id[item_id] = item
        prompt_tokens += tokens
    if not by_id:
        raise InputError(
            f"all {too_long} prompts of {version.reference} are longer than {limit} tokens: "
            "raise max_prompt_tokens, or lower max_tokens where the model's context is the limit"
        )
    return PromptSet(dict(sorted(by_id.items())), too_long, prompt_tokens)


def longest_prompt(config: TrainConfig, context: int) -> int:
    """The most tokens of a prompt that is trained on: as set, and with room for a completion in the model's context."""
    if config.max_tokens >= context:
        raise InputError(
            f"max_tokens is {config.max_tokens}, but the model's context has {context} tokens: leave room for a prompt"
        )
    return min(config.max_prompt_tokens, context - config.max_tokens)


def groups_per_step(config: TrainConfig, prompts: int) -> int:
    """As set, or all prompts where there are fewer: a step takes none of them twice."""
    return min(config.prompts_per_step, prompts)


def total_steps(config: TrainConfig, prompts: int) -> int:
    """The steps of a run over so many prompts."""
    return config.steps or math.ceil(config.epochs * prompts / groups_per_step(config, prompts))
