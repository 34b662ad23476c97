"""The embedded engine against transformers itself, on the embedded model."""

import pytest

from cobalt_data.engines import Sampling, open_engine

CHATS = [
    [{"role": "user", "content": "What is the capital of France?"}],
    [{"role": "user", "content": "Write a Python program that reads an integer n and prints n squared."}],
]


@pytest.fixture(scope="module")
def engine():
    return open_engine("transformers", "smollm2-135m")


def test_a_call_repeats_exactly(engine):
    sampling = Sampling(temperature=0.6, top_p=0.95, max_tokens=12)
    first = engine.complete(CHATS, [[1, 2], [3]], sampling)
    assert first == engine.complete(CHATS, [[1, 2], [3]], sampling)
    assert [len(group) for group in first] == [2, 1]
    assert first[0][0].token_ids != first[0][1].token_ids
