"""From groups to what a step trains on: live rows with their advantages, in one batch per prompt.

Rows without a reward and groups without variance are left out here, before anything is packed or counted in a denominator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from cobalt_train.advantages import ADVANTAGES, is_dead
from cobalt_train.packing import split_rows
from cobalt_train.rollout import Group


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one prompt that have something to teach: n completions of at most T tokens.

    `old_logprobs` are what the policy ratio divides by; None means the very pass that trains, where the ratio is 1.
    """

    prompt_id: str
    prompt: tuple[int, ...]
    completions: tuple[tuple[int, ...], ...]
    advantages: Tensor  # (n,) float32
    engine_logprobs: Tensor  # (n, T) float32, padded with 0
    old_logprobs: Tensor | None = None  # (n, T)

    @property
    def lengths(self) -> list[int]:
        return [len(completion) for completion in self.completions]

    def micro_batches(self, max_tokens: int, shared_prefix: bool) -> list[Batch]:
        """The same rows, in parts that take at most `max_tokens` tokens each to score."""
        return [self._take(rows) for rows in split_rows(len(self.prompt), self.lengths, max_tokens, shared_prefix)]

    def _take(self, rows: range) -> Batch:
        inside = slice(rows.start, rows.stop)
        width = max(self.lengths[inside])
        return Batch(
            self.prompt_id,
            self.prompt,
            self.completions[inside],
            self.advantages[inside],
            self.engine_logprobs[inside, :width],
            None if self.old_logprobs is None else self.old_logprobs[inside, :width],
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
            continue
        rows = [row for row in group.rows if row.reward is not None]
        batches.append(
            Batch(
                prompt_id=group.prompt_id,
                prompt=group.prompt_ids,
                completions=tuple(row.token_ids for row in rows),
                advantages=ADVANTAGES[advantage](rewards, valid)[valid].float(),
                engine_logprobs=padded([row.logprobs for row in rows]),
            )
        )
    return Lesson(tuple(batches), dead, masked)


def split_evenly(batches: Sequence[Batch], parts: int) -> list[Sequence[Batch]]:
    """Consecutive parts of nearly equal size, none of them empty: fewer where there are fewer batches."""
    parts = min(parts, len(batches))
    bounds = [len(batches) * part // parts for part in range(parts + 1)] if parts else []
    return [batches[start:end] for start, end in pairwise(bounds)]


def padded(rows: Sequence[Sequence[float]]) -> Tensor:
    """(n, T) float32, 0 beyond the end of a row."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[0.0] * (width - len(row))] for row in rows], dtype=torch.float32)
