"""The tree of common prefixes: complete, independent of order, and sharing what is worth it."""

import random

from hypothesis import given
from hypothesis import strategies as st

from cobalt_data.engines.prefixes import SHORTEST_SHARED, prefix_forest

few_tokens = st.lists(st.integers(0, 1), min_size=1, max_size=6)


def paths(nodes, before=()):
    """(prompt, its indices) of every leaf."""
    for node in nodes:
        if node.children:
            assert not node.prompts and len(node.tokens) >= SHORTEST_SHARED
            yield from paths(node.children, before + node.tokens)
        else:
            assert node.tokens
            yield before + node.tokens, node.prompts


def computed_tokens(nodes):
    return sum(len(node.tokens) + computed_tokens(node.children) for node in nodes)


@given(st.lists(st.tuples(few_tokens, st.booleans(), few_tokens), max_size=12), st.randoms())
def test_every_prompt_is_the_path_to_its_leaf_whatever_the_order(parts, chance):
    prompts = [head + [7] * SHORTEST_SHARED * shares + tail for head, shares, tail in parts]
    found = {index: prompt for prompt, indices in paths(prefix_forest(prompts)) for index in indices}
    assert found == {index: tuple(prompt) for index, prompt in enumerate(prompts)}
    shuffled = chance.sample(prompts, len(prompts))
    assert [path for path, _ in paths(prefix_forest(shuffled))] == [path for path, _ in paths(prefix_forest(prompts))]


def test_a_system_message_and_a_statement_are_computed_once():
    chance = random.Random(0)
    system, *statements = (tuple(chance.choices(range(100), k=200)) for _ in range(4))
    tails = [tuple(chance.choices(range(100), k=50)) for _ in range(12)]
    prompts = [system + statements[index % 3] + tail for index, tail in enumerate(tails)]
    assert computed_tokens(prefix_forest(prompts)) <= 200 + 3 * 200 + 12 * 50


def test_a_prompt_that_begins_another_keeps_its_last_token():
    short = list(range(100))
    (root,) = prefix_forest([short, [*short, 100]])
    assert [leaf.tokens for leaf in root.children] == [(99,), (99, 100)]


def test_short_common_parts_are_not_split_off():
    assert all(not node.children for node in prefix_forest([[1, 2, 3], [1, 2, 4]]))


def test_equal_prompts_share_a_leaf():
    (leaf,) = prefix_forest([[1, 2], [1, 2]])
    assert leaf.prompts == (0, 1)


def test_turns_of_a_trajectory_share_behind_the_end_of_the_first():
    first = tuple(range(100))
    second = (*first, *range(200, 250))
    third = (*second, *range(300, 310))
    (root,) = prefix_forest([first, second, third])
    assert root.tokens == first[:-1]
    ending, going_on = root.children
    assert ending.tokens == first[-1:] and ending.prompts == (0,)
    assert going_on.tokens == (*first[-1:], *second[len(first) : -1])
    assert [child.prompts for child in going_on.children] == [(1,), (2,)]
