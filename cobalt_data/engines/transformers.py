"""The embedded engine: a transformers model in this process, on a CPU as well as on a GPU.

Token ids go in and come out; text is rendered once, by the chat template, and never tokenised again. The work of a call is
scheduled by its tokens alone and every sample draws from its own seed, so equal arguments give equal completions, whatever
was asked before. Calls from several threads take turns.

Left out: several GPUs, quantised weights, and models whose layers carry a state from token to token instead of attending.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any

import torch
from jinja2 import TemplateError
from torch import Tensor

from cobalt_data.engines.base import Completion, Sampling
from cobalt_data.engines.decoding import Decoded, decode
from cobalt_data.errors import InputError
from cobalt_data.models import load_model, load_tokenizer, resolve_model
from cobalt_data.rows import Chat

ATTENTION_LAYERS = {"full_attention", "sliding_attention"}


class TransformersEngine:
    name = "transformers"
    parallel_calls = 2  # the programs of one unit run while another unit generates

    def __init__(self, model: Any, tokenizer: Any, *, name: str, revision: str) -> None:
        """Serves `model` as it is, in its dtype and on its device; the caller may share it and change its weights."""
        _refuse_foreign_layers(model, name)
        self.model = name
        self.model_revision = revision
        self.tokenizer = tokenizer
        self.context = _context_limit(model.config.get_text_config())
        self.stop_ids = _stop_ids(model, tokenizer)
        self.module = model
        self._turn = Lock()

    @classmethod
    def load(cls, name: str, dtype: str = "auto") -> TransformersEngine:
        """Loads a model by name onto the GPU, where there is one. `dtype` auto: bfloat16 where the machine computes in it."""
        resolved = resolve_model(name)
        tokenizer = load_tokenizer(resolved)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model = load_model(resolved, _best_dtype(device) if dtype == "auto" else dtype).to(device)
        return cls(model, tokenizer, name=resolved.name, revision=resolved.revision)

    def render(self, chat: Chat) -> list[int]:
        """The token ids of a chat, with the header of the assistant's answer at the end."""
        try:
            text = self.tokenizer.apply_chat_template(
                [dict(message) for message in chat], add_generation_prompt=True, tokenize=False
            )
        except TemplateError as error:
            raise InputError(f"the chat template of {self.model} refuses a chat: {error}") from None
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

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
        with self._turn:
            decoded = decode(self.module, prompts, seeds, sampling, self.stop_ids)
        return [
            [self._completion(len(prompt), sample) for sample in samples]
            for prompt, samples in zip(prompts, decoded, strict=True)
        ]

    def update_weights(self, state: Iterable[tuple[str, Tensor]]) -> None:
        """Copies new weights over the engine's own, in place. Names as in the model's state dict; others are an InputError."""
        own = self.module.state_dict()
        with self._turn, torch.no_grad():
            for name, tensor in state:
                if name not in own:
                    raise InputError(f"model {self.model} has no weight {name!r}")
                own[name].copy_(tensor)

    def close(self) -> None:
        """Nothing to give back: the weights go with the object."""

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


def _best_dtype(device: str) -> str:
    fast = device == "cuda" or (torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return "bfloat16" if fast else "float32"


def _stop_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """The end tokens that tokenizer and generation config name; any of them ends a completion."""
    named = [tokenizer.eos_token_id, model.generation_config.eos_token_id]
    return frozenset(
        token for ids in named if ids is not None for token in (ids if isinstance(ids, list | tuple) else [ids])
    )


def _context_limit(config: Any) -> int:
    """The longest row that the attention of `decoding` computes as the model defines it."""
    positions: int = config.max_position_embeddings
    return min(positions, getattr(config, "sliding_window", None) or positions)


def _refuse_foreign_layers(model: Any, name: str) -> None:
    kinds = set(getattr(model.config.get_text_config(), "layer_types", None) or []) - ATTENTION_LAYERS
    if kinds or not getattr(model, "_supports_attention_backend", False):
        raise InputError(
            f"model {name} has layers ({', '.join(sorted(kinds)) or type(model).__name__}) that this engine would let mix the "
            "rows of a batch: use a model with attention layers only, or the engine vllm"
        )
