"""What a run will do and take, told before any weight is loaded (`cobalt train --dry-run`)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from cobalt_data.dataset import Version
from cobalt_data.models import resolve_model
from cobalt_data.tokens import token_counter
from cobalt_train.config import TrainConfig
from cobalt_train.prompts import load_prompts, longest_prompt, total_steps

BYTES = {"float32": 4, "bfloat16": 2}


@dataclass(frozen=True, slots=True)
class Plan:
    """Of a run. Tokens are per step, with completions as long as they may get; `plain_tokens` without a shared prompt.

    `weight_bytes` are masters, gradients, both moments, the engine's copy and the reference; activations come on top.
    """

    prompts: int
    prompts_too_long: int
    steps: int
    epochs: float
    groups_per_step: int
    completions_per_step: int
    updates_per_step: int
    prompt_tokens: int
    generated_tokens: int
    trained_tokens: int
    plain_tokens: int
    parameters: int
    weight_bytes: int


def plan(config: TrainConfig, version: Version, model: str) -> Plan:
    """Raises InputError where `Trainer` would, for reasons of the dataset or the model's name."""
    resolved = resolve_model(model)
    shape = AutoConfig.from_pretrained(resolved.path)
    prompts = load_prompts(version, token_counter(model), longest_prompt(config, shape.max_position_embeddings))
    with torch.device("meta"):
        network = AutoModelForCausalLM.from_config(shape)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    masters = 5 if config.kl_coefficient else 4  # weights, gradients, two moments; the reference
    groups = min(config.prompts_per_step, len(prompts.by_id))
    prompt_tokens = round(groups * prompts.prompt_tokens / len(prompts.by_id))
    generated = groups * config.group_size * config.max_tokens
    plain = config.group_size * prompt_tokens + generated
    steps = total_steps(config, prompts)
    return Plan(
        prompts=len(prompts.by_id),
        prompts_too_long=prompts.too_long,
        steps=steps,
        epochs=steps * config.prompts_per_step / len(prompts.by_id),
        groups_per_step=groups,
        completions_per_step=groups * config.group_size,
        updates_per_step=config.optimizer_steps,
        prompt_tokens=prompt_tokens,
        generated_tokens=generated,
        trained_tokens=prompt_tokens + generated if config.shared_prefix else plain,
        plain_tokens=plain,
        parameters=parameters,
        weight_bytes=parameters * (masters * BYTES["float32"] + BYTES[config.engine_dtype]),
    )
