"""Drawing tokens against definitions worked out in float64, one row at a time."""

import math

import pytest
import torch

from cobalt_data.engines.sampling import NUCLEUS_GUESS, draw, uniforms
from cobalt_data.errors import EngineError


def nucleus(logits, temperature, top_p):
    """Token -> probability, by the definition: the most probable tokens, until their mass reaches top_p."""
    probabilities = torch.softmax(logits.double() / temperature, -1).tolist()
    kept, mass = {}, 0.0
    for token in sorted(range(len(probabilities)), key=lambda token: -probabilities[token]):
        if mass >= top_p:
            break
        kept[token] = probabilities[token]
        mass += probabilities[token]
    return {token: probability / mass for token, probability in kept.items()}


@pytest.mark.parametrize(("spread", "top_p"), [(3.0, 0.9), (3.0, 1.0), (0.1, 0.95), (8.0, 0.5)])
def test_draws_have_the_probabilities_of_the_definition(spread, top_p):
    logits = torch.randn(1, 300, generator=torch.Generator().manual_seed(0)) * spread
    expected = nucleus(logits[0], 0.7, top_p)
    count = 20_000
    grid = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    tokens, logprobs = draw(logits.expand(count, -1), grid, 0.7, top_p)
    assert set(tokens.tolist()) <= set(expected)
    for token, probability in expected.items():
        drawn = tokens == token
        assert drawn.sum().item() / count == pytest.approx(probability, abs=2 / count)
        assert torch.allclose(logprobs[drawn].double(), torch.tensor(math.log(probability)).double(), atol=1e-5)


def test_a_nucleus_wider_than_the_guess_is_exact_too():
    logits = torch.zeros(2, 4 * NUCLEUS_GUESS)
    logits[0, 0] = 50.0  # this row's nucleus is one token, the other's are nearly all
    tokens, logprobs = draw(logits, torch.tensor([0.999, 0.999], dtype=torch.float64), 1.0, 0.9)
    assert tokens[0] == 0 and logprobs[0] == 0
    assert logprobs[1] == pytest.approx(-math.log(4 * NUCLEUS_GUESS))  # all tie, so all are kept


def test_the_extreme_uniforms_draw_possible_tokens():
    logits = torch.tensor([[-math.inf, 1.0, -math.inf, 2.0, -math.inf]])
    for uniform, token in ((0.0, 1), (1 - 2**-53, 3)):
        drawn, logprob = draw(logits, torch.tensor([uniform], dtype=torch.float64), 1.0, 1.0)
        assert drawn.item() == token and math.isfinite(logprob.item())


def test_temperature_zero_takes_the_most_probable_token_for_sure():
    tokens, logprobs = draw(torch.tensor([[1.0, 3.0, 2.0]]), torch.tensor([0.9], dtype=torch.float64), 0, 0.1)
    assert tokens.tolist() == [1] and logprobs.tolist() == [0]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_not_finite_are_an_error_of_the_engine(temperature):
    with pytest.raises(EngineError, match="not finite"):
        draw(torch.full((1, 4), math.nan), torch.tensor([0.5], dtype=torch.float64), temperature, 1.0)


def test_a_seed_has_its_own_numbers_whoever_else_draws():
    alone = uniforms([2**62 + 3], 8)
    assert torch.equal(uniforms([1, 2**62 + 3], 8)[1:], alone) and not torch.equal(uniforms([1], 8), alone)
