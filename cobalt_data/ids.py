"""Identity: canonical JSON, content hashes and the seeds derived from them.

An id is a hash of what identifies a row, a seed a hash of the run's seed and of the row's identity: neither depends on
the position of a row, the number of workers or the order in which work is done.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

ROW_ID_DIGITS = 16  # 64 bits: a million rows collide with a probability of 3e-8
VERSION_ID_DIGITS = 12


def canonical_json(value: Any) -> str:
    """The one spelling of a JSON value: sorted keys, no spaces, no NaN. Raises ValueError on what JSON lacks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(*parts: Any) -> str:
    """SHA-256 of the parts' canonical JSON, as 64 hexadecimal digits. Lone surrogates are allowed."""
    return hashlib.sha256(canonical_json(parts).encode("utf-8", "surrogatepass")).hexdigest()


def row_id(*parts: Any) -> str:
    return digest(*parts)[:ROW_ID_DIGITS]


def derive_seed(*parts: Any) -> int:
    """A seed in [0, 2^63) that depends on the parts alone, e.g. (run seed, problem_id, sample_index, turn)."""
    return int(digest("seed", *parts)[:16], 16) >> 1
