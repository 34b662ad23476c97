"""Whether a model can be trained as the settings say, told from its shape, before any weight is loaded or a file is written.

Left out: what the weights alone can tell, which the first step of a run checks (`cobalt_train.learner`).
"""

from __future__ import annotations

from typing import Any

import torch

from cobalt_data.engines.transformers import context_limit, refuse_foreign_layers
from cobalt_data.errors import InputError
from cobalt_data.models import ResolvedModel, load_skeleton
from cobalt_train.config import TrainConfig
from cobalt_train.lora import adapt
from cobalt_train.scoring import checkpoint_layers, prepare


def fitting_skeleton(config: TrainConfig, resolved: ResolvedModel) -> Any:
    """The policy of a run, adapter included, on the meta device. Raises InputError, in the words of the run, if it does not fit."""
    network, name = load_skeleton(resolved), resolved.name
    if config.engine == "transformers":
        refuse_foreign_layers(network, name)
    if config.lora_rank:
        with torch.device("meta"):
            adapt(network, config, resolved.path)
    longest = min(config.max_prompt_tokens + config.max_tokens, context_of(config, network.config))
    prepare(network, name, longest, config.shared_prefix)
    if config.shared_prefix:
        _try_attention(network)
    if config.gradient_checkpointing:
        checkpoint_layers(network, name)
    return network


def context_of(config: TrainConfig, shape: Any) -> int:
    """Tokens of a prompt and its completion together at most, as the engine of the run has it."""
    if config.engine == "transformers":
        return context_limit(shape)
    positions: int = shape.get_text_config().max_position_embeddings
    return positions


def _try_attention(network: Any) -> None:
    """Raises InputError for what shows only when layers call their attention: that they ask for more than keys and queries."""
    try:
        with torch.no_grad():
            network.base_model(input_ids=torch.zeros(1, 2, dtype=torch.long, device="meta"), use_cache=False)
    except InputError:
        raise
    except Exception:  # a model that cannot compute without its weights tells nothing
        return
