"""Completing many prompts at once, in a bounded number of slots.

What the prompts share is computed once (`prefixes`) and, where enough rows share it, kept once (`cascade`). Rows, one per
sample, are decoded together, one token per step; a row that has ended makes room for the next at once. What a row has
computed can be kept for a later prompt that begins with it (`memory`). The schedule follows from the tokens alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from cobalt_data.engines.base import Sampling
from cobalt_data.engines.cascade import NAME, Prefill, Prefix, Slots
from cobalt_data.engines.laid_out import laid_out
from cobalt_data.engines.memory import Known, Memory
from cobalt_data.engines.prefixes import Node, Tokens, prefix_forest
from cobalt_data.engines.sampling import draw, uniforms
from cobalt_data.engines.token_engine import Decoded, Drawn

SLOTS = 64  # rows decoded together; with more, the matrix products are bound by arithmetic and nothing is gained
PREFILLED, LONGEST_PAST = 512, 16_384  # new tokens that a pass over prompts waits for, unless these prompts are so long
SHARED_ROWS = 8  # fewer rows are decoded faster with a copy each of what they share


@dataclass(frozen=True, slots=True)
class Row:
    """A sample on its way, behind a prefix that it may share with others."""

    sample: Decoded
    numbers: list[float]  # the uniforms to draw with, one per token
    prompt: Tokens
    shared: Prefix | None

    @property
    def position(self) -> int:
        """Of the token that was drawn last: the next step computes it."""
        return len(self.prompt) + len(self.sample.tokens) - 1

    @property
    def computed(self) -> Tokens:
        return (*self.prompt, *self.sample.tokens[:-1])

    @property
    def shared_length(self) -> int:
        return len(self.shared) if self.shared else 0

    @property
    def own_length(self) -> int:
        """Computed tokens behind the shared ones."""
        return self.position - self.shared_length


def decode(
    model: Any,
    prompts: Sequence[Sequence[int]],
    seeds: Sequence[Sequence[int]],
    sampling: Sampling,
    stop_ids: Collection[int],
    slots: int = SLOTS,
    memory: Memory | None = None,
) -> Drawn:
    """Draws `len(seeds[i])` samples of `prompts[i]`, until a stop token, which is kept, or `max_tokens`."""
    memory = memory or Memory(most_bytes=0)
    memory.begin_call()
    call = _Call(model, prompts, seeds, sampling, stop_ids, memory)
    cache = Slots(min(slots, sum(map(len, seeds))))
    with torch.inference_mode(), _attending(model), laid_out(model):
        fresh = call.fresh_rows(prefix_forest(prompts))
        active: list[Row] = []
        while True:
            while len(active) < slots and (admitted := next(fresh, None)):
                row, computed = admitted
                cache.admit(len(active), computed, row.shared_length)
                active.append(row)
            if not active:
                return call.samples
            call.step(active, cache)
            for place in reversed(range(len(active))):
                row = active[place]
                if call.has_ended(row):
                    if memory.has_room:
                        memory.keep(Known(row.computed, row.shared, cache.taken(place, row.own_length)))
                    last = active.pop()
                    if place < len(active):
                        cache.move(len(active), place, last.own_length)
                        active[place] = last


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A prompt, given under these indices, with what is computed of it already and what of that other rows share."""

    indices: tuple[int, ...]
    prompt: Tokens
    known: Prefix | None
    shared: Prefix | None

    @property
    def rest(self) -> Tokens:
        return self.prompt[len(self.known or ()) :]


def _filling(leaves: Iterator[_Leaf]) -> Iterator[_Leaf]:
    """The next leaves, until there is enough to compute in one pass, or as much as should be in memory at once."""
    new = all_tokens = 0
    while new < PREFILLED and all_tokens < LONGEST_PAST and (leaf := next(leaves, None)):
        new += len(leaf.rest)
        all_tokens += len(leaf.prompt)
        yield leaf


class _Branch:
    """Tokens that prompts have in common: computed when the first of them needs it."""

    def __init__(self, call: _Call, node: Node, above: _Branch | None) -> None:
        self._call, self._node, self._above = call, node, above
        self.depth: int = len(node.tokens) + (above.depth if above else 0)

    @cached_property
    def prefix(self) -> Prefix:
        return self._call.prefill([self._node.tokens], [self._above.prefix if self._above else None])[0][0]

    @cached_property
    def shared(self) -> Prefix | None:
        """The longest part that enough rows have in common to attend to it together."""
        if sum(len(self._call.seeds[prompt]) for prompt in self._node.all_prompts) >= SHARED_ROWS:
            return self.prefix
        return self._above.shared if self._above else None


class _Call:
    """A call's model and settings, with the samples that it fills."""

    def __init__(
        self,
        model: Any,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[Sequence[int]],
        sampling: Sampling,
        stop_ids: Collection[int],
        memory: Memory,
    ) -> None:
        self.model, self.prompts, self.seeds, self.sampling, self.stop_ids = model, prompts, seeds, sampling, stop_ids
        self.samples = [[Decoded() for _ in group] for group in seeds]
        self.memory = memory

    def fresh_rows(self, nodes: Sequence[Node]) -> Iterator[tuple[Row, Prefix]]:
        """The rows of these prompts with what has been computed for them, some prompts at a time, when their turn comes.

        A row comes with its first token drawn; one that ends with it does not come at all.
        """
        leaves = self._leaves(nodes, None)
        while together := list(_filling(leaves)):
            computed, logits = self.prefill([leaf.rest for leaf in together], [leaf.known for leaf in together])
            for leaf, prefix, distribution in zip(together, computed, logits, strict=True):
                yield from ((row, prefix) for row in self._rows(leaf, prefix, distribution) if not self.has_ended(row))

    def _leaves(self, nodes: Sequence[Node], above: _Branch | None) -> Iterator[_Leaf]:
        for node in nodes:
            if node.children:
                yield from self._leaves(node.children, _Branch(self, node, above))
            elif any(self.seeds[index] for index in node.prompts):
                prompt = tuple(self.prompts[node.prompts[0]])
                recalled = self.memory.recall(prompt, least=above.depth if above else 0)
                known, shared = recalled or ((above.prefix, above.shared) if above else (None, None))
                yield _Leaf(node.prompts, prompt, known, shared)

    def _rows(self, leaf: _Leaf, computed: Prefix, logits: Tensor) -> list[Row]:
        """The samples of a prompt, with their first token drawn from these logits.  (V,)"""
        samples = [sample for index in leaf.indices for sample in self.samples[index]]
        seeds = [seed for index in leaf.indices for seed in self.seeds[index]]
        shared = computed if len(samples) >= SHARED_ROWS else leaf.shared
        numbers = uniforms(seeds, self.sampling.max_tokens).tolist()
        rows = [Row(sample, own, leaf.prompt, shared) for sample, own in zip(samples, numbers, strict=True)]
        self._draw(rows, logits.expand(len(rows), -1))
        return rows

    def step(self, rows: Sequence[Row], cache: Slots) -> None:
        """Computes the last token of every row and draws the next."""
        cache.start_step([row.shared for row in rows], [row.own_length for row in rows])
        tokens = [[row.sample.tokens[-1]] for row in rows]
        self._draw(rows, self._forward(tokens, [[row.position] for row in rows], cache, scored=1)[:, 0])

    def has_ended(self, row: Row) -> bool:
        tokens = row.sample.tokens
        return tokens[-1] in self.stop_ids or len(tokens) == self.sampling.max_tokens

    def prefill(self, tokens: Sequence[Tokens], behind: Sequence[Prefix | None]) -> tuple[list[Prefix], Tensor]:
        """The prefixes that end with these tokens, and the logits of what comes next after each.  (N, V)"""
        counts = [len(each) for each in tokens]
        starts = [len(each or ()) for each in behind]
        state = Prefill(behind, counts)
        row = [token for each in tokens for token in each]
        positions = [start + place for start, count in zip(starts, counts, strict=True) for place in range(count)]
        logits = self._forward([row], [positions], state, torch.tensor(counts).cumsum(0) - 1)[0]
        return state.prefixes(self.model.config.get_text_config().num_hidden_layers), logits

    def _forward(self, tokens: Any, positions: Any, state: Prefill | Slots, scored: int | Tensor) -> Tensor:
        """Logits of the last `scored` places, or of those places, of each row.  (rows, places, V)"""
        device = self.model.device
        output = self.model(
            input_ids=torch.tensor(tokens, device=device),
            position_ids=torch.tensor(positions, device=device),
            use_cache=False,
            logits_to_keep=scored,
            attention_state=state,
        )
        logits: Tensor = output.logits
        return logits

    def _draw(self, rows: Sequence[Row], logits: Tensor) -> None:
        numbers = [row.numbers[len(row.sample.tokens)] for row in rows]
        uniform = torch.tensor(numbers, dtype=torch.float64, device=logits.device)
        tokens, logprobs = draw(logits, uniform, self.sampling.temperature, self.sampling.top_p)
        for row, token, logprob in zip(rows, tokens.tolist(), logprobs.tolist(), strict=True):
            row.sample.tokens.append(token)
            row.sample.logprobs.append(logprob)


@contextmanager
def _attending(model: Any) -> Iterator[None]:
    """The model with this engine's attention, in evaluation mode; a model that others use gets its own back."""
    own, training = model.config._attn_implementation, model.training
    model.set_attn_implementation(NAME)
    model.eval()
    try:
        yield
    finally:
        model.set_attn_implementation(own)
        model.train(training)
