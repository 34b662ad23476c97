"""The names under which weights are handed to vLLM; it would take a part of them for the whole."""

import pytest
import torch
from safetensors import safe_open
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

from cobalt_data.engines.vllm_weights import CheckpointNames
from cobalt_data.errors import InputError

TINY = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 50}


def named(config, state):
    return {name: weight.clone() for name, weight in CheckpointNames(config).of(state.items(), torch.float32)}


def tiny_llama(**settings):
    return LlamaForCausalLM(LlamaConfig(**TINY, **settings))


def test_tied_weights_are_handed_over_once():
    model = tiny_llama(tie_word_embeddings=True)
    assert "lm_head.weight" in model.state_dict()
    given = named(model.config, model.state_dict())
    assert sorted(given) == sorted(name for name, _ in model.named_parameters())
    assert torch.equal(given["model.embed_tokens.weight"], model.lm_head.weight)
    free = tiny_llama(tie_word_embeddings=False)
    assert "lm_head.weight" in named(free.config, free.state_dict())


def test_weights_have_the_names_and_values_of_a_saved_checkpoint(tmp_path):
    experts = {"num_experts": 3, "num_experts_per_tok": 1, "moe_intermediate_size": 8, "head_dim": 8}
    model = Qwen3MoeForCausalLM(Qwen3MoeConfig(**TINY, **experts))
    model.save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        saved = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
    given = named(model.config, model.state_dict())
    assert given.keys() == saved.keys() and any("experts.2" in name for name in given)
    assert all(torch.equal(given[name], saved[name]) for name in saved)


def test_weights_come_in_the_type_of_the_engine():
    model = tiny_llama()
    given = dict(CheckpointNames(model.config).of(model.state_dict().items(), torch.bfloat16))
    assert {weight.dtype for weight in given.values()} == {torch.bfloat16}


def test_weights_that_are_unknown_or_missing_are_refused():
    model = tiny_llama()
    state = model.state_dict()
    with pytest.raises(InputError, match="no weight 'nose'"):
        named(model.config, state | {"nose": torch.zeros(1)})
    del state["model.norm.weight"]
    with pytest.raises(InputError, match=r"1 weights were not handed over, such as model\.norm\.weight"):
        named(model.config, state)
