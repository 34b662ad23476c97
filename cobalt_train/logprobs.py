"""Log-probabilities of chosen tokens without the (N, V) table of logits.

The language-model head is fused with the choice of a token, a block of positions at a time, and computed again in the
backward pass: at most `BLOCK_ELEMENTS` logits exist at once, whatever N is. Logits, their normaliser and the sums over
blocks are float32 (float64 for float64 inputs) even under autocast: logits rounded to bfloat16 bias the log-probabilities
by several per cent of a ratio, which is as much as a clip range. Only what the matrix products of the backward pass yield,
gradients, takes autocast's type.

The loss stays outside (`cobalt_train.objectives`): a second, fused copy of a loss is what drifts from the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

BLOCK_ELEMENTS = 1 << 24  # 64 MiB of float32 logits, of which a few copies exist
ROWS_ADDED = 1 << 10  # of the head's gradient at once: what is copied for them stays in the processor's cache


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
        with torch.autocast(device, enabled=False), _products_as(backward_dtype):
            wide_head = head.to(logprobs.dtype)
            space, more_space = (_space(hidden, head, logprobs.dtype) for _ in range(2))
            for rows in _blocks(hidden, head):
                scaled = hidden[rows].to(logprobs.dtype) / temperature
                logits = torch.mm(scaled, wide_head.T, out=space[: len(scaled)])  # (block, V)
                probabilities = torch.softmax(logits, -1, out=more_space[: len(scaled)])
                highest, likeliest = logits.max(-1, keepdim=True)
                normalisers[rows] = (highest - probabilities.gather(-1, likeliest).log()).squeeze(-1)
                logprobs[rows] = logits.gather(-1, targets[rows, None]).squeeze(-1) - normalisers[rows]
                entropies[rows] = normalisers[rows] - probabilities.mul_(logits).sum(-1)
        ctx.save_for_backward(hidden, head, targets, normalisers)
        ctx.temperature, ctx.backward_dtype = temperature, backward_dtype or logprobs.dtype
        ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor, Tensor | None, None, None]:  # type: ignore[override]
        hidden, head, targets, normalisers = ctx.saved_tensors
        d_hidden = torch.empty_like(hidden)
        narrow_head = head.to(ctx.backward_dtype)
        d_head = torch.zeros_like(head, dtype=normalisers.dtype) if ctx.needs_input_grad[1] else None
        d_head_of_block = torch.empty_like(narrow_head) if ctx.needs_input_grad[1] else None
        grad = grad[:, None] / ctx.temperature
        narrow_space, space = (_space(hidden, head, dtype) for dtype in (ctx.backward_dtype, normalisers.dtype))
        for rows in _blocks(hidden, head):
            narrow = hidden[rows].to(ctx.backward_dtype)
            narrow_logits = torch.mm(narrow / ctx.temperature, narrow_head.T, out=narrow_space[: len(narrow)])
            d_logits = space[: len(narrow)].copy_(narrow_logits).sub_(normalisers[rows, None]).exp_()  # the softmax
            d_logits.mul_(-grad[rows]).scatter_add_(-1, targets[rows, None], grad[rows])
            narrow_d_logits = narrow_logits.copy_(d_logits)
            d_hidden[rows] = (narrow_d_logits @ narrow_head).to(hidden.dtype)
            if d_head is not None:
                _add(d_head, torch.mm(narrow_d_logits.T, narrow, out=d_head_of_block))
        return d_hidden, d_head if d_head is None else d_head.to(head.dtype), None, None


def accumulation_dtype(dtype: torch.dtype) -> torch.dtype:
    """The type that sums are kept in: float32, and float64 for float64."""
    return torch.float64 if dtype == torch.float64 else torch.float32


@contextmanager
def _products_as(dtype: torch.dtype | None) -> Iterator[None]:
    """On a CPU, factors of float32 products may be rounded to bfloat16 where this is autocast's type; their sums never are."""
    setting = torch.backends.mkldnn.matmul
    before = setting.fp32_precision
    if dtype == torch.bfloat16:
        setting.fp32_precision = "bf16"
    try:
        yield
    finally:
        setting.fp32_precision = before


def _add(total: Tensor, narrow: Tensor) -> None:
    """`total += narrow`, some rows at a time: a sum of two types makes a copy of the narrow one."""
    for rows, more in zip(total.split(ROWS_ADDED), narrow.split(ROWS_ADDED), strict=True):
        rows += more


def _space(hidden: Tensor, head: Tensor, dtype: torch.dtype) -> Tensor:
    """Room for the logits of a block, used again for each: fresh memory costs as much as some of the arithmetic."""
    return hidden.new_empty(min(_block_size(head), len(hidden)), len(head), dtype=dtype)


def _blocks(hidden: Tensor, head: Tensor) -> list[slice]:
    size = _block_size(head)
    return [slice(start, start + size) for start in range(0, len(hidden), size)]


def _block_size(head: Tensor) -> int:
    return max(1, BLOCK_ELEMENTS // len(head))
