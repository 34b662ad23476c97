"""Decoding with shared prefixes and slots against transformers, on small random models in float32."""

import random
from functools import partial

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

from cobalt_data.engines import decoding
from cobalt_data.engines import laid_out as laid_out_module
from cobalt_data.engines.base import Sampling
from cobalt_data.engines.decoding import decode
from cobalt_data.engines.laid_out import laid_out
from cobalt_data.engines.memory import Memory
from cobalt_data.engines.token_engine import best_dtype

SHAPE = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "initializer_range": 0.3,  # far from uniform, so that greedy choices have no near ties
}
GREEDY = Sampling(temperature=0, top_p=1, max_tokens=20)
WARM = Sampling(temperature=0.7, top_p=1, max_tokens=20)


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def model(request):
    torch.manual_seed(0)
    if request.param == "llama":
        return LlamaForCausalLM(LlamaConfig(**SHAPE)).eval()
    return Qwen3ForCausalLM(Qwen3Config(**SHAPE)).eval()


@pytest.fixture(scope="module")
def prompts():
    """Ten prompts: two families with long common beginnings, two strangers, one twice, one the beginning of another."""
    chance = random.Random(1)
    text = [chance.choices(range(3, 97), k=200) for _ in range(4)]
    family = [text[0][:70] + text[1][start : start + 9] for start in (0, 20, 40)]
    nested = [text[0][:70] + text[2][:50] + tail for tail in ([5], [6, 7], [6, 7, 8, 9])]
    return [*family, *nested, text[3][:40], text[2][:3], family[0], text[0][:70]]


def continuation(model, prompt, count):
    rows = model.generate(
        torch.tensor([prompt]), max_new_tokens=count, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    return rows[0, len(prompt) :].tolist()


def plain_logprobs(model, prompt, tokens, temperature):
    with torch.inference_mode():
        logits = model(torch.tensor([[*prompt, *tokens]])).logits[0, len(prompt) - 1 : -1].double()
    return torch.log_softmax(logits / temperature, -1).gather(-1, torch.tensor(tokens)[:, None])[:, 0]


@pytest.mark.parametrize("slots", [1, 3, 64])
def test_greedy_completions_are_those_of_generate(model, prompts, slots):
    seeds = [[1, 2], [3], [4], [5], [6, 7, 8], [9], [1], [2], [3], []]
    for prompt, samples in zip(prompts, decode(model, prompts, [*seeds], GREEDY, (), slots), strict=True):
        expected = continuation(model, prompt, GREEDY.max_tokens)
        assert all(sample.tokens == expected for sample in samples)


@pytest.mark.parametrize("slots", [2, 64])
def test_sampled_logprobs_are_those_of_a_plain_forward_pass(model, prompts, slots):
    seeds = [[10 * index, 10 * index + 1] for index in range(len(prompts))]
    for prompt, samples in zip(prompts, decode(model, prompts, seeds, WARM, (), slots), strict=True):
        for sample in samples:
            expected = plain_logprobs(model, prompt, sample.tokens, WARM.temperature)
            assert torch.allclose(torch.tensor(sample.logprobs).double(), expected, atol=1e-4)


def test_a_sample_depends_on_its_prompt_and_seed_alone(model, prompts):
    seeds = [[10 * index, 10 * index + 1] for index in range(len(prompts))]
    together = decode(model, prompts, seeds, WARM, ())
    for index, prompt in enumerate(prompts):
        for place, seed in enumerate(seeds[index]):
            ((alone,),) = decode(model, [prompt], [[seed]], WARM, ())
            assert alone.tokens == together[index][place].tokens
            assert alone.logprobs == pytest.approx(together[index][place].logprobs, abs=1e-4)
    backwards = decode(model, prompts[::-1], seeds[::-1], WARM, ())[::-1]
    assert [[s.tokens for s in group] for group in backwards] == [[s.tokens for s in group] for group in together]


def test_a_call_repeats_exactly_after_other_calls(model, prompts):
    seeds = [[index, index + 100] for index in range(len(prompts))]
    first = decode(model, prompts, seeds, WARM, (), 5)
    decode(model, prompts[3:], seeds[3:], GREEDY, ())
    assert decode(model, prompts, seeds, WARM, (), 5) == first


def test_seeds_differ_and_equal_seeds_agree(model, prompts):
    ((a, b, again),) = decode(model, prompts[:1], [[1, 2, 1]], WARM, ())
    assert a.tokens == again.tokens != b.tokens


def test_any_stop_token_ends_a_completion_and_stays_in_it(model, prompts):
    free = decode(model, prompts, [[7]] * len(prompts), GREEDY, ())
    stops = {free[0][0].tokens[4], free[6][0].tokens[0]}
    for (sample,), (unstopped,) in zip(
        decode(model, prompts, [[7]] * len(prompts), GREEDY, stops, 3), free, strict=True
    ):
        ends = [place for place, token in enumerate(unstopped.tokens) if token in stops]
        assert sample.tokens == unstopped.tokens[: ends[0] + 1 if ends else None]


def test_one_token_can_be_all(model, prompts):
    sampling = Sampling(temperature=1, top_p=1, max_tokens=1)
    assert all(len(s.tokens) == 1 for (s,) in decode(model, prompts, [[1]] * len(prompts), sampling, ()))


def test_the_model_keeps_its_own_attention_and_mode(model, prompts):
    model.train()
    before = model.config._attn_implementation
    decode(model, prompts[:1], [[1]], Sampling(max_tokens=2), ())
    assert model.config._attn_implementation == before != "cobalt_cascade" and model.training
    model.eval()


@pytest.mark.skipif(best_dtype("cpu") != "bfloat16", reason="this processor does not compute in bfloat16")
@pytest.mark.parametrize("rows", [(3, 1), (1, 700)])
def test_weights_that_are_laid_out_for_a_call_give_the_same_numbers_to_the_bit(rows):
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(48, 97), torch.nn.Linear(97, 64, bias=False)).bfloat16()
    given = torch.randn(*rows, 48).bfloat16()
    with torch.inference_mode():
        expected = layers(given)
        with laid_out(layers):
            assert torch.equal(layers(given), expected)
            assert all("forward" in vars(layer) for layer in layers)
    assert not any("forward" in vars(layer) for layer in layers)


@pytest.mark.skipif(best_dtype("cpu") != "bfloat16", reason="this processor does not compute in bfloat16")
def test_where_weights_cannot_all_be_laid_out_none_are(monkeypatch):
    layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)).bfloat16()
    partials = [partial]
    monkeypatch.setattr(laid_out_module, "partial", lambda *given, **named: partials.pop()(*given, **named))
    with pytest.raises(IndexError), laid_out(layers):
        pass
    assert not any("forward" in vars(layer) for layer in layers)


def test_layers_that_cannot_be_laid_out_stay_as_they_are(model):
    with laid_out(model):
        assert not any("forward" in vars(layer) for layer in model.modules())


def test_no_prompts_are_no_work(model):
    assert decode(model, [], [], GREEDY, ()) == []


def going_on(prompts, drawn):
    """The next prompts of conversations: what was said, and some words behind it."""
    return [
        [*prompt, *sample.tokens, 5 + index % 7, 11, 12 + place]
        for index, (prompt, samples) in enumerate(zip(prompts, drawn, strict=True))
        for place, sample in enumerate(samples)
    ]


def computed_tokens(monkeypatch):
    """How many tokens of prompts are computed from now on, call by call of the model."""
    counts, prefill = [], decoding._Call.prefill

    def counting(self, tokens, behind):
        counts.append(sum(map(len, tokens)))
        return prefill(self, tokens, behind)

    monkeypatch.setattr(decoding._Call, "prefill", counting)
    return counts


@pytest.mark.parametrize("slots", [3, 64])
def test_what_is_remembered_of_a_conversation_is_not_computed_again_and_changes_nothing(
    model, prompts, slots, monkeypatch
):
    memory, turn = Memory(), prompts
    for samples in (2, 1, 1):
        seeds = [[10 * index + sample for sample in range(samples)] for index in range(len(turn))]
        fresh = decode(model, turn, seeds, WARM, (), slots)
        counts = computed_tokens(monkeypatch)
        remembered = decode(model, turn, seeds, WARM, (), slots, memory)
        monkeypatch.undo()
        for group, expected in zip(remembered, fresh, strict=True):
            for sample, other in zip(group, expected, strict=True):
                assert sample.tokens == other.tokens
                assert sample.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        if samples == 1:
            assert sum(counts) == 4 * len(turn)  # the last token drawn, and what was said to it
        turn = going_on(turn, fresh)


def test_a_memory_without_room_computes_everything_again(model, prompts, monkeypatch):
    memory, seeds = Memory(most_bytes=20_000), [[index] for index in range(len(prompts))]
    turn = going_on(prompts, decode(model, prompts, seeds, GREEDY, (), 64, memory))
    counts = computed_tokens(monkeypatch)
    again = decode(model, turn, seeds, GREEDY, (), 64, memory)
    assert sum(counts) > 4 * len(turn)
    assert [s.tokens for (s,) in again] == [s.tokens for (s,) in decode(model, turn, seeds, GREEDY, ())]


def test_a_conversation_that_was_changed_is_recalled_up_to_the_change(model, prompts, monkeypatch):
    memory = Memory()
    ((sample,),) = decode(model, prompts[:1], [[1]], GREEDY, (), 64, memory)
    changed = [*prompts[0], *sample.tokens[:10], 96, 95, 94]
    counts = computed_tokens(monkeypatch)
    ((second,),) = decode(model, [changed], [[1]], GREEDY, (), 64, memory)
    assert counts == [3] and second.tokens == continuation(model, changed, GREEDY.max_tokens)


def test_many_samples_attend_to_their_prompt_together(model, prompts):
    (samples,) = decode(model, prompts[:1], [range(20)], WARM, (), 16)
    for sample in samples:
        expected = plain_logprobs(model, prompts[0], sample.tokens, WARM.temperature)
        assert torch.allclose(torch.tensor(sample.logprobs).double(), expected, atol=1e-4)
