"""Keys and values of a call, and the attention over them.

A row being decoded attends to two places: the prefix that it shares with other rows, kept once, and its own tokens, kept in
its slot. The queries of all rows with one prefix meet it in a single matrix product. Each part yields its output and the
logarithm of its softmax denominator, and the two merge exactly.

A transformers model calls `cascade_attention` in every layer, as a registered attention function; what to attend to comes
with the call as `attention_state`. Left out: sliding windows within the context, attention sinks and soft caps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AttentionInterface

from cobalt_data.errors import InputError

NAME = "cobalt_cascade"
UNSUPPORTED = ("softcap", "s_aux", "sinks")
SLOT_GROWTH = 64  # tokens by which slots are widened


@dataclass(frozen=True, slots=True)
class Prefix:
    """Keys and values of a sequence of tokens from the first on, per layer (H_kv, P, D)."""

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]

    def __len__(self) -> int:
        return int(self.keys[0].shape[1])


class Prefill:
    """The state of one forward pass that computes new tokens, in one row, behind a prefix."""

    def __init__(self, parent: Prefix | None) -> None:
        self.parent = parent
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """(1, H, T, D) -> (1, T, H, D)"""
        if self.parent is not None:
            key = torch.cat([self.parent.keys[layer][None], key], dim=2)
            value = torch.cat([self.parent.values[layer][None], value], dim=2)
        self.keys.append(key[0].mT.contiguous().mT)  # laid out as decoding multiplies them, step after step
        self.values.append(value[0])
        new, past = query.shape[2], key.shape[2] - query.shape[2]
        mask = query.new_ones(new, past + new, dtype=torch.bool).tril(past) if past else None
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
        return F.scaled_dot_product_attention(query, key, value, mask, is_causal=mask is None, scale=scale).transpose(
            1, 2
        )

    def prefix(self, layers: int) -> Prefix:
        """What has been computed. Raises InputError where a layer did not attend through this state."""
        if len(self.keys) != layers:
            raise InputError(f"{len(self.keys)} of the model's {layers} layers attend to keys of their own: use vllm")
        return Prefix(tuple(self.keys), tuple(self.values))


class Slots:
    """The state of decoding: rows 0 to R-1, each with its shared prefix and its own tokens in a slot."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.keys: list[Tensor] = []  # per layer (count, H_kv, width, D)
        self.values: list[Tensor] = []
        self._groups: list[tuple[Prefix, int, int]] = []

    def admit(self, slot: int, computed: Prefix, shared: int) -> None:
        """Puts what is behind the first `shared` tokens of `computed` into a slot."""
        if not self.keys:
            self.keys = [layer.new_empty(self.count, len(layer), 0, layer.shape[2]) for layer in computed.keys]
            self.values = [layer.new_empty(self.count, len(layer), 0, layer.shape[2]) for layer in computed.values]
        own = len(computed) - shared
        self._widen(own)
        for layer in range(len(self.keys)):
            self.keys[layer][slot, :, :own] = computed.keys[layer][:, shared:]
            self.values[layer][slot, :, :own] = computed.values[layer][:, shared:]

    def move(self, source: int, target: int, length: int) -> None:
        for buffer in (*self.keys, *self.values):
            buffer[target, :, :length] = buffer[source, :, :length]

    def start_step(self, prefixes: Sequence[Prefix | None], lengths: Sequence[int]) -> None:
        """Before a forward pass that gives each row one more token: its prefix, and how many own tokens it has so far."""
        device = self.keys[0].device
        self._width = max(lengths) + 1
        self._widen(self._width)
        self._lengths = torch.tensor(lengths, device=device)
        self._rows = torch.arange(len(lengths), device=device)
        unwritten = torch.arange(self._width, device=device) > self._lengths[:, None]
        self._mask = torch.zeros(unwritten.shape, device=device).masked_fill_(unwritten, float("-inf"))[:, None, None]
        self._group(prefixes)

    def _group(self, prefixes: Sequence[Prefix | None]) -> None:
        """Rows with one prefix attend to it together: `_order` lists them group by group, `_groups` where each begins."""
        members: dict[int, list[int]] = {}
        for row, prefix in enumerate(prefixes):
            if prefix is not None:
                members.setdefault(id(prefix), []).append(row)
        self._groups, order = [], list[int]()
        for rows in members.values():
            prefix = prefixes[rows[0]]
            assert prefix is not None
            self._groups.append((prefix, len(order), len(order) + len(rows)))
            order += rows
        self._order = torch.tensor(order, device=self.keys[0].device)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """(R, H, 1, D) -> (R, 1, H, D)"""
        rows, heads, _, width = query.shape
        keys, values = self.keys[layer], self.values[layer]
        keys[self._rows, :, self._lengths] = key[:, :, 0]
        values[self._rows, :, self._lengths] = value[:, :, 0]
        query = (query * scale).view(rows, key.shape[1], -1, width)  # (R, H_kv, G, D)
        own = slice(self._width)
        out, lse = _attend_own(query, keys[:rows, :, own], values[:rows, :, own], self._mask)
        if self._groups:
            self._merge_prefixes(layer, query, out, lse)
        return out.to(value.dtype).view(rows, 1, heads, width)

    def _merge_prefixes(self, layer: int, query: Tensor, out: Tensor, lse: Tensor) -> None:
        ordered = query[self._order].transpose(0, 1)  # (H_kv, R, G, D)
        parts = [
            _attend(ordered[:, start:end].flatten(1, 2), prefix.keys[layer], prefix.values[layer])
            for prefix, start, end in self._groups
        ]
        shared = torch.cat([part for part, _ in parts], dim=1).view(ordered.shape).transpose(0, 1)
        shared_lse = torch.cat([part for _, part in parts], dim=1).view(ordered.shape[:3]).transpose(0, 1)
        own_lse = lse[self._order]
        share = torch.sigmoid(shared_lse - own_lse)[..., None]
        out[self._order] = torch.lerp(out[self._order], shared, share)

    def _widen(self, width: int) -> None:
        if width > self.keys[0].shape[2]:
            width = -(-width // SLOT_GROWTH) * SLOT_GROWTH
            self.keys = [_widened(buffer, width) for buffer in self.keys]
            self.values = [_widened(buffer, width) for buffer in self.values]


def cascade_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    attention_state: Prefill | Slots | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """The attention function that a transformers model calls in each layer."""
    unsupported = [name for name in UNSUPPORTED if options.get(name) is not None]
    if unsupported or attention_state is None:
        reason = f"attention with {', '.join(unsupported)}" if unsupported else "an attention of its own"
        raise InputError(f"{type(module).__name__} has {reason}, which the engine transformers lacks: use vllm")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return attention_state.attend(int(module.layer_idx), query, key, value, scale), None


AttentionInterface.register(NAME, cascade_attention)


def _attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Attention of scaled queries (..., Q, D) -> output (..., Q, D) and log denominator (..., Q), both float32."""
    scores = (query @ keys.mT).float()
    if mask is not None:
        scores += mask
    highest = scores.amax(-1, keepdim=True)
    weights = (scores - highest).exp_()
    total = weights.sum(-1, keepdim=True)
    out = (weights.to(values.dtype) @ values).float() / total
    return out, (highest + total.log())[..., 0]


def _attend_own(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The same for rows that each have keys of their own; on a CPU by the fused kernel, which is nearly twice as fast."""
    if query.device.type != "cpu":
        return _attend(query, keys, values, mask)
    mask = mask.expand(*query.shape[:1], 1, query.shape[2], keys.shape[2])
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # unlike its public wrapper, it returns the lse
    out, lse = fused(query, keys, values, 0.0, False, attn_mask=mask, scale=1.0)
    return out.float(), lse


def _widened(buffer: Tensor, width: int) -> Tensor:
    wider = buffer.new_zeros(*buffer.shape[:2], width, buffer.shape[3])
    wider[:, :, : buffer.shape[2]] = buffer
    return wider
