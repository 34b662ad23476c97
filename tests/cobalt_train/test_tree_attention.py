import pytest
import torch

from cobalt_data.engines import prefixes
from cobalt_train import tree_attention
from cobalt_train.packing import Segment, pack
from cobalt_train.tree_attention import TreeAttention

FOREST = (  # two trees in one row: a prompt with a nested prompt and three leaves, and a single root
    Segment(0, 5, 17),
    Segment(5, 8, 14),
    Segment(8, 10, 10),
    Segment(10, 14, 14),
    Segment(14, 17, 17),
    Segment(17, 20, 20),
)
LENGTH = 20


def visible(segments, length):
    """The mask that the forest stands for, from its definition."""
    mask = torch.zeros(length, length, dtype=torch.bool)
    for segment in segments:
        mask[segment.start : segment.subtree_end, segment.start : segment.end] = True
    return mask & torch.ones(length, length, dtype=torch.bool).tril()


@pytest.mark.parametrize("short", [0, 4, tree_attention.SHORT])
@pytest.mark.parametrize("kv_heads", [1, 2, 6])
def test_a_forest_equals_attention_under_its_explicit_mask(kv_heads, short, monkeypatch):
    monkeypatch.setattr(tree_attention, "SHORT", short)
    generator = torch.Generator().manual_seed(0)

    def random(heads):
        return torch.randn(1, heads, LENGTH, 8, dtype=torch.float64, generator=generator, requires_grad=True)

    query, key, value = random(6), random(kv_heads), random(kv_heads)
    out, _ = TreeAttention.apply(query, key, value, FOREST, 0.3)
    expected = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=visible(FOREST, LENGTH), scale=0.3, enable_gqa=True
    )
    torch.testing.assert_close(out, expected)
    upstream = torch.randn(out.shape, dtype=torch.float64, generator=generator)
    ours = torch.autograd.grad(out, [query, key, value], upstream)
    theirs = torch.autograd.grad(expected, [query, key, value], upstream)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("most", [1, 100, 1 << 26])
def test_the_portable_blocks_equal_the_cpu_kernel(monkeypatch, most):
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(1, 4, LENGTH, 8, generator=generator, dtype=torch.float64, requires_grad=True)
    key = torch.randn(1, 2, LENGTH, 8, generator=generator, dtype=torch.float64, requires_grad=True)

    def run():
        out, _ = TreeAttention.apply(query, key, key, FOREST, 0.3)
        return out, *torch.autograd.grad(out.square().sum(), [query, key])

    monkeypatch.setattr(tree_attention, "SHORT", 0)
    by_kernel = run()
    monkeypatch.setattr("cobalt_train.tree_attention._has_kernel", lambda _: False)
    monkeypatch.setattr(tree_attention, "BLOCK_SCORES", most)
    torch.testing.assert_close(run(), by_kernel)


def test_a_packed_group_holds_the_prompt_once_and_restarts_positions():
    packed = pack([([7, 8, 9], [[1, 2], [3], [4, 5, 6]])])
    assert packed.token_ids.tolist() == [[7, 8, 9, 1, 2, 3, 4, 5, 6]]
    assert packed.positions.tolist() == [[0, 1, 2, 3, 4, 3, 3, 4, 5]]
    assert packed.segments == (Segment(0, 3, 9), Segment(3, 5, 5), Segment(5, 6, 6), Segment(6, 9, 9))
    assert packed.scored_by.tolist() == [2, 3, 2, 2, 6, 7]


def test_a_nested_prompt_continues_the_one_that_it_begins_with(monkeypatch):
    monkeypatch.setattr(prefixes, "SHORTEST_SHARED", 2)
    packed = pack([([7, 8, 9], [[1, 2]]), ([7, 8, 9, 1, 5], [[3, 4], [6]])])
    assert packed.token_ids.tolist() == [[7, 8, 9, 1, 2, 9, 1, 5, 3, 4, 6]]
    assert packed.positions.tolist() == [[0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 5]]
    assert packed.segments[:2] == (Segment(0, 2, 11), Segment(2, 3, 5))
    assert packed.scored_by.tolist() == [2, 3, 7, 8, 7]


def test_leaves_are_padded_to_less_than_twice_their_length_and_batches_are_bounded(monkeypatch):
    monkeypatch.setattr(tree_attention, "BATCH_SCORES", 5_000)
    lengths = [512, 40, 33, 32, 20, 19, 8, 3, 1, 1]
    ends = [sum(lengths[: place + 1]) for place in range(len(lengths))]
    leaves = tuple(Segment(end - length, end, end) for end, length in zip(ends, lengths, strict=True))
    batches = tree_attention._leaf_batches(leaves, torch.device("cpu"))
    taken = [batch._taken for batch in batches]
    assert [rows.sum(1).tolist() for rows in taken] == [[512], [40, 33, 32], [20, 19], [8], [3], [1, 1]]
    assert all(rows.numel() * rows.shape[1] <= 5_000 or len(rows) == 1 for rows in taken)
    covered = torch.cat([batch._own for batch in batches])
    assert covered.sort().values.tolist() == list(range(ends[-1]))
