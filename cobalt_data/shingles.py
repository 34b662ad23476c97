"""Texts as sets of shingles: every run of `size` successive tokens, as a 32-bit number.

A token is a word (ASCII letters, digits, `_`, and every byte beyond ASCII) or one other character; white space only
separates. A text shorter than a shingle is one shingle of what there is, an empty one the shingle of nothing, so every text
has at least one. Numbers depend on the text and `size` alone: not on the machine, a library's version or the texts beside it.

All texts of a chunk are worked on as one array of bytes, since a loop over tokens in Python would cost more than everything
that follows. Two different shingles share a number once in 4 * 10^9, which moves a Jaccard similarity by less than its last
printed digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Numbers32 = NDArray[np.uint32]
Numbers64 = NDArray[np.uint64]
Places = NDArray[np.int64]

_SPACE, _WORD, _SIGN = 0, 1, 2
_KINDS = np.full(256, _SIGN, np.uint8)
_KINDS[list(b"\0\t\n\v\f\r ")] = _SPACE
_KINDS[[*b"_", *range(ord("0"), ord("9") + 1), *range(ord("A"), ord("Z") + 1), *range(ord("a"), ord("z") + 1)]] = _WORD
_KINDS[128:] = _WORD
_VALUES = np.where(_KINDS == _SPACE, 0, np.arange(1, 257)).astype(np.uint64)
_BASE = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_STEP = np.uint64(0xD1B54A32D192ED03)


@dataclass(frozen=True, slots=True)
class Shingles:
    """The shingles of several texts back to back; text i has values[starts[i] : starts[i + 1]], repeats included."""

    values: Numbers32
    starts: Places  # (texts + 1,)

    def __len__(self) -> int:
        return len(self.starts) - 1


def shingles_of(texts: Sequence[str] | pa.Array, size: int, tags: NDArray[np.integer] | None = None) -> Shingles:
    """The shingles of each text. Texts with different `tags` (a small number each) have no shingle in common."""
    data, bounds = _bytes_of(texts)
    tokens, firsts = _tokens(data, bounds)
    counts = np.diff(firsts)
    windows = np.maximum(counts - size + 1, 1)
    starts = np.r_[0, np.cumsum(windows)]
    numbers = np.zeros(starts[-1], np.uint64)
    is_long = np.repeat(counts >= size, windows)
    numbers[is_long] = _runs(tokens, size)[_whole_runs(firsts, counts, size)]
    for shorter in range(1, size):
        texts_so_short = np.flatnonzero(counts == shorter)
        numbers[starts[texts_so_short]] = _runs(tokens, shorter)[firsts[texts_so_short]]
    if tags is not None:
        numbers += np.repeat(tags.astype(np.uint64) + np.uint64(1), windows) * _STEP
    return Shingles((mix(numbers) >> _HALF).astype(np.uint32), starts)


def _runs(tokens: Numbers64, size: int) -> Numbers64:
    """A number per run of `size` tokens, whether or not one text holds all of them."""
    count = max(len(tokens) - size + 1, 0)
    sums = tokens[:count].copy()
    for offset in range(1, size):
        sums *= _BASE
        sums += tokens[offset : offset + count]
    return sums


def _whole_runs(firsts: Places, counts: Places, size: int) -> NDArray[np.bool_]:
    """Which runs begin and end in one text."""
    whole = np.ones(max(int(firsts[-1]) - size + 1, 0), np.bool_)
    for back in range(1, size):
        ends = firsts[1:][counts > 0] - back
        whole[ends[(ends >= 0) & (ends < len(whole))]] = False
    return whole


def mix(numbers: Numbers64) -> Numbers64:
    """Spreads every bit of a number over all of its bits (the finaliser of splitmix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    numbers ^= numbers >> np.uint64(31)
    return numbers


def jaccard(shingles: Shingles, left: Places, right: Places) -> NDArray[np.float64]:
    """Shared shingles over all shingles, each counted once, of each pair of a text on the left with one on the right."""
    texts = np.arange(len(shingles), dtype=np.uint64)
    keys = distinct((np.repeat(texts, np.diff(shingles.starts)) << _HALF) | shingles.values)
    starts = np.searchsorted(keys, np.arange(len(shingles) + 1, dtype=np.uint64) << _HALF)
    sizes = np.diff(starts)
    united = np.concatenate([_by_pair(keys, starts, side) for side in (left, right)])
    united.sort()
    repeated = united[1:][united[1:] == united[:-1]] >> _HALF
    shared = np.bincount(repeated.astype(np.int64), minlength=len(left))
    similarity: NDArray[np.float64] = shared / (sizes[left] + sizes[right] - shared)
    return similarity


def shares_found(
    shingles: Shingles, starts: Places, lengths: Places, pairs: Places, texts: Places
) -> NDArray[np.float64]:
    """Of each run of shingles, as given by its start and length, the share that stands in the text of its pair."""
    if not len(starts):
        return np.zeros(0)
    wanted = shingles.values[np.repeat(starts, lengths) + count_up(lengths)]
    wanted = wanted | (np.repeat(pairs, lengths).astype(np.uint64) << _HALF)
    sizes = np.diff(shingles.starts)[texts]
    known = shingles.values[np.repeat(shingles.starts[texts], sizes) + count_up(sizes)]
    known = np.sort(known | (np.repeat(np.arange(len(texts), dtype=np.uint64), sizes) << _HALF))
    found = known[np.searchsorted(known, wanted).clip(max=len(known) - 1)] == wanted
    shares: NDArray[np.float64] = np.add.reduceat(found, np.cumsum(lengths) - lengths, dtype=np.int64) / lengths
    return shares


def _by_pair(keys: Numbers64, starts: Places, side: Places) -> Numbers64:
    """The shingles of one text of every pair, with the number of the pair in the upper half."""
    sizes = np.diff(starts)[side]
    places = np.repeat(starts[side], sizes) + count_up(sizes)
    pairs = np.repeat(np.arange(len(side), dtype=np.uint64), sizes)
    numbers: Numbers64 = (keys[places] & np.uint64(0xFFFFFFFF)) | (pairs << _HALF)
    return numbers


def _bytes_of(texts: Sequence[str] | pa.Array) -> tuple[Bytes, Places]:
    """The UTF-8 bytes of all texts back to back, and where each begins, with the end of the last."""
    if isinstance(texts, pa.Array):
        array = texts.cast(pa.large_string())
        _, offsets, data = array.buffers()
        bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
        whole = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        return whole[bounds[0] : bounds[-1]], bounds - bounds[0]
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    return np.frombuffer(b"".join(parts), np.uint8), np.r_[0, np.cumsum([len(part) for part in parts], dtype=np.int64)]


def _tokens(data: Bytes, bounds: Places) -> tuple[Numbers64, Places]:
    """A number per token of all texts, and the index of each text's first one, with the number of all."""
    kinds = _KINDS.take(data)
    begins = kinds == _SIGN
    words = kinds == _WORD
    begins[1:] |= words[1:] & ~words[:-1]
    heads = bounds[:-1][bounds[:-1] < bounds[1:]]  # where a text that is not empty begins
    begins[heads] |= words[heads]
    places = np.flatnonzero(begins)
    firsts = np.searchsorted(places, bounds)
    if not len(places):
        return np.zeros(0, np.uint64), firsts
    powers, inverses = _powers(1 << len(data).bit_length())
    values = _VALUES.take(data)  # white space counts nothing, so the spaces behind a token may go with it
    values *= powers[: len(data)]
    sums = np.cumsum(values)[np.r_[places[1:], len(data)] - 1]
    sums[1:] -= sums[:-1].copy()
    return mix(sums * inverses[places]), firsts


@lru_cache(maxsize=4)
def _powers(count: int) -> tuple[Numbers64, Numbers64]:
    """The powers of the base modulo 2^64, and their inverses."""
    bases = np.full((2, count), _BASE, np.uint64)
    bases[1] = pow(int(_BASE), -1, 1 << 64)
    bases[:, 0] = 1
    powers = np.cumprod(bases, axis=1, dtype=np.uint64)
    return powers[0], powers[1]


def distinct(numbers: NDArray[Any]) -> NDArray[Any]:
    """Each number once, ascending; `numpy.unique` takes five times as long over as many as there are here."""
    ordered = np.sort(numbers)
    once: NDArray[Any] = ordered[np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)]]
    return once


def count_up(lengths: NDArray[np.integer]) -> Places:
    """0, 1, ... for each of the lengths, back to back."""
    ends = np.cumsum(lengths)
    places: Places = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    return places
