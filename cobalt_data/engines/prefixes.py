"""Which tokens the prompts of a call have in common, so that each is computed once.

The prompts form a tree: a node holds tokens that all prompts below it share, a leaf the rest of one prompt. The system
message, worked examples and a problem's statement become inner nodes without being named as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

Tokens = tuple[int, ...]

SHORTEST_SHARED = 32  # a shorter common part costs more to keep apart than to compute again


@dataclass(frozen=True, slots=True)
class Node:
    """Tokens behind those of the parent. A leaf (without children) ends the prompts of these indices, which are equal."""

    tokens: Tokens
    children: tuple[Node, ...] = ()
    prompts: tuple[int, ...] = ()

    @property
    def all_prompts(self) -> tuple[int, ...]:
        """Those that end here or below."""
        return self.prompts + tuple(index for child in self.children for index in child.all_prompts)


def prefix_forest(prompts: Sequence[Sequence[int]]) -> tuple[Node, ...]:
    """The prompts as trees, in an order that depends on their tokens and not on their order in the call.

    Every leaf has at least one token, the last of its prompt: its logits are what completions start from.
    """
    indices: dict[Tokens, list[int]] = {}
    for index, prompt in enumerate(prompts):
        indices.setdefault(tuple(prompt), []).append(index)
    return _nodes(sorted(indices), 0, indices)


def _nodes(prompts: list[Tokens], depth: int, indices: dict[Tokens, list[int]]) -> tuple[Node, ...]:
    """The nodes for sorted, distinct prompts that share their first `depth` tokens.

    A prompt that ends where others go on is a leaf of its own beside them: they may share what comes after it.
    """
    nodes: list[Node] = []
    while prompts:
        together = _leading(prompts, depth + SHORTEST_SHARED)
        first, end = together[0], common_length(together[0], together[-1])
        if len(together) > 1:
            nodes.append(Node(first[depth:end], _nodes(together, end, indices)))
        else:
            nodes.append(Node(first[depth:], prompts=tuple(indices[first])))
        prompts = prompts[len(together) :]
    return tuple(nodes)


def _leading(prompts: list[Tokens], least: int) -> list[Tokens]:
    """The first of sorted prompts, and those behind it that share `least` tokens with it."""
    first, *others = prompts
    return [first, *takewhile(lambda prompt: common_length(first, prompt) >= least, others)]


def common_length(first: Tokens, last: Tokens) -> int:
    """How many tokens both begin with; the last token of `first` stays out.

    What the first and the last of sorted prompts share, all of them share.
    """
    length = 0
    for a, b in zip(first[:-1], last, strict=False):
        if a != b:
            break
        length += 1
    return length
