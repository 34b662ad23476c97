"""The shingles and bands of very many texts: computed on all cores, a chunk at a time, with the shingles kept on the disk.

In memory stay, per text, one number per band and the place of its shingles, about 150 bytes, however long the texts are, and
16 bytes for each of its units. The result is the same for any number of cores and for texts added in any portions.
"""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cobalt_data.minhash import band_width, bands
from cobalt_data.shingles import Numbers64, Places, Shingles, count_up, distinct, jaccard, shares_found, shingles_of
from cobalt_data.staging import clear_disk_errors

TEXTS_PER_CHUNK = 1024
SHINGLES_PER_BATCH = 1 << 19

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Units:
    """The units of several items back to back; item i has those from firsts[i] on, up to firsts[i + 1]."""

    firsts: Places  # (items + 1,)
    starts: Places  # among the shingles of the item
    lengths: Places


@dataclass(frozen=True, slots=True)
class _Sketch:
    shingles: Shingles
    bands: Numbers64
    units: _Units


class Sketches:
    """What is known of the texts added so far; row i is the i-th item. NumPy lets go of the interpreter, so threads serve."""

    def __init__(self, directory: str, threads: ThreadPoolExecutor, size: int, threshold: float) -> None:
        self.file = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115  closed with the block of `open_sketches`
        self._directory = Path(directory)
        self._threads = threads
        self._size = size
        self._width = band_width(threshold)
        self._pending: deque[Future[_Sketch]] = deque()
        self._bands: list[Numbers64] = []
        self._counts: list[Places] = []
        self._units_of_chunks: list[_Units] = []
        self._starts: Places = np.zeros(1, np.int64)
        self._units = _joined([])

    def add(
        self,
        texts: Sequence[str] | pa.Array,
        parts: Sequence[int] | None = None,
        tags: Sequence[int] | None = None,
        units: Sequence[bool] | None = None,
    ) -> None:
        """Adds an item per text, or, where `parts` says of how many texts each item consists, per run of so many texts.

        The parts of an item may be in any order; `tags`, one per text, tell apart those that must not be mixed up, and `units`
        marks those that `least_shares` is to look at.
        """
        counts = np.ones(len(texts), np.int64) if parts is None else np.asarray(parts, np.int64)
        marks = np.zeros(len(texts), np.int64) if tags is None else np.asarray(tags, np.int64)
        flags = np.zeros(len(texts), np.bool_) if units is None else np.asarray(units, np.bool_)
        ends = np.cumsum(counts)
        for first in range(0, len(counts), TEXTS_PER_CHUNK):
            own = counts[first : first + TEXTS_PER_CHUNK]
            begin = int(ends[first] - own[0])
            chunk = slice(begin, begin + int(own.sum()))
            given = texts[chunk], own, marks[chunk], flags[chunk]
            self._pending.append(self._threads.submit(_sketch, *given, self._size, self._width))
        while len(self._pending) > 4 * (os.cpu_count() or 1):
            self._store()

    def bands(self) -> Numbers64:
        """(bands, items)"""
        while self._pending:
            self._store()
        self._starts = np.r_[0, np.cumsum(np.concatenate([np.zeros(0, np.int64), *self._counts]))]
        self._units = _joined(self._units_of_chunks)
        return np.concatenate(self._bands, axis=1) if self._bands else np.zeros((1, 0), np.uint64)

    def similarities(self, left: Places, right: Places) -> NDArray[np.float64]:
        """The Jaccard similarity of the items on the left to those on the right, pair by pair. To be called after `bands`."""
        return self._by_batches(self._compare, left, right)

    def least_shares(self, left: Places, right: Places) -> NDArray[np.float64]:
        """Pair by pair, the least share of the shingles of one unit on the left that the item on the right has; 1 where
        there is no unit. To be called after `bands`."""
        return self._by_batches(self._look_up_units, left, right)

    def _by_batches(
        self, work: Callable[[Places, Places], NDArray[np.float64]], left: Places, right: Places
    ) -> NDArray[np.float64]:
        if not len(left):
            return np.zeros(0)
        ends = np.cumsum(np.diff(self._starts)[np.stack([left, right])].sum(axis=0))
        bounds = np.r_[0, np.flatnonzero(np.diff(ends // SHINGLES_PER_BATCH)) + 1, len(left)]
        batches = [slice(*bound) for bound in pairwise(bounds.tolist())]
        return np.concatenate(list(self._threads.map(lambda part: work(left[part], right[part]), batches)))

    def _compare(self, left: Places, right: Places) -> NDArray[np.float64]:
        rows = distinct(np.r_[left, right])
        return jaccard(self._read(rows), np.searchsorted(rows, left), np.searchsorted(rows, right))

    def _look_up_units(self, left: Places, right: Places) -> NDArray[np.float64]:
        rows = distinct(np.r_[left, right])
        shingles = self._read(rows)
        counts = np.diff(self._units.firsts)[left]
        units = np.repeat(self._units.firsts[left], counts) + count_up(counts)
        pairs = np.repeat(np.arange(len(left)), counts)
        starts = shingles.starts[np.searchsorted(rows, left)][pairs] + self._units.starts[units]
        found = shares_found(shingles, starts, self._units.lengths[units], pairs, np.searchsorted(rows, right))
        least = np.ones(len(left))
        np.minimum.at(least, pairs, found)
        return least

    def _read(self, rows: Places) -> Shingles:
        """The shingles of these items, from the disk."""
        starts = np.r_[0, np.cumsum(np.diff(self._starts)[rows])]
        values = np.empty(starts[-1], np.uint32)
        for place, row in enumerate(rows.tolist()):
            part = values[starts[place] : starts[place + 1]].data.cast("B")
            os.preadv(self.file.fileno(), [part], int(self._starts[row]) * values.itemsize)
        return Shingles(values, starts)

    def _store(self) -> None:
        sketch = self._pending.popleft().result()
        rest = sketch.shingles.values.data.cast("B")
        with clear_disk_errors(self._directory):
            while rest:  # nothing is buffered: what finds no room would be written once more when the file is closed
                rest = rest[self.file.write(rest) :]
        self._bands.append(sketch.bands)
        self._counts.append(np.diff(sketch.shingles.starts))
        self._units_of_chunks.append(sketch.units)


@contextmanager
def open_sketches(size: int, threshold: float) -> Iterator[Sketches]:
    """Sketches by shingles of `size` tokens, banded for `threshold`. Their file and threads live as long as the block."""
    with (
        tempfile.TemporaryDirectory(prefix="cobalt-shingles-") as directory,
        ThreadPoolExecutor(os.cpu_count()) as threads,
    ):
        sketches = Sketches(directory, threads, size, threshold)
        with sketches.file:
            yield sketches


def _sketch(
    texts: Sequence[str] | pa.Array, parts: Places, tags: Places, units: Flags, size: int, width: int
) -> _Sketch:
    shingles = shingles_of(texts, size, tags)
    bounds = np.r_[0, np.cumsum(parts)]
    whole = Shingles(shingles.values, shingles.starts[bounds])
    starts = shingles.starts[:-1] - np.repeat(whole.starts[:-1], parts)
    firsts = np.r_[0, np.cumsum(units)][bounds]
    return _Sketch(whole, bands(whole, width), _Units(firsts, starts[units], np.diff(shingles.starts)[units]))


def _joined(chunks: Sequence[_Units]) -> _Units:
    none = np.zeros(0, np.int64)
    counts = np.concatenate([none, *(np.diff(chunk.firsts) for chunk in chunks)])
    starts = np.concatenate([none, *(chunk.starts for chunk in chunks)])
    return _Units(np.r_[0, np.cumsum(counts)], starts, np.concatenate([none, *(chunk.lengths for chunk in chunks)]))
