"""Which tests are public where the source does not say."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sandbox import Test


def default_public(total: int) -> int:
    """A quarter of the tests, at least 2 where that leaves a hidden one, else 1."""
    return max(total // 4, 2) if total > 2 else 1


def choose_public(tests: Sequence[Test], count: int | None, shown: Collection[int] = ()) -> tuple[Test, ...]:
    """The same tests in the same order, `count` of them public (None: `default_public`), the rest hidden.

    `shown` are the positions of tests whose answer the statement gives away: they are public first, and by default all of
    them are, unless nothing would stay hidden. The others follow in the order of the source.
    """
    if count is None:
        count = max(default_public(len(tests)), len(shown) if len(shown) < len(tests) else 0)
    order = sorted(range(len(tests)), key=lambda index: index not in shown)
    public = set(order[:count])
    return tuple({**test, "public": index in public} for index, test in enumerate(tests))
