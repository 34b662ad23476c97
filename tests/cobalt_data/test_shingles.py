"""Shingles, signatures and bands against their plain definitions; normal forms on several cores."""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobalt_data.minhash import HASHES, LEAST_RECALL, band_width, recall, signatures
from cobalt_data.normal_forms import normal_forms
from cobalt_data.normalise import normalise_program
from cobalt_data.shingles import Shingles, jaccard, shingles_of

TEXTS = st.lists(st.text("ab_ \n\t+(é1𝄞", max_size=25), min_size=1, max_size=6)
TOKEN = re.compile(r"[A-Za-z0-9_\x80-\U0010ffff]+|[^\s]")


def plain_shingles(text, size):
    tokens = TOKEN.findall(text)
    return [tuple(tokens[place : place + size]) for place in range(max(1, len(tokens) - size + 1))]


@given(TEXTS, st.integers(1, 5))
def test_shingles_are_the_runs_of_tokens_whatever_stands_beside_a_text(texts, size):
    found = shingles_of(texts, size)
    known = {}
    for index, text in enumerate(texts):
        own = found.values[found.starts[index] : found.starts[index + 1]].tolist()
        plain = plain_shingles(text, size)
        assert len(own) == len(plain) and shingles_of([text], size).values.tolist() == own
        assert all(known.setdefault(shingle, number) == number for shingle, number in zip(plain, own, strict=True))
    assert len(set(known.values())) == len(known)
    assert shingles_of(pa.array(["", *texts])[1:], size).values.tolist() == found.values.tolist()


@given(TEXTS, st.integers(1, 3))
def test_jaccard_is_that_of_the_sets(texts, size):
    left = np.arange(len(texts))
    measured = jaccard(shingles_of(texts, size), left, left[::-1])
    sets = [set(plain_shingles(text, size)) for text in texts]
    assert measured.tolist() == [len(a & b) / len(a | b) for a, b in zip(sets, sets[::-1], strict=True)]


def test_texts_with_other_tags_have_nothing_in_common():
    tagged = shingles_of(["a b c", "a b c", "a b c"], 2, np.array([0, 1, 0]))
    assert jaccard(tagged, np.array([0, 0]), np.array([1, 2])).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("similarity", [0.3, 0.5, 0.8, 0.95])
def test_signatures_agree_as_often_as_sets_are_alike(similarity):
    draw, size, agreeing = np.random.default_rng(0), 150, []
    for _ in range(200):
        shared = round(2 * size * similarity / (1 + similarity))
        numbers = draw.integers(0, 2**32, 2 * size - shared, dtype=np.uint32)
        pair = Shingles(np.r_[numbers[:size], numbers[-size:]], np.array([0, size, 2 * size]))
        agreeing.append(np.mean(np.equal(*signatures(pair).T)))
    assert np.mean(agreeing) == pytest.approx(similarity, abs=0.015)
    assert np.std(agreeing) == pytest.approx((similarity * (1 - similarity) / HASHES) ** 0.5, rel=0.25)


def test_bands_find_what_is_as_alike_as_the_threshold_and_are_as_wide_as_that_allows():
    for threshold in (0.3, 0.5, 0.7, 0.8, 0.9):
        width = band_width(threshold)
        assert recall(threshold, width) >= LEAST_RECALL > recall(threshold, width + 1)


def test_normal_forms_are_the_same_from_several_processes_and_for_any_program():
    hostile = ["", "def", "x = '\ud800'", "(" * 500, "-" * 3000 + "1", "\0", "eval('x')"]
    programs = [(source, ()) for source in hostile] + [(f"a = {n}\nprint(a)", ("a",)) for n in range(2100)]
    assert normal_forms([*programs, programs[0]]) == [normalise_program(*each) for each in [*programs, programs[0]]]
