"""Handing a trainer's weights to vLLM, in place.

`InProcess` is for an engine that computes in this process, as on a CPU: vLLM reads the weights as it would read a checkpoint
and repacks them for its kernels. `OverIpc` is for an engine in a child process on the same GPU: vLLM's weight-transfer
protocol passes handles of this process's GPU memory, and the child copies from there. It needs a GPU to be tried at all.

vLLM knows weights by the names they have in a checkpoint, a trainer by those in the model's state dict: `CheckpointNames`
goes from one to the other, and makes sure that none is left out, which vLLM would not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Set
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import revert_weight_conversion

from cobalt_data.errors import InputError

LEAST_BUFFER_BYTES = 2**30

Weights = Iterable[tuple[str, Tensor]]


class CheckpointNames:
    """The weights of one architecture, by their names."""

    def __init__(self, config: Any) -> None:
        with torch.device("meta"):
            self._skeleton = AutoModelForCausalLM.from_config(config)
        once = {name: weight.numel() for name, weight in self._skeleton.named_parameters()}
        every = {name for name, _ in self._skeleton.named_parameters(remove_duplicate=False)}
        self._known = frozenset(self._skeleton.state_dict())
        self._needed, self._tied = frozenset(once), every - once.keys()
        self.largest = max(once.values())  # elements
        self._converts = bool(get_model_conversion_mapping(self._skeleton, add_legacy=False))

    def of(self, state: Weights, dtype: torch.dtype) -> Weights:
        """The weights of `state` as a checkpoint would name them. Raises InputError where one is unknown or missing."""
        weights = self._complete(state, dtype)
        return revert_weight_conversion(self._skeleton, dict(weights)).items() if self._converts else weights

    def _complete(self, state: Weights, dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
        for name, weight in complete(state, self._known, self._needed):
            if name not in self._tied:  # these were handed over under their first name
                yield name, weight.detach().to(dtype) if weight.is_floating_point() else weight


def complete(state: Weights, known: Set[str], needed: Set[str]) -> Iterator[tuple[str, Tensor]]:
    """The weights of `state`. Raises InputError at the first that is not `known`, and at the end for those that are missing."""
    missing = set(needed)
    for name, weight in state:
        if name not in known:
            raise InputError(f"the model has no weight {name!r}")
        missing.discard(name)
        yield name, weight
    if missing:
        raise InputError(f"{len(missing)} weights were not handed over, such as {min(missing)}")


class InProcess:
    """Needs vLLM 0.32, and `VLLM_ENABLE_V1_MULTIPROCESSING` to be 0."""

    options: Mapping[str, Any] = MappingProxyType({})  # of the engine that takes the weights

    def __init__(self, names: CheckpointNames) -> None:
        self._names = names

    def push(self, llm: Any, state: Weights) -> None:
        weights = self._names.of(state, llm.model_config.dtype)
        llm.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(weights)})
        llm.apply_model(_repack_heads)


def _repack_heads(model: Any) -> None:
    """An output layer that is tied to the embedding gets the new weights with it, but computes with a repacked copy of the old."""
    from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

    for module in model.modules():
        if isinstance(module, ParallelLMHead):
            module.quant_method.process_weights_after_loading(module)


class OverIpc:
    """The trainer's side of the protocol, started with the first weights."""

    options: Mapping[str, Any] = MappingProxyType({"weight_transfer_config": {"backend": "ipc"}})

    def __init__(self, names: CheckpointNames) -> None:
        os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"  # handles travel to our own child, pickled
        self._names = names
        self._buffer_bytes = max(LEAST_BUFFER_BYTES, 4 * names.largest)  # a chunk must hold the largest weight whole
        self._sender: Any = None

    def push(self, llm: Any, state: Weights) -> None:
        from vllm.distributed.weight_transfer import WeightTransferTrainerFactory
        from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo

        weights = self._names.of(state, llm.model_config.dtype)
        if self._sender is None:
            info = IPCTrainerInitInfo(rank=0, packed=True, packed_buffer_size_bytes=self._buffer_bytes)
            self._sender = WeightTransferTrainerFactory.trainer_init(info, client=_Client(llm), source=weights)
        self._sender.source = weights  # gone through once, chunk by chunk
        self._sender.send_weights()


class _Client:
    """What the protocol asks of the engine, passed on to an `LLM` of this process."""

    def __init__(self, llm: Any) -> None:
        self._llm = llm

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self._llm.init_weight_transfer_engine({"init_info": init_info})

    def start_weight_update(self) -> None:
        self._llm.start_weight_update()

    def update_weights(self, update_info: dict[str, Any]) -> None:
        self._llm.update_weights({"update_info": update_info})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self._llm.finish_weight_update()
