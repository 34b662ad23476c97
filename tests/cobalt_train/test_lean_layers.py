import torch
from torch import nn
from transformers import Gemma2Config, Gemma2ForCausalLM
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from cobalt_train.lean_layers import _RmsNorm, make_lean


def output_and_gradients(model, rows):
    model.zero_grad()
    rows = rows.clone().requires_grad_(True)
    out = model(rows)
    (out * torch.linspace(-1, 1, out.numel()).view(out.shape)).sum().backward()
    return out.detach(), rows.grad, model.weight.grad


def test_a_lean_norm_is_the_models_own():
    torch.manual_seed(0)
    norm = LlamaRMSNorm(16, eps=1e-5)
    nn.init.normal_(norm.weight)
    rows = torch.randn(3, 5, 16) * torch.tensor([1e-4, 1.0, 1e4]).view(3, 1, 1)
    expected = output_and_gradients(norm, rows)
    make_lean(norm)
    assert "forward" in vars(norm)
    torch.testing.assert_close(output_and_gradients(norm, rows), expected)


def test_the_gradient_of_a_lean_norm_is_that_of_finite_differences():
    torch.manual_seed(0)
    rows, weight = torch.randn(2, 3, 8, dtype=torch.float64), torch.randn(8, dtype=torch.float64)
    assert torch.autograd.gradcheck(_RmsNorm.apply, (rows.requires_grad_(), weight.requires_grad_(), 1e-5))


def test_a_norm_that_computes_something_else_stays_as_it_is():
    class Doubled(LlamaRMSNorm):
        def forward(self, hidden_states):
            return 2 * super().forward(hidden_states)

    norm = Doubled(16)
    make_lean(norm)
    assert "forward" not in vars(norm)


def test_a_model_whose_norms_have_an_offset_computes_what_it_did(tiny_shape):
    torch.manual_seed(0)
    model = Gemma2ForCausalLM(Gemma2Config(**tiny_shape)).eval()
    tokens = torch.arange(20)[None]
    expected = model(tokens).logits
    make_lean(model)
    torch.testing.assert_close(model(tokens).logits, expected)


def test_a_model_computes_what_it_did_and_rotates_in_autocasts_type(tiny_llama):
    tokens = torch.arange(20)[None]
    expected = tiny_llama(tokens).logits
    make_lean(tiny_llama)
    torch.testing.assert_close(tiny_llama(tokens).logits, expected)
    rotary = tiny_llama.model.rotary_emb
    given = torch.zeros(1, 20, 32), tokens
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert {table.dtype for table in rotary(*given)} == {torch.bfloat16}
    assert {table.dtype for table in rotary(*given)} == {torch.float32}
