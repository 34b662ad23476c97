import pytest
import torch

from cobalt_train import logprobs
from cobalt_train.logprobs import chosen_logprobs


def inputs(dtype=torch.float32, positions=13, width=8, vocabulary=31):
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(positions, width, generator=generator).to(dtype).requires_grad_()
    head = torch.randn(vocabulary, width, generator=generator).to(dtype).requires_grad_()
    return hidden, head, torch.randint(vocabulary, (positions,), generator=generator)


@pytest.fixture(params=[1, 5 * 31, 1 << 24], ids=["one position a block", "five", "all"])
def block(request, monkeypatch):
    monkeypatch.setattr(logprobs, "BLOCK_ELEMENTS", request.param)


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_values_and_gradients_equal_those_of_log_softmax(temperature):
    hidden, head, targets = inputs(torch.float64)
    chosen, entropy = chosen_logprobs(hidden, head, targets, temperature)
    table = (hidden @ head.T / temperature).log_softmax(-1)
    expected = table.gather(-1, targets[:, None]).squeeze(-1)
    torch.testing.assert_close(chosen, expected)
    torch.testing.assert_close(entropy, -(table.exp() * table).sum(-1))

    upstream = torch.linspace(-1, 1, len(targets), dtype=torch.float64)
    ours = torch.autograd.grad(chosen @ upstream, [hidden, head])
    theirs = torch.autograd.grad(expected @ upstream, [hidden, head])
    torch.testing.assert_close(ours, theirs)


def test_the_gradient_passes_a_numerical_check():
    hidden, head, targets = inputs(torch.float64, positions=4, width=3, vocabulary=6)
    assert torch.autograd.gradcheck(lambda h, w: chosen_logprobs(h, w, targets, 0.7)[0], (hidden, head))


def test_autocast_and_narrow_inputs_leave_the_logprobs_in_float32():
    hidden, head, targets = inputs(torch.bfloat16, width=64, vocabulary=500)
    exact = (hidden.float() @ head.float().T).log_softmax(-1).gather(-1, targets[:, None]).squeeze(-1)
    with torch.autocast("cpu", torch.bfloat16):
        chosen, _ = chosen_logprobs(hidden, head, targets)
    assert chosen.dtype == torch.float32
    torch.testing.assert_close(chosen, exact, rtol=1e-5, atol=1e-5)
    chosen.sum().backward()
    assert hidden.grad.dtype == torch.bfloat16 and hidden.grad.isfinite().all()


def test_huge_logits_stay_finite():
    hidden, head, targets = inputs()
    chosen, entropy = chosen_logprobs(hidden * 1e4, head, targets)
    assert chosen.isfinite().all() and entropy.isfinite().all() and (entropy >= -1e-2).all()
