"""The loss: pure functions of per-token log-probabilities, and the one place where they are summed.

An objective maps (logprobs, old_logprobs, advantages, mask, clip) to a loss per token; `logprobs` and `old_logprobs` are
(N, T), `advantages` is (N,) with one scalar per completion, `mask` (N, T) is True on the completions' tokens. Values off the
mask are arbitrary. To minimise the loss is to maximise the objective.

The sum is a dot product: loss = sum over tokens of weight[row] * loss[row, token]. `row_weights` computes the weights once,
from exactly the rows of one optimizer step, and nothing else divides. Hence the gradient cannot depend on how these rows
are split in micro-batches, on their order, or on how many processes share them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from cobalt_data.errors import InputError


@dataclass(frozen=True, slots=True)
class Clip:
    """The trust region: a ratio counts within [1 - low, 1 + high]; `dual` bounds it for negative advantages, None for never."""

    low: float = 0.2
    high: float = 0.4
    dual: float | None = 3.0

    def __post_init__(self) -> None:
        if not 0 < self.low <= 1:
            raise InputError(f"clip_low is {self.low}: give a number in (0, 1]")
        if not self.high > 0:
            raise InputError(f"clip_high is {self.high}: give a number above 0")
        if self.dual is not None and not self.dual > 1:
            raise InputError(f'clip_dual is {self.dual}: give a number above 1, or "none"')


def grpo(logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, clip: Clip) -> Tensor:
    """PPO's clipped surrogate with separate bounds (DAPO, arXiv 2503.14476) and the dual clip of arXiv 1912.09729."""
    ratio = _ratio(logprobs, old_logprobs, mask)
    return _clipped_surrogate(ratio, advantages[:, None], clip)


def gspo(logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, clip: Clip) -> Tensor:
    """GSPO-token (arXiv 2507.18071, section 4.3): all tokens share the geometric mean of the completion's ratios.

    The value of the ratio is the sequence's, its gradient the token's own. Its clip range is far smaller than GRPO's.
    """
    sequence = _sequence_log_ratio(logprobs, old_logprobs, mask)
    ratio = (sequence + torch.where(mask, logprobs - logprobs.detach(), 0)).exp()
    return _clipped_surrogate(ratio, advantages[:, None], clip)


def cispo(logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, clip: Clip) -> Tensor:
    """CISPO (arXiv 2506.13585): REINFORCE under an importance weight that is capped at 1 + high and has no gradient.

    Every token keeps its gradient, the rare ones with large ratios too. `low` and `dual` have no part in it.
    """
    weight = _ratio(logprobs, old_logprobs, mask).detach().clamp(max=1 + clip.high)
    return -weight * advantages[:, None] * torch.where(mask, logprobs, 0)


Objective = Callable[[Tensor, Tensor, Tensor, Tensor, Clip], Tensor]

# What distinguishes dapo, grpo and dr_grpo is not the loss of a token but how rows are weighted, see `row_weights`.
OBJECTIVES: Mapping[str, Objective] = {"grpo": grpo, "dapo": grpo, "dr_grpo": grpo, "cispo": cispo, "gspo": gspo}


def clipped(
    objective: str, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, clip: Clip
) -> Tensor:
    """(N, T) True where the objective's ratio has left the trust region on the side to which the advantage pushes.

    For `cispo`, which has no such side, where its weight is capped.
    """
    ratio = _ratio(logprobs, old_logprobs, mask)
    if objective == "cispo":
        return mask & (ratio > 1 + clip.high)
    if objective == "gspo":
        ratio = _sequence_log_ratio(logprobs, old_logprobs, mask).exp()
    pushed_up = advantages[:, None] > 0
    pushed_down = advantages[:, None] < 0
    return mask & ((pushed_up & (ratio > 1 + clip.high)) | (pushed_down & (ratio < 1 - clip.low)))


def kl_k1(logprobs: Tensor, reference: Tensor) -> Tensor:
    """log(p / ref): unbiased as an estimate, but as a loss its expected gradient is zero. For comparison only."""
    return logprobs - reference


def kl_k2(logprobs: Tensor, reference: Tensor) -> Tensor:
    """log(p / ref)^2 / 2: as a loss its expected gradient is that of KL(p || ref). What the paper trains with."""
    return (logprobs - reference).square() / 2


def kl_k3(logprobs: Tensor, reference: Tensor) -> Tensor:
    """ref / p - 1 - log(ref / p): unbiased and never negative; as a loss its gradient is that of KL(ref || p)."""
    difference = reference - logprobs
    return difference.exp() - 1 - difference


KL_TERMS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {"k1": kl_k1, "k2": kl_k2, "k3": kl_k3}


def importance_weights(trainer_logprobs: Tensor, engine_logprobs: Tensor, cap: float) -> Tensor:
    """(N, T) min(p_trainer / p_engine, cap) of the same weights: undoes that the engine sampled with other arithmetic.

    Per token, never a product over the completion, which vanishes or explodes with its length. Carries no gradient.
    """
    return (trainer_logprobs - engine_logprobs).detach().exp().clamp(max=cap)


def row_weights(objective: str, lengths: Tensor, max_tokens: int) -> Tensor:
    """(N,) what each token of a row weighs in the loss of one optimizer step over these N rows of `lengths` (N,) tokens.

    `dapo` and `cispo`: every token of the step the same. `grpo` and `gspo`: every row the same, by its mean over tokens.
    `dr_grpo`: every token the same, under a constant denominator that does not depend on the lengths.
    """
    lengths = lengths.double()
    if objective in ("dapo", "cispo"):
        return torch.ones_like(lengths) / lengths.sum()
    if objective in ("grpo", "gspo"):
        return 1 / (lengths * len(lengths))
    return torch.ones_like(lengths) / (len(lengths) * max_tokens)


def reduce(token_losses: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
    """The share of any rows (N, T) in the step's loss, given the `row_weights` (N,) of these rows. Shares add up."""
    token_losses = torch.where(mask, token_losses, 0)
    return (token_losses.sum(1) * weights.to(token_losses.dtype)).sum()


def _log_ratio(logprobs: Tensor, old_logprobs: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, logprobs - old_logprobs, 0)


def _sequence_log_ratio(logprobs: Tensor, old_logprobs: Tensor, mask: Tensor) -> Tensor:
    """(N, 1) the mean over a completion's tokens, without gradient."""
    lengths = mask.sum(1, keepdim=True).clamp(min=1)
    return _log_ratio(logprobs, old_logprobs, mask).detach().sum(1, keepdim=True) / lengths


def _ratio(logprobs: Tensor, old_logprobs: Tensor, mask: Tensor) -> Tensor:
    return _log_ratio(logprobs, old_logprobs, mask).exp()


def _clipped_surrogate(ratio: Tensor, advantages: Tensor, clip: Clip) -> Tensor:
    surrogate = torch.minimum(ratio * advantages, ratio.clamp(1 - clip.low, 1 + clip.high) * advantages)
    if clip.dual is not None:
        bounded = torch.maximum(surrogate, clip.dual * advantages)
        surrogate = torch.where(advantages < 0, bounded, surrogate)
    return -surrogate
