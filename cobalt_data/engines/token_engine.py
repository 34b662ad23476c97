"""What engines that work in token ids have in common: rendering chats, keeping within limits, reading completions.

Text is rendered once, by the chat template of the model, and never tokenised again. A completion ends with an end token that
tokenizer or generation config names, which is one of its tokens but not in its text, or at `max_tokens`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from cobalt_data.engines.base import Completion, Sampling, Session
from cobalt_data.errors import InputError
from cobalt_data.rows import Chat
from cobalt_data.tokens import rendered


@dataclass(slots=True)
class Decoded:
    """What one sample has drawn so far."""

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


Drawn = list[list[Decoded]]  # per prompt, per seed


class TokenEngine(ABC):
    """A model behind token ids. Its weights can be replaced, which is what makes it fit to train with."""

    name: str
    parallel_calls: int

    def __init__(
        self, tokenizer: Any, *, name: str, revision: str, context: int, stop_ids: frozenset[int] = frozenset()
    ) -> None:
        self.model = name
        self.model_revision = revision
        self.tokenizer = tokenizer
        self.context = context
        self.stop_ids = stop_ids

    @abstractmethod
    def draw(self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling) -> Drawn:
        """Draws `len(seeds[i])` samples of `prompts[i]`, until a stop token, which is kept, or `max_tokens`. Thread-safe."""

    @abstractmethod
    def update_weights(self, state: Iterable[tuple[str, Tensor]]) -> None:
        """Copies new weights over the engine's own, in place. Names as in the model's state dict; others are an InputError."""

    @abstractmethod
    def sleep(self) -> None:
        """Gives back what memory it can; `update_weights` wakes it. Only between calls, and with no draw until then."""

    @abstractmethod
    def close(self) -> None: ...

    def session(self) -> Session:
        """The engine itself, where it remembers without being asked."""
        return self

    def render(self, chat: Chat) -> list[int]:
        """The token ids of a chat, with the header of the assistant's answer at the end."""
        return rendered(chat, self.tokenizer, self.model)

    def count_tokens(self, chat: Chat) -> int:
        return len(self.render(chat))

    def complete(
        self, chats: Sequence[Chat], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[list[Completion]]:
        return self.complete_tokens([self.render(chat) for chat in chats], seeds, sampling)

    def complete_tokens(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[list[Completion]]:
        """Like `complete`, for prompts that are already token ids. Raises InputError for a prompt beyond the context."""
        for index, prompt in enumerate(prompts):
            if not 0 < len(prompt) <= self.context - sampling.max_tokens:
                raise InputError(
                    f"prompt {index} has {len(prompt)} tokens and max_tokens is {sampling.max_tokens}: together they must "
                    f"fit the context of {self.model}, {self.context} tokens, and the prompt must not be empty"
                )
        return [
            [self._completion(len(prompt), sample) for sample in samples]
            for prompt, samples in zip(prompts, self.draw(prompts, seeds, sampling), strict=True)
        ]

    def _completion(self, prompt_tokens: int, sample: Decoded) -> Completion:
        stopped = bool(sample.tokens) and sample.tokens[-1] in self.stop_ids
        said = sample.tokens[:-1] if stopped else sample.tokens
        return Completion(
            text=self.tokenizer.decode(said, skip_special_tokens=True, clean_up_tokenization_spaces=False),
            finish_reason="stop" if stopped else "length",
            prompt_tokens=prompt_tokens,
            completion_tokens=len(sample.tokens),
            token_ids=tuple(sample.tokens),
            logprobs=tuple(sample.logprobs),
        )


def stop_ids(tokenizer: Any, generation_config: Any) -> frozenset[int]:
    """The end tokens that tokenizer and generation config name; any of them ends a completion."""
    named = [tokenizer.eos_token_id, generation_config.eos_token_id]
    return frozenset(
        token for ids in named if ids is not None for token in (ids if isinstance(ids, list | tuple) else [ids])
    )


def best_dtype(device: str) -> str:
    """bfloat16 where the device computes in it, else float32."""
    fast = device == "cuda" or (torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return "bfloat16" if fast else "float32"
