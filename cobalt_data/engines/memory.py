"""What a session keeps between its calls: the keys and values of conversations that may go on.

The next prompt of a conversation begins with the last one and its answer. What has been computed of that is found again by
its tokens, so a template that renders earlier turns differently costs time and nothing else.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass

from cobalt_data.engines.cascade import Prefix
from cobalt_data.engines.prefixes import Tokens, common_length

MOST_BYTES = 1 << 31  # that are kept between two calls; rows beyond are computed again


@dataclass(frozen=True, slots=True)
class Known:
    """Tokens that have been computed: the first with other rows, in `shared`, the rest in `own`."""

    tokens: Tokens
    shared: Prefix | None
    own: Prefix

    def first(self, count: int) -> Prefix:
        """The first `count` of them, in one piece."""
        if self.shared is None:
            return self.own.first(count)
        behind = max(0, count - len(self.shared))
        return self.shared.first(count - behind) + self.own.first(behind)


class Memory:
    """Rows of the last call, each to be recalled once, and those of the present one."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._last: list[Known] = []
        self._present: list[Known] = []
        self._shared: dict[int, Prefix] = {}  # of the present rows, each counted once
        self._room = 0

    def begin_call(self) -> None:
        """Forgets what was not recalled, and makes what the last call left ready for it."""
        self._last = sorted(self._present, key=lambda known: known.tokens)
        self._present, self._shared, self._room = [], {}, self._most_bytes

    @property
    def has_room(self) -> bool:
        return self._room > 0

    def keep(self, known: Known) -> None:
        """Keeps a row if there is room for it and for what it shares."""
        shared = {} if known.shared is None else {id(known.shared): known.shared}
        size = known.own.bytes + sum(prefix.bytes for key, prefix in shared.items() if key not in self._shared)
        if size <= self._room:
            self._present.append(known)
            self._shared |= shared
            self._room -= size

    def recall(self, prompt: Tokens, least: int) -> tuple[Prefix, Prefix | None] | None:
        """The longest known beginning of a prompt, its last token excluded, and the part of it that other rows share.

        None where no more than the first `least` tokens are known.
        """
        place = bisect(self._last, prompt, key=lambda known: known.tokens)
        near = range(max(0, place - 1), min(place + 1, len(self._last)))
        found = max(near, key=lambda index: common_length(prompt, self._last[index].tokens), default=None)
        if found is None or (length := common_length(prompt, self._last[found].tokens)) <= least:
            return None
        known = self._last.pop(found)
        return known.first(length), known.shared if len(known.shared or ()) <= length else None
