"""Log-probabilities of chosen tokens without the (N, V) table of logits.

The language-model head is fused with the choice of a token, a block of positions at a time, and computed again in the
backward pass: at most `BLOCK_ELEMENTS` logits exist at once, whatever N is. Logits, their normaliser and the sums over
blocks are float32 (float64 for float64 inputs) even under autocast: logits rounded to bfloat16 bias the log-probabilities
by several per cent of a ratio, which is as much as a clip range. Only the matrix products of the backward pass, which
yield gradients, take autocast's type.

The loss stays outside (`cobalt_train.objectives`): a second, fused copy of a loss is what drifts from the first.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

BLOCK_ELEMENTS = 1 << 24  # 64 MiB of float32 logits, of which a few copies exist


def chosen_logprobs(hidden: Tensor, head: Tensor, targets: Tensor, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
    """Log-probabilities of `targets` under softmax(hidden @ head.T / temperature), and the entropies of that softmax.

    `hidden` is (N, H), `head` (V, H), `targets` (N,); both results are (N,). The log-probability is differentiable in
    `hidden` and `head`; the entropy is a figure to watch and has no gradient.
    """
    return _ChosenLogprobs.apply(hidden, head, targets, temperature)


class _ChosenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, head: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        device = hidden.device.type
        backward_dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
        logprobs = hidden.new_empty(len(hidden), dtype=accumulation_dtype(hidden.dtype))
        entropies, normalisers = torch.empty_like(logprobs), torch.empty_like(logprobs)
        with torch.autocast(device, enabled=False):
            wide_head = head.to(logprobs.dtype)
            for rows in _blocks(hidden, head):
                logits = hidden[rows].to(logprobs.dtype) @ wide_head.T / temperature  # (block, V)
                normalisers[rows] = logits.logsumexp(-1)
                chosen = logits.gather(-1, targets[rows, None]).squeeze(-1)
                logprobs[rows] = chosen - normalisers[rows]
                expected = (logits - normalisers[rows, None]).exp_().mul_(logits).sum(-1)
                entropies[rows] = normalisers[rows] - expected
        ctx.save_for_backward(hidden, head, targets, normalisers)
        ctx.temperature, ctx.backward_dtype = temperature, backward_dtype or logprobs.dtype
        ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor, Tensor | None, None, None]:  # type: ignore[override]
        hidden, head, targets, normalisers = ctx.saved_tensors
        d_hidden = torch.empty_like(hidden)
        d_head = torch.zeros_like(head, dtype=normalisers.dtype) if ctx.needs_input_grad[1] else None
        narrow_head = head.to(ctx.backward_dtype)
        for rows in _blocks(hidden, head):
            narrow = hidden[rows].to(ctx.backward_dtype)
            logits = (narrow @ narrow_head.T).to(normalisers.dtype) / ctx.temperature
            d_logits = logits.sub_(normalisers[rows, None]).exp_().neg_()  # minus the softmax
            d_logits.scatter_add_(-1, targets[rows, None], torch.ones_like(d_logits[:, :1]))
            d_logits = d_logits.mul_(grad[rows, None] / ctx.temperature).to(ctx.backward_dtype)
            d_hidden[rows] = (d_logits @ narrow_head).to(hidden.dtype)
            if d_head is not None:
                d_head += d_logits.T @ narrow
        return d_hidden, d_head if d_head is None else d_head.to(head.dtype), None, None


def accumulation_dtype(dtype: torch.dtype) -> torch.dtype:
    """The type that sums are kept in: float32, and float64 for float64."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _blocks(hidden: Tensor, head: Tensor) -> list[slice]:
    size = max(1, BLOCK_ELEMENTS // len(head))
    return [slice(start, start + size) for start in range(0, len(hidden), size)]
