"""The processes of one run: several where `torchrun` started them, else this one alone, which then needs nothing from here.

Every process holds an engine of its own and a shard of the policy. Prompts are dealt out for their rollouts, micro-batches
for the gradient; what comes of both is gathered or summed, so that no result depends on the number of processes beyond
rounding. Process 0 is the one that writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from transformers.modeling_layers import GradientCheckpointingLayer

T = TypeVar("T")

PATIENCE = timedelta(hours=6)  # while one process evaluates or judges slow programs, the others wait


@dataclass(frozen=True, slots=True)
class Ranks:
    """Process `rank` of `size`, computing on `device`."""

    device: str
    rank: int = 0
    size: int = 1

    @property
    def writes(self) -> bool:
        return self.rank == 0

    def share(self, items: Sequence[T]) -> Sequence[T]:
        """The consecutive items that are this process's; those of all, one process after the other, are all items."""
        return items[len(items) * self.rank // self.size : len(items) * (self.rank + 1) // self.size]

    def deal(self, items: Sequence[T]) -> list[tuple[T, bool]]:
        """Items for this process. All get equally many, since they compute in step: what is True counts, the rest fills up."""
        rounds = -(-len(items) // self.size)
        places = range(self.rank, rounds * self.size, self.size)
        return [(items[place % len(items)], place < len(items)) for place in places]

    def gather(self, value: T) -> list[T]:
        """What every process holds under this name, by rank; to be called by all of them."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def wait(self) -> None:
        """Until all have come here."""
        if self.size > 1:
            dist.barrier()


def place() -> tuple[int, int]:
    """Which process this is of how many, as `torchrun` says; without it, the first of one."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def join() -> Ranks:
    """This process among those that `torchrun` started, on a GPU where there is one."""
    on_gpu = torch.cuda.is_available()
    rank, size = place()
    if size == 1:
        return Ranks("cuda" if on_gpu else "cpu")
    device = f"cuda:{os.environ['LOCAL_RANK']}" if on_gpu else "cpu"
    if on_gpu:
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo", timeout=PATIENCE)
    return Ranks(device, rank, size)


def leave() -> None:
    """To be called by every process at the end, if it has joined others."""
    if dist.is_initialized():
        dist.destroy_process_group()


def shard(root: nn.Module) -> None:
    """Divides the weights of `root`, layer by layer, among all processes; gradients are summed over them, not averaged."""
    for layer in [module for module in root.modules() if isinstance(module, GradientCheckpointingLayer)]:
        fully_shard(layer)
    fully_shard(root)
    for module in root.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)  # gloo has no other


def whole(tensor: Tensor) -> Tensor:
    """A tensor with the shards of all processes, who call this together."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def whole_weights(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """What is trained of a model's state dict, one whole tensor at a time; to be exhausted by all processes together."""
    trained = {name for name, weight in model.named_parameters(remove_duplicate=False) if weight.requires_grad}
    state: Mapping[str, Tensor] = model.state_dict()
    return ((name, whole(tensor)) for name, tensor in state.items() if name in trained)
