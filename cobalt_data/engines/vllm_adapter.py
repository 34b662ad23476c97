"""Handing an adapter to vLLM: it stands beside the weights that vLLM loaded, and takes the place of the adapter before.

vLLM reads adapters from files, wherever it computes; those written here are gone again once it has read them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from vllm.config.lora import MaxLoRARanks
from vllm.lora.request import LoRARequest

from cobalt_data.adapters import NAME, save_adapter
from cobalt_data.engines.vllm_weights import Weights, complete
from cobalt_data.errors import EngineError, InputError

NUMBER = 1  # of the only adapter that the engine has


class AdapterAlone:
    """The way of the adapter of `network`, which needs no weights of its own. Raises InputError for a rank that vLLM lacks."""

    def __init__(self, network: Any) -> None:
        rank, ranks = network.peft_config[NAME].r, get_args(MaxLoRARanks)
        if rank > max(ranks):
            raise InputError(f"lora_rank is {rank}: engine vllm takes at most {max(ranks)}")
        room = min(ready for ready in ranks if ready >= rank)
        self.options: Mapping[str, Any] = {"enable_lora": True, "max_loras": 1, "max_lora_rank": room}
        self._network = network
        self._names = frozenset(name for name, weight in network.named_parameters() if weight.requires_grad)
        self.request: LoRARequest | None = None  # with which a prompt asks for it

    def push(self, llm: Any, state: Weights) -> None:
        weights = {name: weight.detach() for name, weight in complete(state, self._names, self._names)}
        with tempfile.TemporaryDirectory(prefix="cobalt-adapter-") as directory:
            save_adapter(self._network, weights, Path(directory))
            if not llm.llm_engine.add_lora(LoRARequest(NAME, NUMBER, directory, load_inplace=True)):
                raise EngineError("engine vllm does not take the adapter")
        self.request = LoRARequest(NAME, NUMBER, directory)
