"""Exact attention over a forest of token sequences that share prefixes, each shared part computed once.

The tokens of a tree lie in one row, depth first (`cobalt_train.packing`): a segment's descendants follow it directly. A
token then attends to (1) its own segment, causally, and (2) every ancestor segment, fully. Both are ordinary dense
attention blocks: the first has the segment's queries, the second the queries of the whole subtree below the segment. The
first blocks of leaves, which are many and mostly short, are computed in batches of about the same length. A block yields its
output and the logarithm of its softmax denominator, with which the blocks of a token are merged exactly.

The backward pass calls each block's own backward with the *merged* output and denominator: the gradient of a softmax over
several blocks falls apart into exactly these terms (the identity that ring attention uses).

Left out: dropout, soft caps and attention sinks, which are refused here, and sliding windows, which are refused by
`cobalt_train.scoring`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from cobalt_data.engines.cascade import more_than_plain
from cobalt_data.errors import InputError
from cobalt_train.logprobs import accumulation_dtype
from cobalt_train.packing import Segment

NAME = "cobalt_tree"
BATCH_SCORES = 1 << 20  # of one head: as many attention scores of leaves are computed at once
BLOCK_SCORES = 1 << 26  # of all heads: as many exist at once where there is no kernel
SHORT = 256  # queries: on blocks below, matrix products take a third of the time of the CPU kernel's backward pass


class TreeAttention(torch.autograd.Function):
    """Attention of `query` (1, H, L, D) to `key` and `value` (1, H_kv, L, D), H a multiple of H_kv.

    Yields the output (1, H, L, D) and, without a gradient, the log of the softmax denominator (1, H, L). Where both are
    `known` from an earlier pass over the same, they are not computed again.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        segments: tuple[Segment, ...],
        scale: float,
        known: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        out, lse = known or _forest_attention(query, key, value, segments, scale)
        ctx.save_for_backward(query, key, value, out, lse)
        ctx.mark_non_differentiable(lse)
        ctx.segments, ctx.scale = segments, scale
        return out, lse

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Any, grad: Tensor, _: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        query, key, value, out, lse = ctx.saved_tensors
        d_query, d_key, d_value = torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(value)
        for leaves in _leaf_batches(ctx.segments, query.device):
            gathered = (leaves.gather(tensor) for tensor in (grad, query, key, value, out))
            blocks = _attend_backward(*gathered, leaves.gather(lse, padding=float("inf")), True, ctx.scale)
            for gradient, block in zip((d_query, d_key, d_value), blocks, strict=True):
                leaves.put(gradient, block)
        for q, k, causal in _blocks(ctx.segments):
            block = _attend_backward(
                grad[:, :, q],
                query[:, :, q],
                key[:, :, k],
                value[:, :, k],
                out[:, :, q],
                lse[:, :, q],
                causal,
                ctx.scale,
            )
            d_query[:, :, q] += block[0]
            d_key[:, :, k] += block[1]
            d_value[:, :, k] += block[2]
        return d_query, d_key, d_value, None, None, None


def _forest_attention(
    query: Tensor, key: Tensor, value: Tensor, segments: tuple[Segment, ...], scale: float
) -> tuple[Tensor, Tensor]:
    """Output and log denominator of every token, block by block."""
    out = torch.empty_like(query)
    lse = query.new_empty(query.shape[:3], dtype=accumulation_dtype(query.dtype))
    for leaves in _leaf_batches(segments, query.device):
        block, block_lse = _attend(*map(leaves.gather, (query, key, value)), True, scale)
        leaves.put(out, block)
        leaves.put(lse, block_lse)
    for q, k, causal in _blocks(segments):
        block, block_lse = _attend(query[:, :, q], key[:, :, k], value[:, :, k], causal, scale)
        if causal:
            out[:, :, q], lse[:, :, q] = block, block_lse
            continue
        merged = torch.logaddexp(lse[:, :, q], block_lse)
        out[:, :, q] = _weighted(out[:, :, q], lse[:, :, q] - merged) + _weighted(block, block_lse - merged)
        lse[:, :, q] = merged
    return out, lse


class _Leaves:
    """Some segments that have nothing below them, as rows of a batch of n, padded at their ends to the longest, of T tokens."""

    def __init__(self, leaves: Sequence[Segment], device: torch.device) -> None:
        starts = torch.tensor([leaf.start for leaf in leaves], device=device)[:, None]
        lengths = torch.tensor([len(leaf) for leaf in leaves], device=device)[:, None]
        steps = torch.arange(max(map(len, leaves)), device=device)
        self._taken = steps < lengths  # (n, T)
        self._places = starts + steps * self._taken
        self._own = self._places[self._taken]

    def gather(self, tensor: Tensor, padding: float | None = None) -> Tensor:
        """(1, H, L, ...) -> (n, H, T, ...), padded with what the first token of the leaf has, or with `padding`."""
        rows = tensor[0][:, self._places].transpose(0, 1)
        return rows if padding is None else rows.masked_fill(~self._taken[:, None], padding)

    def put(self, tensor: Tensor, rows: Tensor) -> None:
        """Writes rows (n, H, T, ...) to where they came from."""
        tensor[0][:, self._own] = rows.transpose(0, 1)[:, self._taken]


@lru_cache(maxsize=4)
def _leaf_batches(segments: tuple[Segment, ...], device: torch.device) -> list[_Leaves]:
    """All leaves, the longest first: a batch ends where its leaves would be twice as long as the next, or its scores too many."""
    batches: list[list[Segment]] = []
    for leaf in sorted((segment for segment in segments if segment.is_leaf), key=len, reverse=True):
        longest = len(batches[-1][0]) if batches else 0
        if not batches or 2 * len(leaf) < longest or (len(batches[-1]) + 1) * longest**2 > BATCH_SCORES:
            batches.append([])
        batches[-1].append(leaf)
    return [_Leaves(batch, device) for batch in batches]


def tree_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    segments: tuple[Segment, ...] | None = None,
    kept_attention: dict[int, tuple[Tensor, Tensor]] | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """The attention function that a transformers model calls; without `segments` it is plain causal attention.

    `kept_attention` is for layers that are computed twice: what the first time yields, by layer, is taken out by the second.
    Raises InputError for an attention that has more to it than the model's keys and queries.
    """
    unsupported = more_than_plain(query, value, kwargs)
    if unsupported:
        raise InputError(
            f"{type(module).__name__} has attention with {', '.join(unsupported)}, over which completions cannot share their "
            "prompt: set shared_prefix = false"
        )
    if segments is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
    scale = scaling if scaling is not None else 1 / math.sqrt(query.shape[-1])
    query, key = query.to(value.dtype), key.to(value.dtype)  # under autocast, rotary embedding returns float32
    layer = int(module.layer_idx)
    known = kept_attention.pop(layer, None) if kept_attention is not None else None
    out, lse = TreeAttention.apply(query, key, value, segments, scale, known)
    if kept_attention is not None and known is None:
        kept_attention[layer] = out.detach(), lse
    return out.transpose(1, 2), None


AttentionInterface.register(NAME, tree_attention)


def _blocks(segments: tuple[Segment, ...]) -> Iterator[tuple[slice, slice, bool]]:
    """The (queries, keys, causal) of the blocks of inner segments: all as seen by themselves, then by what lies below them."""
    inner = [segment for segment in segments if not segment.is_leaf]
    for segment in inner:
        own = slice(segment.start, segment.end)
        yield own, own, True
    for segment in inner:
        yield slice(segment.end, segment.subtree_end), slice(segment.start, segment.end), False


def _attend(query: Tensor, key: Tensor, value: Tensor, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """A dense block (n, H, Q, D) -> output (n, H, Q, D) and the log of the softmax denominator (n, H, Q)."""
    groups = query.shape[1] // key.shape[1]
    if causal:
        return _dense(query, _repeat(key, groups), _repeat(value, groups), True, scale)
    out, lse = _dense(_fold(query, groups), key, value, False, scale)
    return _unfold(out, groups), _unfold(lse, groups)


def _attend_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, lse: Tensor, causal: bool, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of one block, given the output and log denominator of the whole softmax that the block is a part of.

    Keys are repeated here, and not queries folded: the CPU kernel deals heads out to threads, and there are more of these.
    """
    groups = query.shape[1] // key.shape[1]
    key, value = _repeat(key, groups), _repeat(value, groups)
    d_query, d_key, d_value = _dense_backward(grad, query, key, value, out, lse, causal, scale)
    return d_query, _sum_repeats(d_key, groups), _sum_repeats(d_value, groups)


def _dense(query: Tensor, key: Tensor, value: Tensor, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    if _has_kernel(query):
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, causal, scale=scale)
    blocks = [
        _products(query[:, :, rows], key[:, :, seen], value[:, :, seen], causal, scale)
        for rows, seen in _bounded(query, key, causal)
    ]
    out, lse = (torch.cat(parts, dim=2) for parts in zip(*blocks, strict=True))
    return out, lse


def _dense_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, lse: Tensor, causal: bool, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    if not _has_kernel(query):
        return _bounded_backward(grad, query, key, value, out, lse, causal, scale)
    if query.shape[2] >= SHORT:
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
            grad, query, key, value, out, lse, 0.0, causal, scale=scale
        )
    heads = zip(*(tensor.split(1, dim=1) for tensor in (grad, query, key, value, out, lse)), strict=True)
    of_heads = (_products_backward(*head, causal, scale) for head in heads)  # of one head, the scores stay in the cache
    d_query, d_key, d_value = (torch.cat(parts, dim=1) for parts in zip(*of_heads, strict=True))
    return d_query, d_key, d_value


def _bounded_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, lse: Tensor, causal: bool, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    d_query = torch.empty_like(query)
    d_key, d_value = (torch.zeros_like(tensor, dtype=lse.dtype) for tensor in (key, value))
    for rows, seen in _bounded(query, key, causal):
        of_rows = (tensor[:, :, rows] for tensor in (out, lse))
        block = _products_backward(
            grad[:, :, rows], query[:, :, rows], key[:, :, seen], value[:, :, seen], *of_rows, causal, scale
        )
        d_query[:, :, rows] = block[0]
        d_key[:, :, seen] += block[1]
        d_value[:, :, seen] += block[2]
    return d_query, d_key.to(key.dtype), d_value.to(value.dtype)


def _bounded(query: Tensor, key: Tensor, causal: bool) -> Iterator[tuple[slice, slice]]:
    """The queries in parts whose scores are few enough to exist at once, each with the keys that it may see."""
    (rows, heads, queries, _), keys = query.shape, key.shape[2]
    size = max(1, BLOCK_SCORES // (rows * heads * keys))
    for start in range(0, queries, size):
        end = min(start + size, queries)
        yield slice(start, end), slice(0, end if causal else keys)


def _products(query: Tensor, key: Tensor, value: Tensor, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """As `_attend`, heads for heads; the last query sees all keys, where causal the one before it all but the last."""
    scores = _scores(query, key, causal, scale)
    lse = scores.logsumexp(-1)
    return (scores - lse[..., None]).exp().to(value.dtype) @ value, lse


def _products_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, lse: Tensor, causal: bool, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    weights = _scores(query, key, causal, scale).sub_(lse[..., None]).exp_()  # (n, H, Q, K)
    row_sums = (grad * out).sum(-1, keepdim=True, dtype=weights.dtype)
    d_scores = _wide_product(grad, value).sub_(row_sums).mul_(weights).mul_(scale).to(query.dtype)
    return d_scores @ key, d_scores.mT @ query, weights.to(query.dtype).mT @ grad


def _scores(query: Tensor, key: Tensor, causal: bool, scale: float) -> Tensor:
    scores = _wide_product(query, key).mul_(scale)
    if causal:
        queries, keys = scores.shape[-2:]
        future = torch.ones(queries, keys, dtype=torch.bool, device=scores.device).triu(1 + keys - queries)
        scores = scores.masked_fill_(future, float("-inf"))
    return scores


def _wide_product(rows: Tensor, columns: Tensor) -> Tensor:
    """(..., Q, D) and (..., K, D) -> (..., Q, K), not rounded to their type, also under autocast."""
    wide = accumulation_dtype(rows.dtype)
    with torch.autocast(rows.device.type, enabled=False):
        return rows.to(wide) @ columns.to(wide).mT


def _has_kernel(query: Tensor) -> bool:
    return query.device.type == "cpu"


def _weighted(block: Tensor, log_weight: Tensor) -> Tensor:
    return (block * log_weight.exp()[..., None]).to(block.dtype)


def _repeat(tensor: Tensor, groups: int) -> Tensor:
    """(n, H_kv, L, D) -> (n, H, L, D): each key head once per query head of its group."""
    return tensor if groups == 1 else tensor.repeat_interleave(groups, dim=1)


def _sum_repeats(tensor: Tensor, groups: int) -> Tensor:
    return tensor if groups == 1 else tensor.unflatten(1, (-1, groups)).sum(2)


def _fold(tensor: Tensor, groups: int) -> Tensor:
    """(n, H, L, ...) -> (n, H_kv, groups * L, ...): query heads that share a key head become more queries to it."""
    return tensor if groups == 1 else tensor.unflatten(1, (-1, groups)).flatten(2, 3)


def _unfold(tensor: Tensor, groups: int) -> Tensor:
    return tensor if groups == 1 else tensor.unflatten(2, (groups, -1)).flatten(1, 2)
