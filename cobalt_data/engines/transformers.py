"""The embedded engine: a transformers model in this process, on a CPU as well as on a GPU.

The work of a call is scheduled by its tokens alone and every sample draws from its own seed, so equal arguments give equal
completions, whatever was asked before. Calls from several threads take turns. A session keeps what its last call computed.

Left out: several GPUs, quantised weights, and models whose layers carry a state from token to token instead of attending.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from cobalt_data.engines.base import Sampling
from cobalt_data.engines.decoding import decode
from cobalt_data.engines.memory import Memory
from cobalt_data.engines.token_engine import Drawn, TokenEngine, best_dtype, stop_ids
from cobalt_data.errors import EngineError, InputError
from cobalt_data.models import load_model, load_tokenizer, resolve_model

ATTENTION_LAYERS = {"full_attention", "sliding_attention"}


@dataclass(slots=True)
class _Handover:
    """What an engine and its sessions know of the weights that were handed over, and how often."""

    shapes: dict[str, torch.Size] = field(default_factory=dict)
    count: int = 0


class TransformersEngine(TokenEngine):
    name = "transformers"
    parallel_calls = 2  # the programs of one unit run while another unit generates

    def __init__(self, model: Any, tokenizer: Any, *, name: str, revision: str) -> None:
        """Serves `model` as it is, in its dtype and on its device; the caller may share it and change its weights."""
        refuse_foreign_layers(model, name)
        context = context_limit(model.config)
        ends = stop_ids(tokenizer, model.generation_config)
        super().__init__(tokenizer, name=name, revision=revision, context=context, stop_ids=ends)
        self.module = model
        self._turn = Lock()
        self._memory: Memory | None = None  # a session's alone
        self._remembers = 0  # with the weights of which handover
        self._handover = _Handover()

    @classmethod
    def load(cls, name: str, dtype: str = "auto") -> TransformersEngine:
        """Loads a model by name onto the GPU, where there is one. `dtype` auto: bfloat16 where the machine computes in it."""
        resolved = resolve_model(name)
        tokenizer = load_tokenizer(resolved)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model = load_model(resolved, best_dtype(device) if dtype == "auto" else dtype).to(device)
        return cls(model, tokenizer, name=resolved.name, revision=resolved.revision)

    def draw(self, prompts: Sequence[Sequence[int]], seeds: Sequence[Sequence[int]], sampling: Sampling) -> Drawn:
        with self._turn:
            own = self.module.state_dict(keep_vars=True)
            if not all(own[name].numel() for name in self._handover.shapes):
                raise EngineError("engine transformers sleeps and lacks weights: hand all of them over first")
            if self._memory is not None and self._remembers != self._handover.count:
                self._memory, self._remembers = Memory(), self._handover.count
            return decode(self.module, prompts, seeds, sampling, self.stop_ids, memory=self._memory)

    def session(self) -> TransformersEngine:
        """The same engine, model and all, that remembers from call to call, as long as the weights stay."""
        session = copy.copy(self)
        session._memory, session._remembers = Memory(), self._handover.count
        return session

    def update_weights(self, state: Iterable[tuple[str, Tensor]]) -> None:
        own, known = self.module.state_dict(keep_vars=True), self._handover.shapes
        with self._turn, torch.no_grad():
            self._handover.count += 1
            for name, tensor in state:
                if name not in own:
                    raise InputError(f"model {self.model} has no weight {name!r}")
                weight = own[name]
                shape = known.setdefault(name, weight.shape)
                if tensor.shape != shape:
                    raise InputError(f"weight {name!r} of {self.model} is {tuple(shape)}, not {tuple(tensor.shape)}")
                if weight.numel():
                    weight.copy_(tensor)
                else:
                    weight.data = tensor.to(weight.device, weight.dtype, copy=True)

    def sleep(self) -> None:
        """Drops the weights that were handed over before and will be again; others, which an adapter stands beside, it keeps."""
        own = self.module.state_dict(keep_vars=True)
        with self._turn:
            for name in self._handover.shapes:
                own[name].data = own[name].new_empty(0)

    def close(self) -> None:
        """Nothing to give back: the weights go with the object."""


def context_limit(config: Any) -> int:
    """The longest row that the attention of `decoding` computes as the model defines it."""
    text = config.get_text_config()
    positions: int = text.max_position_embeddings
    return min(positions, getattr(text, "sliding_window", None) or positions)


def refuse_foreign_layers(model: Any, name: str) -> None:
    """Raises InputError, naming the model, if rows of a batch would meet in its layers."""
    kinds = set(getattr(model.config.get_text_config(), "layer_types", None) or []) - ATTENTION_LAYERS
    if kinds or not getattr(model, "_supports_attention_backend", False):
        raise InputError(
            f"model {name} has layers ({', '.join(sorted(kinds)) or type(model).__name__}) that this engine would let mix the "
            "rows of a batch: use a model with attention layers only, or the engine vllm"
        )
