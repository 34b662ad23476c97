"""Finding text that repeats itself: a block of at least 32 characters, at least 8 times in a row.

A regular expression with a back-reference does this in quadratic time, which one looping completion of a few thousand
tokens turns into minutes. Here a block length is tried by comparing the text with itself, a grid of neighbouring blocks at a
time: n / length comparisons of which nearly all end at the first character, so about n log n in all.
"""

from __future__ import annotations

BLOCK_CHARS = 32
REPEATS = 8


def is_repetitive(text: str, block: int = BLOCK_CHARS, repeats: int = REPEATS) -> bool:
    """True if some block of `block` or more characters stands `repeats` (3 or more) or more times in a row."""
    return any(_repeats(text, length, repeats) for length in range(block, len(text) // repeats + 1))


def _repeats(text: str, length: int, repeats: int) -> bool:
    """A run of `repeats` blocks, wherever it begins, covers `repeats - 1` whole cells of a grid of this length."""
    equal_cells = 1
    for start in range(0, len(text) - 2 * length + 1, length):
        middle = start + length
        if text[start] == text[middle] and text[start:middle] == text[middle : middle + length]:
            equal_cells += 1
            if equal_cells >= repeats - 1 and _run_around(text, middle, length) >= repeats * length:
                return True
        else:
            equal_cells = 1
    return False


def _run_around(text: str, position: int, length: int) -> int:
    """How many characters around `position` repeat with the period `length`."""
    end = position
    while end < len(text) and text[end] == text[end - length]:
        end += 1
    start = position - length
    while start > 0 and text[start - 1] == text[start - 1 + length]:
        start -= 1
    return end - start
