"""Low-rank adapters (LoRA) as files: peft's format, which cobalt, peft and vLLM read.

A network with an adapter in it has the adapter's configuration and names for its weights; the weights themselves come from
whoever holds them, so that a network without any (on the meta device) will do.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
NAME, PREFIX = "default", "base_model.model."  # of an adapter and before its weights' names, as peft has it


def is_adapted(network: Any) -> bool:
    return NAME in getattr(network, "peft_config", {})


def holds_adapter(directory: Path) -> bool:
    return (directory / ADAPTER).is_file()


def save_adapter(network: Any, weights: Mapping[str, Tensor], directory: Path) -> None:
    """Writes the adapter of `network`, its `weights` by their names in the state dict, as peft does."""
    from peft import get_peft_model_state_dict

    named = get_peft_model_state_dict(network, state_dict=dict(weights), adapter_name=NAME)
    save_file({PREFIX + name: weight.contiguous() for name, weight in named.items()}, directory / ADAPTER_WEIGHTS)
    config = copy.copy(network.peft_config[NAME])
    if isinstance(config.target_modules, set):  # whose order differs from process to process
        config.target_modules = sorted(config.target_modules)
    config.save_pretrained(directory)
