"""MinHash signatures and the bands of locality-sensitive hashing: which texts may be alike, without comparing all of them.

Of each of `HASHES` random orders of all shingles, a signature names the shingle of the text that comes first. Two texts agree
there with a probability that is their Jaccard similarity. The signature is cut into bands; texts that agree on a whole band
are candidates, to be compared exactly (`cobalt_data.alike`): a band may be wrong about a pair, the comparison cannot.

No library computes this part, although good ones exist (rensa, datasketch): which duplicates are found decides the id of the
version that is written, so the numbers must never change, and rensa's do from release to release. Column by column NumPy
needs no more time than rensa and the reading of its matrix together.
"""

from __future__ import annotations

import numpy as np

from cobalt_data.shingles import Numbers32, Numbers64, Shingles, mix

HASHES = 64
LEAST_RECALL = 0.98  # of the pairs that are exactly as alike as the threshold; of closer pairs more are found

_DRAWN = mix(np.arange(1, 2 * HASHES + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
_FACTORS = (_DRAWN[:HASHES] >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
_ADDENDS = (_DRAWN[HASHES:] >> np.uint64(32)).astype(np.uint32)


def band_width(threshold: float) -> int:
    """Hashes per band: as many, for the fewest wrong candidates, as leave `LEAST_RECALL` at the threshold."""
    widths = [width for width in range(1, 17) if recall(threshold, width) >= LEAST_RECALL]
    return max(widths, default=1)


def recall(similarity: float, width: int) -> float:
    """The probability that two texts so alike become candidates."""
    return 1.0 - (1.0 - similarity**width) ** (HASHES // width)


def signatures(shingles: Shingles) -> Numbers32:
    """(HASHES, texts): a row per hash."""
    found = np.empty((HASHES, len(shingles)), np.uint32)
    ordered = np.empty_like(shingles.values)
    for row, factor, addend in zip(found, _FACTORS, _ADDENDS, strict=True):
        np.multiply(shingles.values, factor, out=ordered)
        np.add(ordered, addend, out=ordered)
        np.minimum.reduceat(ordered, shingles.starts[:-1], out=row)
    return found


def bands(shingles: Shingles, width: int) -> Numbers64:
    """(bands, texts): a number per band, the same for texts that agree on all of its hashes."""
    found = signatures(shingles)[: HASHES // width * width].astype(np.uint64)
    keys = np.zeros((len(found) // width, found.shape[1]), np.uint64)
    for offset in range(width):
        keys = mix(keys + found[offset::width] + np.uint64(1))
    return keys
