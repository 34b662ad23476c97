import math

import pytest
import torch

from cobalt_data.errors import InputError
from cobalt_train.objectives import KL_TERMS, OBJECTIVES, Clip, clipped, importance_weights, reduce, row_weights

N, T, MAX_TOKENS = 6, 5, 8
CLIP = Clip()


def rows(seed: int = 0):
    """Log-probabilities of N completions of 1 to T tokens, with nonsense off the mask."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor([5, 1, 3, 5, 2, 4])
    mask = torch.arange(T) < lengths[:, None]
    old = -torch.rand(N, T, generator=generator, dtype=torch.float64) * 3
    new = old + torch.randn(N, T, generator=generator, dtype=torch.float64) * 0.6
    new, old = new.masked_fill(~mask, float("nan")), old.masked_fill(~mask, float("inf"))
    advantages = torch.tensor([1.0, -1.0, 0.5, -2.0, 0.0, 1.5], dtype=torch.float64)
    return new, old, advantages, mask


def reference_token_loss(name: str, ratio: float, logprob: float, advantage: float) -> float:
    """The published formulas, spelled out for one token in Python floats (64 bits)."""
    if name == "cispo":
        return -min(ratio, 1.4) * advantage * logprob
    surrogate = min(ratio * advantage, min(max(ratio, 0.8), 1.4) * advantage)
    return -max(surrogate, 3 * advantage) if advantage < 0 else -surrogate


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_loss_matches_a_float64_reference(name):
    new, old, advantages, mask = rows()
    lengths = mask.sum(1)
    loss = reduce(
        OBJECTIVES[name](new, old, advantages, mask, CLIP), mask, row_weights(name, lengths, MAX_TOKENS)
    ).item()

    expected = 0.0
    for row in range(N):
        length = int(lengths[row])
        log_ratios = [(new[row, t] - old[row, t]).item() for t in range(length)]
        ratios = [math.exp(r) for r in log_ratios]
        if name == "gspo":
            ratios = [math.exp(sum(log_ratios) / length)] * length
        losses = [
            reference_token_loss(name, ratios[t], new[row, t].item(), advantages[row].item()) for t in range(length)
        ]
        if name in ("grpo", "gspo"):
            expected += sum(losses) / length / N
        elif name == "dr_grpo":
            expected += sum(losses) / (N * MAX_TOKENS)
        else:
            expected += sum(losses) / int(lengths.sum())
    assert loss == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("split", [[6], [1] * 6, [2, 4], [5, 1]])
def test_loss_and_gradient_depend_neither_on_micro_batches_nor_on_order(name, split):
    new, old, advantages, mask = rows()
    weights = row_weights(name, mask.sum(1), MAX_TOKENS)

    def gradient(batches):
        leaf = new.nan_to_num().requires_grad_()
        total = 0.0
        for batch in batches:
            losses = OBJECTIVES[name](leaf[batch], old[batch], advantages[batch], mask[batch], CLIP)
            loss = reduce(losses, mask[batch], weights[batch])
            loss.backward()
            total += loss.item()
        return total, leaf.grad

    whole_loss, whole = gradient([torch.arange(N)])
    loss, parts = gradient(torch.arange(N).flip(0).split(split))
    assert loss == pytest.approx(whole_loss, rel=1e-12)
    torch.testing.assert_close(parts, whole, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_at_ratio_one_the_gradient_is_that_of_reinforce(name):
    _, old, advantages, mask = rows()
    old = old.masked_fill(~mask, 0)
    leaf = old.clone().requires_grad_()
    weights = row_weights(name, mask.sum(1), MAX_TOKENS)
    reduce(OBJECTIVES[name](leaf, old, advantages, mask, CLIP), mask, weights).backward()
    torch.testing.assert_close(leaf.grad, -(weights * advantages)[:, None] * mask)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "moves"),
    [
        (1.3, 1.0, -1.3, True),
        (1.5, 1.0, -1.4, False),
        (0.5, 1.0, -0.5, True),
        (0.9, -1.0, 0.9, True),
        (0.7, -1.0, 0.8, False),
        (2.9, -1.0, 2.9, True),
        (5.0, -1.0, 3.0, False),
    ],
)
def test_clip_bounds_on_both_sides_and_the_dual_clip(ratio, advantage, loss, moves):
    logprob = torch.tensor([[math.log(ratio)]], dtype=torch.float64, requires_grad=True)
    zeros, mask = torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.bool)
    value = OBJECTIVES["grpo"](logprob, zeros, torch.tensor([advantage]), mask, CLIP)
    value.sum().backward()
    assert value.item() == pytest.approx(loss)
    assert bool(logprob.grad.abs().item() > 0) == moves


def test_without_dual_clip_a_negative_advantage_is_not_bounded():
    logprob, mask = torch.tensor([[math.log(5.0)]]), torch.ones(1, 1, dtype=torch.bool)
    value = OBJECTIVES["grpo"](logprob, torch.zeros(1, 1), torch.tensor([-1.0]), mask, Clip(dual=None))
    assert value.item() == pytest.approx(5.0)


def test_clipped_marks_only_tokens_that_were_pushed_out_of_the_trust_region():
    ratio = torch.tensor([[1.5, 0.5], [1.5, 0.5], [1.5, 0.5]])
    mask = torch.tensor([[True, True], [True, True], [False, True]])
    marks = clipped("dapo", ratio.log(), torch.zeros(3, 2), torch.tensor([1.0, -1.0, -1.0]), mask, CLIP)
    assert marks.tolist() == [[True, False], [False, True], [False, True]]


@pytest.mark.parametrize(
    ("objective", "marks"),
    [("grpo", [True, False, False]), ("gspo", [False, False, False]), ("cispo", [True, False, True])],
)
def test_clipped_goes_by_the_ratio_that_the_objective_clips(objective, marks):
    ratios = torch.tensor([[1.5, 0.8], [0.5, 1.0], [1.5, 0.4]])
    advantages, mask = torch.tensor([1.0, 1.0, -1.0]), torch.tensor([[True, True], [True, True], [True, False]])
    found = clipped(objective, ratios.log(), torch.zeros(3, 2), advantages, mask, CLIP)
    assert found.any(1).tolist() == marks


def test_gspo_does_not_shrink_with_the_length_of_a_completion():
    for length in (1, 10, 1000):
        old, mask = torch.zeros(1, length), torch.ones(1, length, dtype=torch.bool)
        losses = OBJECTIVES["gspo"](old - 0.01, old, torch.ones(1), mask, CLIP)
        assert losses.mean().item() == pytest.approx(-math.exp(-0.01))


def test_kl_terms_match_their_definitions_and_vanish_at_the_reference():
    new, reference = torch.tensor([-1.0, -2.0]), torch.tensor([-1.5, -2.0])
    assert KL_TERMS["k1"](new, reference).tolist() == pytest.approx([0.5, 0])
    assert KL_TERMS["k2"](new, reference).tolist() == pytest.approx([0.125, 0])
    assert KL_TERMS["k3"](new, reference).tolist() == pytest.approx([math.exp(-0.5) - 1 + 0.5, 0])


def test_the_expected_gradient_of_k2_is_the_gradient_of_the_divergence():
    logits = torch.tensor([0.3, -0.2, 0.9], dtype=torch.float64, requires_grad=True)
    reference = torch.tensor([0.1, 0.4, -0.5], dtype=torch.float64).log_softmax(-1)
    logprobs = logits.log_softmax(-1)
    (exact,) = torch.autograd.grad((logprobs.exp() * (logprobs - reference)).sum(), logits, retain_graph=True)
    (by_k2,) = torch.autograd.grad((logprobs.exp().detach() * KL_TERMS["k2"](logprobs, reference)).sum(), logits)
    torch.testing.assert_close(by_k2, exact)


def test_importance_weights_are_per_token_capped_and_without_gradient():
    trainer = torch.tensor([[-1.0, -1.0, -3.0]], requires_grad=True)
    weights = importance_weights(trainer, torch.tensor([[-1.0, -4.0, -2.0]]), cap=2.0)
    assert weights[0].tolist() == pytest.approx([1.0, 2.0, math.exp(-1)])
    assert not weights.requires_grad


@pytest.mark.parametrize("fields", [{"low": 0}, {"low": 1.5}, {"high": -0.1}, {"high": float("nan")}, {"dual": 1.0}])
def test_a_clip_range_without_meaning_is_refused(fields):
    with pytest.raises(InputError, match="clip_"):
        Clip(**fields)
