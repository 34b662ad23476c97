"""Lays the completions of prompts out as a forest in which every shared token stands once.

The row of a prompt P with completions R_1..R_n is [P, R_1, ..., R_n]: |P| + sum |R_i| tokens instead of
n |P| + sum |R_i|. Positions are depths in the tree, so each R_i restarts at |P|. The layout is depth first, which is all
that `cobalt_train.tree_attention` needs to know. Deeper trees (prompts nested in one another) are segments as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens [start, end) of a packed row; those of its descendants are [end, subtree_end)."""

    start: int
    end: int
    subtree_end: int


@dataclass(frozen=True, slots=True)
class PackedGroup:
    """One prompt and its completions in one row of L tokens.

    `scored_by[i, t]` is the index of the token whose hidden state predicts token t of completion i: the prompt's last
    token for t = 0. It is 0 where `mask` is False, beyond the end of a completion.
    """

    token_ids: Tensor  # (1, L)
    positions: Tensor  # (1, L)
    segments: tuple[Segment, ...]
    targets: Tensor  # (n, T) the completions' tokens, padded with 0
    scored_by: Tensor  # (n, T)
    mask: Tensor  # (n, T) bool

    def to(self, device: torch.device) -> PackedGroup:
        return PackedGroup(
            self.token_ids.to(device),
            self.positions.to(device),
            self.segments,
            self.targets.to(device),
            self.scored_by.to(device),
            self.mask.to(device),
        )


def pack_group(prompt: Sequence[int], completions: Sequence[Sequence[int]]) -> PackedGroup:
    """Packs completions of at least one token. The last token of each predicts nothing: its state is not asked for."""
    length = len(prompt)
    total = length + sum(map(len, completions))
    token_ids, positions = list(prompt), list(range(length))
    segments = [Segment(0, length, total)]
    width = max(map(len, completions))
    targets, scored_by = torch.zeros(2, len(completions), width, dtype=torch.long)
    mask = torch.zeros(len(completions), width, dtype=torch.bool)
    for row, completion in enumerate(completions):
        start, end = len(token_ids), len(token_ids) + len(completion)
        segments.append(Segment(start, end, end))
        token_ids.extend(completion)
        positions.extend(range(length, length + len(completion)))
        targets[row, : len(completion)] = torch.tensor(completion)
        scored_by[row, : len(completion)] = torch.tensor([length - 1, *range(start, end - 1)])
        mask[row, : len(completion)] = True
    return PackedGroup(torch.tensor([token_ids]), torch.tensor([positions]), tuple(segments), targets, scored_by, mask)


def split_rows(prompt_tokens: int, row_tokens: Sequence[int], limit: int, shared_prefix: bool) -> list[range]:
    """Cuts the rows of a group into consecutive micro-batches of at most `limit` tokens, a row that is longer alone.

    Over a shared prefix a micro-batch costs its prompt once, on the plain path once per row.
    """
    batches, start, tokens = [], 0, 0
    for row, length in enumerate(row_tokens):
        cost = length if shared_prefix and row > start else prompt_tokens + length
        if row > start and tokens + cost > limit:
            batches.append(range(start, row))
            start, tokens, cost = row, 0, prompt_tokens + length
        tokens += cost
    return [*batches, range(start, len(row_tokens))]
