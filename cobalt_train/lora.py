"""Low-rank adapters (LoRA, by peft): small matrices beside the weights are trained, the weights stay as they are.

The engine has the same adapter beside its own copy of the weights, and is handed the adapter alone after each step: nothing is
ever merged in place, where rounding would change the weights a little more with every step. A checkpoint holds the adapter in
peft's format; `cobalt_data.models.load_model` adds it to its base, once and in float32, for whoever only uses the model.

Left out: adapters of other kinds, and several of them at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn

from cobalt_data.adapters import ADAPTER_WEIGHTS, NAME, PREFIX
from cobalt_data.errors import InputError, one_line
from cobalt_train.config import TrainConfig

ALL_LINEAR = "all-linear"


def adapt(model: Any, config: TrainConfig, base: Path) -> Any:
    """Puts an adapter beside the weights of `model`, in place; at first it changes nothing. The same for the same seed.

    `base` is where the model was loaded from, which may be an adapter itself. Raises InputError for targets that it lacks.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError:
        raise InputError("lora_rank needs peft: pip install 'cobalt-rl[train]', or set lora_rank = 0") from None
    adapter = LoraConfig(
        base_model_name_or_path=str(base),
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        target_modules=_targets(model, config.lora_targets),
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        try:
            return inject_adapter_in_model(adapter, model, NAME)
        except ValueError as error:
            raise InputError(f"lora_targets is {config.lora_targets!r}: {one_line(error)}") from None


def _targets(model: Any, wanted: str) -> str | list[str]:
    """As peft takes them; peft itself passes over a name that is not there, if another one is."""
    if wanted == ALL_LINEAR:
        return wanted
    targets = [target.strip() for target in wanted.split(",")]
    for target in targets:
        named = [module for name, module in model.named_modules() if target and f".{name}".endswith(f".{target}")]
        if not named:
            raise InputError(f"lora_targets is {wanted!r}: the model has no module {target!r}; {ALL_LINEAR} takes all")
        for module in named:
            if isinstance(module, nn.Embedding) or module is model.get_output_embeddings():  # which may be one matrix
                raise InputError(
                    f"lora_targets is {wanted!r}: {target!r} holds the tokens' embeddings, which adapters leave alone; "
                    f"{ALL_LINEAR} takes all others"
                )
            if getattr(getattr(module, "weight", None), "ndim", 0) != 2:  # an adapter stands beside a matrix
                raise InputError(
                    f"lora_targets is {wanted!r}: {target!r} is a {type(module).__name__}, not a linear layer; "
                    f"{ALL_LINEAR} takes all"
                )
    return targets


def restore_adapter(model: Any, checkpoint: Path) -> None:
    """Loads the adapter of a checkpoint into that of `model`. Raises as its libraries do over a damaged one."""
    from peft import set_peft_model_state_dict

    weights = load_file(checkpoint / ADAPTER_WEIGHTS)
    unprefixed = {name.removeprefix(PREFIX): weight for name, weight in weights.items()}
    loaded = set_peft_model_state_dict(model, unprefixed, adapter_name=NAME)
    strange = [*loaded.unexpected_keys, *(name for name in loaded.missing_keys if ".lora_" in name)]
    if strange:
        raise InputError(f"{len(strange)} weights are missing or not the adapter's, such as {min(strange)}")
