"""Completing many prompts at once: each prompt computed once, its samples decoded together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from cobalt_data.engines.base import Sampling
from cobalt_data.engines.sampling import draw, uniforms


@dataclass(slots=True)
class Decoded:
    """What one sample has drawn so far."""

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


def decode(
    model: Any,
    prompts: Sequence[Sequence[int]],
    seeds: Sequence[Sequence[int]],
    sampling: Sampling,
    stop_ids: Collection[int],
) -> list[list[Decoded]]:
    """Draws `len(seeds[i])` samples of `prompts[i]`, until a stop token, which is kept, or `max_tokens`."""
    with torch.inference_mode():
        return [
            _decode_group(model, prompt, group_seeds, sampling, stop_ids)
            for prompt, group_seeds in zip(prompts, seeds, strict=True)
        ]


def _decode_group(
    model: Any, prompt: Sequence[int], seeds: Sequence[int], sampling: Sampling, stop_ids: Collection[int]
) -> list[Decoded]:
    samples = [Decoded() for _ in seeds]
    if not samples:
        return []
    numbers = uniforms(seeds, sampling.max_tokens)
    output = model(torch.tensor([prompt], device=model.device), use_cache=True, logits_to_keep=1)
    cache = output.past_key_values
    cache.batch_repeat_interleave(len(seeds))
    logits = output.logits[:, -1].expand(len(seeds), -1)
    active = list(range(len(seeds)))
    for step in range(sampling.max_tokens):
        tokens, logprobs = draw(logits, numbers[active, step], sampling.temperature, sampling.top_p)
        for row, token, logprob in zip(active, tokens.tolist(), logprobs.tolist(), strict=True):
            samples[row].tokens.append(token)
            samples[row].logprobs.append(logprob)
        kept = [place for place, row in enumerate(active) if samples[row].tokens[-1] not in stop_ids]
        if not kept or step + 1 == sampling.max_tokens:
            break
        if len(kept) < len(active):
            cache.batch_select_indices(torch.tensor(kept))
            active, tokens = [active[place] for place in kept], tokens[kept]
        logits = model(tokens[:, None], past_key_values=cache, use_cache=True).logits[:, -1]
    return samples
