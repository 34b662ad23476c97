"""vLLM beside the embedded engine: the same tokens from the same weights, before and after an update, with an adapter too."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from cobalt_data.adapters import save_adapter
from cobalt_data.engines import Sampling, choose_engine, open_engine
from cobalt_data.engines.transformers import TransformersEngine
from cobalt_data.errors import EngineError, InputError
from cobalt_data.models import load_model, load_skeleton, load_tokenizer, resolve_model
from cobalt_train.config import TrainConfig
from cobalt_train.lora import adapt
from cobalt_train.ranks import whole_weights

pytestmark = pytest.mark.vllm

SQUARE = [{"role": "user", "content": "Write a Python program that reads an integer n and prints n squared."}]
CAPITAL = [{"role": "user", "content": "What is the capital of France?"}]
GREEDY = Sampling(temperature=0, top_p=1, max_tokens=16)
WARM = Sampling(temperature=0.7, top_p=1, max_tokens=16)
CONTEXT = 256
SETTINGS = {"dtype": "float32", "memory_share": 0.02, "max_model_len": CONTEXT}
LORA = TrainConfig(lora_rank=3, lora_alpha=6)


@pytest.fixture(scope="module")
def embedded():
    return TransformersEngine.load("smollm2-135m", dtype="float32")


@pytest.fixture(scope="module")
def engine():
    from cobalt_data.engines.vllm import VllmEngine

    engine = VllmEngine.load("smollm2-135m", **SETTINGS, trains=True)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def adapting():
    """An engine that will be handed an adapter."""
    from cobalt_data.engines.vllm import VllmEngine

    resolved = resolve_model("smollm2-135m")
    with torch.device("meta"):
        skeleton = adapt(load_skeleton(resolved), LORA, resolved.path)
    engine = VllmEngine(resolved, **SETTINGS, trains=True, adapted=skeleton)
    yield engine
    engine.close()


@pytest.fixture
def adapted():
    """The embedded engine with an adapter beside its weights that changes what it says."""
    resolved = resolve_model("smollm2-135m")
    model = adapt(load_model(resolved, "float32"), LORA, resolved.path)
    move(model, 0)
    return TransformersEngine(model, load_tokenizer(resolved), name=resolved.name, revision=resolved.revision)


def move(model, seed):
    torch.manual_seed(seed)
    with torch.no_grad():
        for _, weight in whole_weights(model):
            weight += 0.05 * torch.randn_like(weight)


@pytest.fixture
def moved(engine, embedded):
    """The weights of the embedded model moved and handed to vLLM, and both put back in the end."""
    kept = {name: weight.clone() for name, weight in embedded.module.state_dict().items()}
    torch.manual_seed(0)
    embedded.update_weights((name, weight + 0.02 * torch.randn_like(weight)) for name, weight in kept.items())
    embedded.module.tie_weights()
    engine.update_weights(embedded.module.state_dict().items())
    yield kept
    embedded.update_weights(kept.items())
    engine.update_weights(kept.items())


def greedy_tokens(engine):
    groups = engine.complete([SQUARE, CAPITAL], [[1], [2]], GREEDY)
    return [(completion.token_ids, completion.text, completion.finish_reason) for (completion,) in groups]


def logprobs_of_the_model(embedded, prompt, completion):
    with torch.inference_mode():
        logits = embedded.module(torch.tensor([[*prompt, *completion.token_ids]])).logits[0, len(prompt) - 1 : -1]
    every = torch.log_softmax(logits / WARM.temperature, -1)
    return every.gather(-1, torch.tensor(completion.token_ids)[:, None])[:, 0]


def assert_logprobs_are_those_of_the_model(engine, embedded):
    ((*samples,),) = engine.complete([SQUARE], [[1, 2, 3]], WARM)
    for sample in samples:
        expected = logprobs_of_the_model(embedded, engine.render(SQUARE), sample)
        torch.testing.assert_close(torch.tensor(sample.logprobs), expected, rtol=0, atol=2e-3)


def test_vllm_is_the_default_where_it_is_installed():
    assert choose_engine("auto") == "vllm"


def test_the_process_around_it_is_left_as_it_was(engine):
    assert "LD_PRELOAD" not in os.environ  # what programs being judged would load
    assert torch.set_num_threads.__name__ == "set_num_threads"


def test_greedy_completions_are_those_of_the_embedded_engine(engine, embedded):
    assert greedy_tokens(engine) == greedy_tokens(embedded)
    ends = [reason for _, _, reason in greedy_tokens(engine)]
    assert ends == ["length", "stop"]


def test_logprobs_are_of_the_distribution_that_was_drawn_from(engine, embedded):
    assert_logprobs_are_those_of_the_model(engine, embedded)
    ((greedy,),) = engine.complete([SQUARE], [[1]], GREEDY)
    assert set(greedy.logprobs) == {0.0} and len(greedy.logprobs) == len(greedy.token_ids) == 16


def test_every_sample_draws_from_its_own_seed(engine):
    ((first, second, again),) = engine.complete([SQUARE], [[1, 2, 1]], WARM)
    assert first.token_ids == again.token_ids != second.token_ids


def test_calls_from_several_threads_get_their_own_completions(engine):
    chats = [[{"role": "user", "content": f"Count to {number}."}] for number in range(6)]
    expected = [engine.complete([chat], [[1, 2]], GREEDY) for chat in chats]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda chat: engine.complete([chat], [[1, 2]], GREEDY), chats)) == expected


def test_a_prompt_beyond_the_context_is_told_with_both_lengths(engine):
    assert engine.context == CONTEXT
    with pytest.raises(InputError, match=r"prompt 0 has 241 tokens and max_tokens is 16.*256 tokens"):
        engine.complete_tokens([[3] * 241], [[1]], GREEDY)
    assert engine.complete_tokens([[3] * 240], [[1]], GREEDY)


def test_after_an_update_tokens_and_logprobs_are_those_of_the_new_weights(engine, embedded, request):
    before = greedy_tokens(engine)
    request.getfixturevalue("moved")
    after = greedy_tokens(engine)
    assert after != before
    assert after == greedy_tokens(embedded)
    assert_logprobs_are_those_of_the_model(engine, embedded)


def test_a_share_that_is_none_is_refused():
    with pytest.raises(InputError, match=r"memory_share is 1\.5"):
        open_engine("vllm", "smollm2-135m", memory_share=1.5)


def test_an_adapter_is_handed_over_alone_and_takes_the_place_of_the_one_before(adapting, adapted, embedded):
    with pytest.raises(EngineError, match="has no weights, or not all of them"):
        adapting.complete([SQUARE], [[1]], GREEDY)
    said = [greedy_tokens(embedded)]
    for seed in (1, 2):
        move(adapted.module, seed)
        adapting.update_weights(whole_weights(adapted.module))
        said.append(greedy_tokens(adapting))
        assert said[-1] == greedy_tokens(adapted)
        assert_logprobs_are_those_of_the_model(adapting, adapted)
    assert said[0] != said[1] != said[2]


def test_half_an_adapter_and_other_weights_are_refused(adapting, adapted, embedded):
    state = list(whole_weights(adapted.module))
    for handed, said in (
        (state[1:], "1 weights were not handed over"),
        (embedded.module.state_dict().items(), "no weight"),
    ):
        with pytest.raises(InputError, match=said):
            adapting.update_weights(handed)
        with pytest.raises(EngineError, match="not all of them"):
            adapting.complete([SQUARE], [[1]], GREEDY)


def test_a_saved_adapter_is_served_with_its_base(adapted, tmp_path):
    model = adapted.module
    save_adapter(model, dict(whole_weights(model)), tmp_path)
    model.config.save_pretrained(tmp_path)
    adapted.tokenizer.save_pretrained(tmp_path)
    engine = open_engine("vllm", str(tmp_path), dtype="float32", memory_share=0.02)
    assert greedy_tokens(engine) == greedy_tokens(adapted)
    engine.close()


# The last one: what vLLM keeps for all engines of a process, the tables of rotations, is lost with half an update.
def test_after_half_an_update_the_engine_draws_nothing(engine, embedded):
    state = list(embedded.module.state_dict().items())
    with pytest.raises(InputError, match="weights were not handed over"):
        engine.update_weights(state[:20])
    with pytest.raises(EngineError, match="not all of them"):
        engine.complete([SQUARE], [[1]], GREEDY)
