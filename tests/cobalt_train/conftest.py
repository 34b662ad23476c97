import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM


@pytest.fixture
def tiny_shape():
    """The shape of a model that computes in milliseconds, as fields of a transformers config."""
    return {
        "vocab_size": 97,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
    }


@pytest.fixture
def tiny_llama(tiny_shape):
    """A random Llama with grouped heads and tied weights, in float32."""
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**tiny_shape, tie_word_embeddings=True)).eval()
