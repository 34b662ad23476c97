"""From groups to what a step trains on: live rows with their advantages, in one batch per prompt.

Rows without a reward and groups without variance are left out here, before anything is packed or counted in a denominator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

from cobalt_train.advantages import ADVANTAGES, is_dead
from cobalt_train.packing import Rows, split_rows
from cobalt_train.rollout import Group


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one prompt that have something to teach: n completions of at most T tokens."""

    prompt_id: str
    prompt: tuple[int, ...]
    completions: tuple[tuple[int, ...], ...]
    advantages: Tensor  # (n,) float32
    engine_logprobs: Tensor  # (n, T) float32, padded with 0


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Rows of one or several prompts that are scored in one pass: N completions of at most T tokens.

    `old_logprobs` are what the policy ratio divides by; None means the very pass that trains, where the ratio is 1.
    """

    groups: tuple[Rows, ...]
    advantages: Tensor  # (N,)
    engine_logprobs: Tensor  # (N, T)
    old_logprobs: Tensor | None = None  # (N, T)

    @property
    def lengths(self) -> list[int]:
        return [len(completion) for _, completions in self.groups for completion in completions]


def micro_batches(batches: Sequence[Batch], max_tokens: int, shared_prefix: bool) -> list[MicroBatch]:
    """The rows of all batches, in parts that take at most `max_tokens` tokens each to score."""
    groups = [(batch.prompt, batch.completions) for batch in batches]
    return [
        _gather([(batches[index], slice(rows.start, rows.stop)) for index, rows in part])
        for part in split_rows(groups, max_tokens, shared_prefix)
    ]


def _gather(parts: Sequence[tuple[Batch, slice]]) -> MicroBatch:
    groups = tuple((batch.prompt, batch.completions[rows]) for batch, rows in parts)
    width = max(len(completion) for _, completions in groups for completion in completions)
    logprobs = [batch.engine_logprobs[rows, :width] for batch, rows in parts]
    return MicroBatch(
        groups,
        advantages=torch.cat([batch.advantages[rows] for batch, rows in parts]),
        engine_logprobs=torch.cat([F.pad(rows, (0, width - rows.shape[1])) for rows in logprobs]),
    )


@dataclass(frozen=True, slots=True)
class Lesson:
    """The batches of a step, and what was left out."""

    batches: tuple[Batch, ...]
    dead_groups: int
    masked_rows: int


def make_lesson(groups: Sequence[Group], advantage: str) -> Lesson:
    """Keeps the groups whose rewards differ, and of these the rows that have a reward."""
    batches, dead, masked = [], 0, 0
    for group in groups:
        rewards, valid = group.rewards[None], group.valid[None]  # (1, n)
        masked += int((~valid).sum())
        if is_dead(rewards, valid).item():
            dead += 1
        else:
            batches.append(batch_of(group, ADVANTAGES[advantage](rewards, valid)[0]))
    return Lesson(tuple(batches), dead, masked)


def batch_of(group: Group, advantages: Tensor) -> Batch:
    """The rows of a group that have a reward, given the advantages (n,) of all of its rows."""
    rows = [row for row in group.rows if row.reward is not None]
    return Batch(
        prompt_id=group.prompt_id,
        prompt=group.prompt_ids,
        completions=tuple(row.token_ids for row in rows),
        advantages=advantages[group.valid].float(),
        engine_logprobs=padded([row.logprobs for row in rows]),
    )


def split_evenly(batches: Sequence[Batch], parts: int) -> list[Sequence[Batch]]:
    """Consecutive parts of nearly equal size, none of them empty: fewer where there are fewer batches."""
    parts = min(parts, len(batches))
    bounds = [len(batches) * part // parts for part in range(parts + 1)] if parts else []
    return [batches[start:end] for start, end in pairwise(bounds)]


def padded(rows: Sequence[Sequence[float]]) -> Tensor:
    """(n, T) float32, 0 beyond the end of a row."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[0.0] * (width - len(row))] for row in rows], dtype=torch.float32)
