import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobalt_train.repetition import is_repetitive

NOISE = random.Random(0)
BLOCK = "for i in range(10): print(i * i)\n"  # 33 characters


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", False),
        (BLOCK * 8, True),
        (BLOCK * 7, False),
        ("x" * 20 + BLOCK * 8, True),
        ("x" * 20 + BLOCK * 7 + BLOCK[:-1], False),
        (BLOCK[5:] + BLOCK * 7 + "the end", False),
        (BLOCK[5:] + BLOCK * 7 + BLOCK[:5], True),
        ("a" * 255, False),
        ("a" * 256, True),
        ("ab " * 87, False),
        ("ab " * 88, True),
        (("x" * 300).join("abc"), True),
        ("\n".join(BLOCK + str(i) for i in range(50)), False),
    ],
)
def test_a_block_of_32_characters_eight_times_in_a_row_is_repetition(text, found):
    assert is_repetitive(text) == found


@given(
    st.lists(st.sampled_from(["a", "b", "ab", "abab", "ba"]), max_size=25).map("".join),
    st.integers(1, 4),
    st.integers(3, 5),
)
def test_it_finds_what_a_back_reference_finds(text, block, repeats):
    by_regex = re.search(rf"(.{{{block},}})\1{{{repeats - 1},}}", text) is not None
    assert is_repetitive(text, block, repeats) == by_regex


@pytest.mark.parametrize(
    "text",
    [
        "".join(NOISE.choices("abcdef", k=60_000)),
        "".join(f"{BLOCK * 7}{i}" for i in range(250)),
        "".join(NOISE.choices("abcdef", k=8_000)) * 7,
    ],
    ids=["noise", "seven at a time", "long blocks"],
)
def test_a_long_completion_takes_a_fraction_of_a_second(text):
    started = time.process_time()
    assert not is_repetitive(text)
    assert time.process_time() - started < 2.0
