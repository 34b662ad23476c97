"""Completing many prompts at once, in a bounded number of slots.

What the prompts share is computed once (`prefixes`) and kept once (`cascade`). Rows, one per sample, are decoded together,
one token per step; a row that has ended makes room for the next at once. The schedule follows from the tokens alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cobalt_data.engines.base import Sampling
from cobalt_data.engines.cascade import NAME, Prefill, Prefix, Slots
from cobalt_data.engines.prefixes import Node, prefix_forest
from cobalt_data.engines.sampling import draw, uniforms
from cobalt_data.engines.token_engine import Decoded, Drawn

SLOTS = 64  # rows decoded together; with more, the matrix products are bound by arithmetic and nothing is gained


@dataclass(frozen=True, slots=True)
class Row:
    """A sample on its way, behind a prefix that it may share with others."""

    sample: Decoded
    numbers: list[float]  # the uniforms to draw with, one per token
    prompt_length: int
    shared: Prefix | None

    @property
    def position(self) -> int:
        """Of the token that was drawn last: the next step computes it."""
        return self.prompt_length + len(self.sample.tokens) - 1

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
) -> Drawn:
    """Draws `len(seeds[i])` samples of `prompts[i]`, until a stop token, which is kept, or `max_tokens`."""
    call = _Call(model, seeds, sampling, stop_ids)
    cache = Slots(min(slots, sum(map(len, seeds))))
    with torch.inference_mode(), _attending(model):
        fresh = call.fresh_rows(prefix_forest(prompts), 0, None)
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
                if call.has_ended(active[place]):
                    last = active.pop()
                    if place < len(active):
                        cache.move(len(active), place, last.own_length)
                        active[place] = last


class _Call:
    """A call's model and settings, with the samples that it fills."""

    def __init__(
        self, model: Any, seeds: Sequence[Sequence[int]], sampling: Sampling, stop_ids: Collection[int]
    ) -> None:
        self.model, self.seeds, self.sampling, self.stop_ids = model, seeds, sampling, stop_ids
        self.samples = [[Decoded() for _ in group] for group in seeds]

    def fresh_rows(self, nodes: Sequence[Node], depth: int, parent: Prefix | None) -> Iterator[tuple[Row, Prefix]]:
        """The rows below these nodes with what has been computed for them, each prompt computed when its turn comes.

        A row comes with its first token drawn; one that ends with it does not come at all.
        """
        for node in nodes:
            length = depth + len(node.tokens)
            if node.children:
                yield from self.fresh_rows(node.children, length, self._prefill(node, parent)[0])
                continue
            samples = [sample for prompt in node.prompts for sample in self.samples[prompt]]
            seeds = [seed for prompt in node.prompts for seed in self.seeds[prompt]]
            if not samples:
                continue
            computed, logits = self._prefill(node, parent)
            shared = computed if len(samples) > 1 else parent
            numbers = uniforms(seeds, self.sampling.max_tokens).tolist()
            rows = [Row(sample, own, length, shared) for sample, own in zip(samples, numbers, strict=True)]
            self._draw(rows, logits.expand(len(rows), -1))
            yield from ((row, computed) for row in rows if not self.has_ended(row))

    def step(self, rows: Sequence[Row], cache: Slots) -> None:
        """Computes the last token of every row and draws the next."""
        cache.start_step([row.shared for row in rows], [row.own_length for row in rows])
        tokens = [[row.sample.tokens[-1]] for row in rows]
        self._draw(rows, self._forward(tokens, [[row.position] for row in rows], cache))

    def has_ended(self, row: Row) -> bool:
        tokens = row.sample.tokens
        return tokens[-1] in self.stop_ids or len(tokens) == self.sampling.max_tokens

    def _prefill(self, node: Node, parent: Prefix | None) -> tuple[Prefix, Tensor]:
        """The prefix that ends with this node, and the logits of what comes next.  (1, V)"""
        start = len(parent) if parent else 0
        state = Prefill(parent)
        logits = self._forward([node.tokens], [range(start, start + len(node.tokens))], state)
        return state.prefix(self.model.config.get_text_config().num_hidden_layers), logits

    def _forward(self, tokens: Sequence[Any], positions: Sequence[Any], state: Prefill | Slots) -> Tensor:
        device = self.model.device
        output = self.model(
            input_ids=torch.tensor(tokens, device=device),
            position_ids=torch.tensor(positions, device=device),
            use_cache=False,
            logits_to_keep=1,
            attention_state=state,
        )
        logits: Tensor = output.logits[:, -1]
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
