"""Keys and values of a call, and the attention over them.

A row being decoded attends to two places: the prefix that it shares with other rows, kept once, and its own tokens, kept in
its slot. The queries of all rows with one prefix meet it in a single matrix product. One softmax goes over both parts.

A transformers model calls `cascade_attention` in every layer, as a registered attention function; what to attend to comes
with the call as `attention_state`. Left out: sliding windows within the context, attention sinks and soft caps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AttentionInterface

from cobalt_data.errors import InputError

NAME = "cobalt_cascade"
UNSUPPORTED = ("softcap", "s_aux", "sinks")
BLOCK_SCORES = 1 << 24  # attention scores that exist at once while prompts are computed
SLOT_GROWTH = 32  # tokens by which slots are widened


@dataclass(frozen=True, slots=True)
class Prefix:
    """Keys and values of successive tokens, per layer (H_kv, D, P) and (H_kv, P, D), as decoding multiplies them."""

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]

    def __len__(self) -> int:
        return int(self.values[0].shape[1])

    @property
    def bytes(self) -> int:
        return sum(tensor.nbytes for tensor in (*self.keys, *self.values))

    def first(self, count: int) -> Prefix:
        return Prefix(
            tuple(keys[..., :count] for keys in self.keys), tuple(values[:, :count] for values in self.values)
        )

    def __add__(self, behind: Prefix) -> Prefix:
        return Prefix(
            tuple(torch.cat(pair, dim=2) for pair in zip(self.keys, behind.keys, strict=True)),
            tuple(torch.cat(pair, dim=1) for pair in zip(self.values, behind.values, strict=True)),
        )


class Prefill:
    """The state of one forward pass that computes the next tokens of some sequences, one behind the other in one row."""

    def __init__(self, behind: Sequence[Prefix | None], counts: Sequence[int]) -> None:
        """`behind` is what each sequence has so far, `counts` how many tokens it gets."""
        self._behind, self._counts = behind, counts
        self._computed: list[tuple[list[Tensor], list[Tensor]]] = [([], []) for _ in counts]

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """(1, H, T, D) -> (1, T, H, D)"""
        parts = (tensor[0].split(list(self._counts), dim=1) for tensor in (query, key, value))
        outputs = []
        for past, computed, own_query, own_key, own_value in zip(self._behind, self._computed, *parts, strict=True):
            keys, values = own_key.mT.contiguous(), own_value.contiguous()
            if past is not None:
                keys = torch.cat([past.keys[layer], keys], dim=2)
                values = torch.cat([past.values[layer], values], dim=1)
            computed[0].append(keys)
            computed[1].append(values)
            outputs.append(_attend_causally(own_query, keys, values, scale))
        return torch.cat(outputs, dim=1).transpose(0, 1)[None]

    def prefixes(self, layers: int) -> list[Prefix]:
        """The sequences as they are now. Raises InputError where a layer did not attend through this state."""
        found = min(len(keys) for keys, _ in self._computed)
        if found != layers:
            raise InputError(f"{found} of the model's {layers} layers attend to keys of their own: use vllm")
        return [Prefix(tuple(keys), tuple(values)) for keys, values in self._computed]


class Slots:
    """The state of decoding: rows 0 to R-1, each with its shared prefix and its own tokens in a slot."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.keys: list[Tensor] = []  # per layer (count, H_kv, D, width)
        self.values: list[Tensor] = []  # per layer (count, H_kv, width, D)

    def admit(self, slot: int, computed: Prefix, shared: int) -> None:
        """Puts what is behind the first `shared` tokens of `computed` into a slot."""
        if not self.keys:
            self.keys = [layer.new_empty(self.count, *layer.shape[:2], 0) for layer in computed.keys]
            self.values = [layer.new_empty(self.count, len(layer), 0, layer.shape[2]) for layer in computed.values]
        own = len(computed) - shared
        self._widen(own)
        for layer in range(len(self.keys)):
            self.keys[layer][slot, ..., :own] = computed.keys[layer][..., shared:]
            self.values[layer][slot, :, :own] = computed.values[layer][:, shared:]

    def move(self, source: int, target: int, length: int) -> None:
        for keys, values in zip(self.keys, self.values, strict=True):
            keys[target, ..., :length] = keys[source, ..., :length]
            values[target, :, :length] = values[source, :, :length]

    def taken(self, slot: int, length: int) -> Prefix:
        """A copy of the first `length` tokens of a slot."""
        return Prefix(
            tuple(keys[slot, ..., :length].clone() for keys in self.keys),
            tuple(values[slot, :, :length].clone() for values in self.values),
        )

    def start_step(self, prefixes: Sequence[Prefix | None], lengths: Sequence[int]) -> None:
        """Before a forward pass that gives each row one more token: its prefix, and how many own tokens it has so far."""
        device = self.values[0].device
        self._widen(max(lengths) + 1)
        self._lengths = torch.tensor(lengths, device=device)
        self._rows = torch.arange(len(lengths), device=device)
        unwritten = torch.arange(self.values[0].shape[2], device=device) > self._lengths[:, None]
        self._mask = torch.zeros(unwritten.shape, device=device).masked_fill_(unwritten, float("-inf"))[:, None, None]
        members: dict[int, list[int]] = {}
        for row, prefix in enumerate(prefixes):
            members.setdefault(id(prefix), []).append(row)
        self._groups = [(prefixes[rows[0]], _indices(rows, device)) for rows in members.values()]

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """(R, H, 1, D) -> (R, 1, H, D)"""
        rows, heads, _, width = query.shape
        keys, values = self.keys[layer], self.values[layer]
        keys[self._rows, ..., self._lengths] = key[:, :, 0]
        values[self._rows, :, self._lengths] = value[:, :, 0]
        query = (query * scale).view(rows, key.shape[1], -1, width)  # (R, H_kv, G, D)
        scores = _products(query, keys[:rows]) + self._mask  # whole slots: a part would be copied
        weights = torch.empty(scores.shape, dtype=value.dtype, device=value.device)
        shared = query.new_zeros(query.shape)
        for prefix, members in self._groups:
            if prefix is None:
                weights[members] = torch.softmax(scores[members], -1).to(weights.dtype)
                continue
            # (H_kv, R of the group, G, ...): a head's keys meet all of its queries at once
            queries = query[members].transpose(0, 1)
            prefix_scores = torch.bmm(queries.flatten(1, 2), prefix.keys[layer]).view(*queries.shape[:3], -1)
            all_scores = torch.cat([prefix_scores, scores[members].transpose(0, 1)], -1)
            all_weights = all_scores.softmax(-1).to(weights.dtype)
            prefix_weights, own_weights = all_weights.split([len(prefix), scores.shape[-1]], -1)
            weights[members] = own_weights.transpose(0, 1)
            out = torch.bmm(prefix_weights.flatten(1, 2), prefix.values[layer])
            shared[members] = out.view_as(queries).transpose(0, 1)
        return (_products(weights, values[:rows]) + shared).view(rows, 1, heads, width)

    def _widen(self, width: int) -> None:
        if width > self.values[0].shape[2]:
            more = -(-width // SLOT_GROWTH) * SLOT_GROWTH - self.values[0].shape[2]
            self.keys = [F.pad(keys, (0, more)) for keys in self.keys]
            self.values = [F.pad(values, (0, 0, 0, more)) for values in self.values]


def more_than_plain(query: Tensor, value: Tensor, options: Mapping[str, Any]) -> list[str]:
    """What an attention asks for beyond keys, queries and values of one width."""
    asked = [name for name in UNSUPPORTED if options.get(name) is not None]
    return asked if query.shape[-1] == value.shape[-1] else [*asked, "values of another width than its keys"]


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
    unsupported = more_than_plain(query, value, options)
    if unsupported or attention_state is None:
        reason = f"attention with {', '.join(unsupported)}" if unsupported else "an attention of its own"
        raise InputError(f"{type(module).__name__} has {reason}, which the engine transformers lacks: use vllm")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return attention_state.attend(int(module.layer_idx), query, key, value, scale), None


AttentionInterface.register(NAME, cascade_attention)


def _attend_causally(query: Tensor, keys: Tensor, values: Tensor, scale: float) -> Tensor:
    """The last T of K tokens attend to all up to themselves: query (H, T, D) and keys (H_kv, D, K) -> (H, T, D)."""
    heads, new, width = query.shape
    past, groups = keys.shape[2] - new, heads // len(keys)
    if not past:
        key, value = (tensor.repeat_interleave(groups, dim=0)[None] for tensor in (keys.mT, values))
        return F.scaled_dot_product_attention(query[None], key, value, is_causal=True, scale=scale)[0]
    block = max(1, BLOCK_SCORES // (heads * keys.shape[2]))
    outputs = []
    for start in range(0, new, block):
        rows = (query[:, start : start + block] * scale).reshape(len(keys), -1, width)  # (H_kv, groups * block, D)
        count = rows.shape[1] // groups
        future = query.new_ones(count, past + new, dtype=torch.bool).triu(past + start + 1)
        mask = torch.zeros(future.shape, device=query.device).masked_fill_(future, float("-inf"))
        weights = (torch.bmm(rows, keys) + mask.repeat(groups, 1)).softmax(-1).to(values.dtype)
        outputs.append(torch.bmm(weights, values).view(heads, count, width))
    return torch.cat(outputs, dim=1)


def _products(left: Tensor, right: Tensor) -> Tensor:
    """`left @ right` (R, H, ., .) without the copy that `@` makes of a `right` that is part of a wider buffer."""
    return torch.bmm(left.flatten(0, 1), right.flatten(0, 1)).unflatten(0, left.shape[:2])


def _indices(rows: list[int], device: torch.device) -> slice | Tensor:
    """Those of successive rows as a slice, which copies nothing."""
    if rows[-1] - rows[0] == len(rows) - 1:
        return slice(rows[0], rows[-1] + 1)
    return torch.tensor(rows, device=device)
