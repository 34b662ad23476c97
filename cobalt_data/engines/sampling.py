"""Drawing tokens: one uniform number per row and step, turned into a token by the inverse of the cumulative distribution.

A sample owns its uniforms, so what it draws depends on its seed and on its logits, not on its neighbours in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from cobalt_data.engines.base import NOT_FINITE
from cobalt_data.errors import EngineError

NUCLEUS_GUESS = 64  # so many candidates hold the nucleus almost always; rows where they do not are sorted whole
BLOCK = 256  # tokens


def uniforms(seeds: Sequence[int], steps: int) -> Tensor:
    """The numbers in [0, 1) that the samples draw with, in float64.  (len(seeds), steps)"""
    draws = [torch.rand(steps, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) for seed in seeds]
    return torch.stack(draws)


def draw(logits: Tensor, uniform: Tensor, temperature: float, top_p: float) -> tuple[Tensor, Tensor]:
    """Tokens and the float32 logarithms of the probabilities they were drawn with, one per row.

    `logits` is (R, V), `uniform` (R,) in float64. Temperature 0 takes the most probable token, with log-probability 0. Top-p
    keeps the smallest set of most probable tokens whose mass reaches `top_p`, and every token that ties with the last of it.
    Raises EngineError where a row is not finite.
    """
    logits = logits.float()
    if temperature == 0:
        best, tokens = logits.max(dim=-1)
        _check_finite(best)
        return tokens, torch.zeros_like(best)
    probabilities = torch.softmax(logits / temperature, dim=-1)
    if top_p < 1:
        probabilities = torch.where(probabilities >= _nucleus_floor(probabilities, top_p), probabilities, 0.0)
    tokens, mass = _invert(probabilities, uniform)
    logprobs = probabilities.gather(-1, tokens).double().div(mass).log()
    return tokens[:, 0], logprobs[:, 0].float()


def _invert(probabilities: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """The tokens at these places of the cumulative distributions, and the distributions' whole masses, both (R, 1).

    First the block of tokens is found, then the token in it: adding up all of a row in float64 costs a tenth of a step.
    """
    missing = -probabilities.shape[-1] % BLOCK
    blocks = (F.pad(probabilities, (0, missing)) if missing else probabilities).unflatten(-1, (-1, BLOCK))
    masses = blocks.sum(dim=-1).double()
    above = masses.cumsum(dim=-1)
    mass = above[:, -1:]
    _check_finite(mass)
    target = uniform[:, None] * mass
    block = torch.searchsorted(above, target, right=True)
    into = (target - (above - masses).gather(-1, block)) / masses.gather(-1, block)
    within = blocks[torch.arange(len(blocks), device=blocks.device), block[:, 0]].double().cumsum(dim=-1)
    place = torch.searchsorted(within, into.clamp(0, 1 - 2**-53) * within[:, -1:], right=True)
    return block * BLOCK + place, mass


def _nucleus_floor(probabilities: Tensor, top_p: float) -> Tensor:
    """The probability of the last token of each row's nucleus.  (R, 1)"""
    size = min(NUCLEUS_GUESS, probabilities.shape[-1])
    floor, reached = _floor_among(probabilities.topk(size, dim=-1).values, top_p)
    if not reached.all():
        rest = ~reached
        floor[rest], _ = _floor_among(probabilities[rest].sort(dim=-1, descending=True).values, top_p)
    return floor[:, None]


def _floor_among(descending: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    mass = descending.cumsum(dim=-1, dtype=torch.float64)
    last = (mass < top_p).sum(dim=-1, keepdim=True).clamp_max(descending.shape[-1] - 1)
    return descending.gather(-1, last)[:, 0], mass[:, -1] >= top_p


def _check_finite(values: Tensor) -> None:
    if not torch.isfinite(values).all():
        raise EngineError(NOT_FINITE)
