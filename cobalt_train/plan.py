"""What a run will do and take, told before any weight is loaded (`cobalt train --dry-run`)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from cobalt_data.dataset import Version
from cobalt_data.models import resolve_model
from cobalt_data.tokens import token_counter
from cobalt_train.algorithms import online_template
from cobalt_train.config import TrainConfig
from cobalt_train.prompts import load_problems, load_prompts, longest_prompt, total_steps
from cobalt_train.rewarding import load_reward

BYTES = {"float32": 4, "bfloat16": 2}


@dataclass(frozen=True, slots=True)
class Plan:
    """Of a run. Tokens are per step, with completions as long as they may get; `plain_tokens` without a shared prompt.

    Whole trajectories count without feedback, whose length nobody knows yet.
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
    load_reward(config.reward)
    resolved = resolve_model(model)
    shape = AutoConfig.from_pretrained(resolved.path)
    limit, count_tokens = longest_prompt(config, shape.max_position_embeddings), token_counter(model)
    if config.algo == "cobalt":
        prompts, turns = load_prompts(version, count_tokens, limit), 1
    else:
        template = online_template(version, resolved.name, config)
        prompts, turns = load_problems(version, template, count_tokens, limit), config.turns
    with torch.device("meta"):
        network = AutoModelForCausalLM.from_config(shape)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    masters = 5 if config.kl_coefficient else 4  # weights, gradients, two moments; the reference
    groups = min(config.prompts_per_step, len(prompts.by_id))
    prompt_tokens = round(groups * prompts.prompt_tokens / len(prompts.by_id))
    written = groups * config.group_size * config.max_tokens  # in one turn; later prompts hold what was written before
    generated = turns * written
    plain = config.group_size * turns * prompt_tokens + sum(range(turns)) * written + generated
    steps = total_steps(config, len(prompts.by_id))
    return Plan(
        prompts=len(prompts.by_id),
        prompts_too_long=prompts.too_long,
        steps=steps,
        epochs=steps * config.prompts_per_step / len(prompts.by_id),
        groups_per_step=groups,
        completions_per_step=groups * config.group_size * turns,
        updates_per_step=config.optimizer_steps,
        prompt_tokens=prompt_tokens,
        generated_tokens=generated,
        trained_tokens=prompt_tokens + (turns - 1) * written + generated if config.shared_prefix else plain,
        plain_tokens=plain,
        parameters=parameters,
        weight_bytes=parameters * (masters * BYTES["float32"] + BYTES[config.engine_dtype]),
    )
