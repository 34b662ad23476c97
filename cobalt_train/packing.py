"""Lays prompts and their completions out as a forest in which every shared token stands once.

The row of a prompt P with completions R_1..R_n is [P, R_1, ..., R_n]: |P| + sum |R_i| tokens instead of n |P| + sum |R_i|.
Prompts of one trajectory begin alike, so they share as well: P and the longer P Q are the tree [P, R_1..R_n, Q, S_1..S_m],
and prompts that have nothing in common are trees side by side. Positions are depths in the tree. The layout is depth first,
which is all that `cobalt_train.tree_attention` needs to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from cobalt_data.engines.prefixes import Node, prefix_forest

Rows = tuple[Sequence[int], Sequence[Sequence[int]]]  # a prompt and completions of it, each of at least one token


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens [start, end) of a packed row; those of its descendants are [end, subtree_end)."""

    start: int
    end: int
    subtree_end: int

    def __len__(self) -> int:
        return self.end - self.start

    @property
    def is_leaf(self) -> bool:
        return self.end == self.subtree_end


@dataclass(frozen=True, slots=True)
class Packed:
    """Completions of some prompts in one row of L tokens, M of them the completions'.

    `scored_by` are the tokens whose hidden states predict the M tokens, completion by completion: first the prompt's last.
    """

    token_ids: Tensor  # (1, L)
    positions: Tensor  # (1, L)
    segments: tuple[Segment, ...]
    scored_by: Tensor  # (M,)

    def to(self, device: torch.device) -> Packed:
        return Packed(self.token_ids.to(device), self.positions.to(device), self.segments, self.scored_by.to(device))


def pack(groups: Sequence[Rows]) -> Packed:
    """Packs the completions of all groups. The state of a completion's last token predicts nothing that is asked for."""
    layout = _Layout(groups)
    for root in prefix_forest([prompt for prompt, _ in groups]):
        layout.add(root, 0)
    return Packed(
        torch.tensor([layout.token_ids]),
        torch.tensor([layout.positions]),
        tuple(sorted(layout.segments, key=lambda segment: segment.start)),
        torch.tensor([index for of_group in layout.scored_by for index in of_group]),
    )


def padded_targets(groups: Sequence[Rows]) -> tuple[Tensor, Tensor]:
    """The tokens of all N completions, padded with 0, and a mask that tells which they are, both (N, T)."""
    rows = [torch.tensor(completion) for _, completions in groups for completion in completions]
    mask = [torch.ones(len(row), dtype=torch.bool) for row in rows]
    return pad_sequence(rows, batch_first=True), pad_sequence(mask, batch_first=True)


@dataclass(slots=True)
class _Layout:
    """A packed row that grows; `scored_by` is kept per group, in the order in which they were given."""

    groups: Sequence[Rows]
    token_ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    scored_by: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.scored_by = [[] for _ in self.groups]

    def add(self, node: Node, depth: int) -> None:
        """Lays out a node whose first token has `depth` tokens before it, and all that is below it."""
        start, end = self._append(node.tokens, depth)
        below = depth + len(node.tokens)
        for group in node.prompts:
            for completion in self.groups[group][1]:
                first, last = self._append(completion, below)
                self.segments.append(Segment(first, last, last))
                self.scored_by[group] += [end - 1, *range(first, last - 1)]
        for child in node.children:
            self.add(child, below)
        self.segments.append(Segment(start, end, len(self.token_ids)))

    def _append(self, tokens: Sequence[int], depth: int) -> tuple[int, int]:
        start = len(self.token_ids)
        self.token_ids.extend(tokens)
        self.positions.extend(range(depth, depth + len(tokens)))
        return start, len(self.token_ids)


def split_rows(groups: Sequence[Rows], limit: int, shared_prefix: bool) -> list[list[tuple[int, range]]]:
    """Cuts groups into micro-batches of at most `limit` tokens, a row that is longer alone: lists of (group, its rows).

    The groups come sorted by their prompts, so that those which begin alike lie together, whatever order they were given in.
    Over a shared prefix a micro-batch costs its packed row; on the plain path its rows are padded to the longest.
    """
    batches: list[list[tuple[int, range]]] = []
    current: list[tuple[int, range]] = []
    prompts: list[Sequence[int]] = []
    tokens = rows = longest = 0  # of the completions so far; of the rows, for the plain path
    for group in sorted(range(len(groups)), key=lambda group: tuple(groups[group][0])):
        prompt, completions = groups[group]
        prompts, first = [*prompts, prompt], 0
        shared = _forest_tokens(prompts) if shared_prefix else 0
        for row, completion in enumerate(completions):
            width = max(longest, len(prompt) + len(completion))
            cost = shared + tokens + len(completion) if shared_prefix else (rows + 1) * width
            if rows and cost > limit:
                batches.append([*current, (group, range(first, row))] if row > first else current)
                current, prompts, first = [], [prompt], row
                tokens, rows, width, shared = 0, 0, len(prompt) + len(completion), len(prompt)
            tokens, rows, longest = tokens + len(completion), rows + 1, width
        current = [*current, (group, range(first, len(completions)))]
    return [*batches, current] if current else batches


def _forest_tokens(prompts: Sequence[Sequence[int]]) -> int:
    def of(node: Node) -> int:
        return len(node.tokens) + sum(map(of, node.children))

    return sum(map(of, prefix_forest(prompts)))
