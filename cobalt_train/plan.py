"""What a run will do and take, told before any weight is loaded (`cobalt train --dry-run`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cobalt_data.dataset import Version
from cobalt_data.engines import engine_class
from cobalt_data.models import resolve_model
from cobalt_data.split import TRAIN, VALIDATION
from cobalt_data.tokens import token_counter
from cobalt_train.algorithms import online_template
from cobalt_train.config import TrainConfig, with_engine
from cobalt_train.prompts import PromptSet, groups_per_step, load_problems, load_prompts, longest_prompt, total_steps
from cobalt_train.ranks import place
from cobalt_train.rewarding import load_reward
from cobalt_train.skeleton import context_of, fitting_skeleton

BYTES = {"float32": 4, "bfloat16": 2}


@dataclass(frozen=True, slots=True)
class Plan:
    """Of a run in one process. Tokens are per step, with completions as long as they may get.

    `forward_tokens` are those that the policy computes to learn: the prompt of a group once for every pass that its rows take,
    of `micro_batch_tokens` at most. `plain_tokens` are the same without a shared prompt. Whole trajectories count without
    feedback, whose length nobody knows yet. `weight_bytes` are masters, the gradients and moments of
    what is trained, the engine's copy and the reference; activations come on top.
    """

    engine: str
    prompts: int
    prompts_too_long: int
    steps: int
    epochs: float
    groups_per_step: int
    completions_per_step: int
    updates_per_step: int
    prompt_tokens: int
    generated_tokens: int
    forward_tokens: int
    plain_tokens: int
    parameters: int
    trained_parameters: int
    weight_bytes: int


def plan(config: TrainConfig, version: Version, model: str) -> Plan:
    """Raises as `Trainer` would, for reasons of the dataset, the reward, the engine or the model's name and shape."""
    load_reward(config.reward)
    resolved = resolve_model(model)
    config = with_engine(config, place()[1])
    engine_class(config.engine)
    network = fitting_skeleton(config, resolved)
    prompts = _prompts(config, version, model, network.config, TRAIN)
    if config.eval_every:
        _prompts(config, version, model, network.config, VALIDATION)
    parameters = sum(weight.numel() for weight in network.parameters())
    trained = sum(weight.numel() for weight in network.parameters() if weight.requires_grad)
    bare = parameters - trained if config.lora_rank else parameters
    reference = bare if config.kl_coefficient else 0
    groups = groups_per_step(config, len(prompts.by_id))
    turns = 1 if config.algo == "cobalt" else config.turns
    prompt_tokens = round(groups * prompts.prompt_tokens / len(prompts.by_id))
    written = groups * config.group_size * config.max_tokens  # in one turn; later prompts hold what was written before
    generated = turns * written
    own = (turns - 1) * written + generated  # of all rows, beside the prompts that they begin with
    passes = passes_of_a_group(
        prompt_tokens // groups, own // groups, config.group_size * turns, config.micro_batch_tokens
    )
    plain = config.group_size * turns * prompt_tokens + sum(range(turns)) * written + generated
    steps = total_steps(config, len(prompts.by_id))
    return Plan(
        engine=config.engine,
        prompts=len(prompts.by_id),
        prompts_too_long=prompts.too_long,
        steps=steps,
        epochs=steps * groups / len(prompts.by_id),
        groups_per_step=groups,
        completions_per_step=groups * config.group_size * turns,
        updates_per_step=min(config.optimizer_steps, groups) if turns == 1 else config.optimizer_steps,
        prompt_tokens=prompt_tokens,
        generated_tokens=generated,
        forward_tokens=min(plain, passes * prompt_tokens + own) if config.shared_prefix else plain,
        plain_tokens=plain,
        parameters=parameters,
        trained_parameters=trained,
        weight_bytes=BYTES["float32"] * (parameters + 3 * trained + reference)
        + BYTES[config.engine_dtype] * parameters,
    )


def passes_of_a_group(prompt: int, own: int, rows: int, limit: int) -> int:
    """In how many a group is computed whose rows, alike, have `own` tokens in all (`cobalt_train.packing.split_rows`)."""
    return -(-rows // max(1, (limit - prompt) * rows // own))


def _prompts(config: TrainConfig, version: Version, model: str, shape: Any, side: str) -> PromptSet[Any]:
    """Those of a side, as the algorithm will find them."""
    limit, count_tokens = longest_prompt(config, context_of(config, shape)), token_counter(model)
    if config.algo == "cobalt":
        return load_prompts(version, count_tokens, limit, side)
    return load_problems(version, online_template(version, model, config), count_tokens, limit, side)
