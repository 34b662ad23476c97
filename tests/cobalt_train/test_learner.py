"""One update is the same whatever the order and the cut of its rows, and with nested prompts computed once."""

import copy
from dataclasses import replace

import pytest
import torch
from toy import CONFIG

from cobalt_data.engines import prefixes
from cobalt_train.batch import Batch
from cobalt_train.learner import Learner

CONFIG = replace(CONFIG, max_tokens=8, learning_rate=1e-3, kl_coefficient=0.05)
FIRST = (5, 3, 90, 14, 15, 92, 6)
SECOND = (*FIRST, 35, 89, 7, 41)


@pytest.fixture
def updated(tiny_llama, monkeypatch):
    """The gradient norm and the weights after one update on some batches."""
    monkeypatch.setattr(prefixes, "SHORTEST_SHARED", 4)

    def update(batches, **settings):
        model, reference = copy.deepcopy(tiny_llama), copy.deepcopy(tiny_llama)
        with torch.no_grad():
            reference.get_input_embeddings().weight.mul_(1.1)
        learner = Learner(model, reference, "toy", 64, replace(CONFIG, **settings))
        figures = unchecked(learner).learn(batches)
        return torch.tensor([*figures.grad_norms, figures.loss, figures.kl_sum]), model.state_dict()

    return update


def unchecked(learner):
    learner._checked = True  # the completions are made up: no engine drew them
    return learner


def batch(name, prompt, *completions):
    generator = torch.Generator().manual_seed(len(prompt))
    return Batch(
        name,
        prompt,
        completions,
        torch.linspace(-1, 1, len(completions)),
        -torch.rand(len(completions), max(map(len, completions)), generator=generator),
    )


BATCHES = [
    batch("first", FIRST, (5, 35, 89, 7), (9,), (3, 2, 38)),
    batch("other", (11, 12), (13, 14), (15,)),
    batch("second", SECOND, (60, 61), (62, 63, 64, 65)),
]


@pytest.mark.parametrize(
    "settings",
    [
        {"shared_prefix": False},
        {"micro_batch_tokens": 1},
        {"micro_batch_tokens": 16},
        {"gradient_checkpointing": True},
        {"shared_prefix": False, "micro_batch_tokens": 30, "gradient_checkpointing": True},
    ],
    ids=str,
)
def test_an_update_does_not_depend_on_how_it_is_computed(updated, settings):
    assert_close(updated(BATCHES, **settings), updated(BATCHES))


def test_an_update_does_not_depend_on_the_order_of_prompts(updated):
    assert_close(updated(BATCHES[::-1], micro_batch_tokens=20), updated(BATCHES, micro_batch_tokens=20))


def test_the_denominators_of_an_update_are_those_of_its_own_rows(updated):
    still = {"learning_rate": 1e-12}
    both = updated(BATCHES, optimizer_steps=2, **still)[0][:2]
    apart = [updated(part, **still)[0][0] for part in (BATCHES[:1], BATCHES[1:])]
    torch.testing.assert_close(both, torch.stack(apart), rtol=1e-5, atol=1e-6)


def test_tokens_whose_weight_is_cut_off_are_counted(tiny_llama):
    config = replace(CONFIG, kl_coefficient=0.0, importance_cap=2.0)
    learner = unchecked(Learner(tiny_llama, None, "toy", 64, config))
    unlikely = [replace(part, engine_logprobs=torch.full_like(part.engine_logprobs, -50)) for part in BATCHES[:1]]
    figures = learner.learn(
        [*unlikely, *(replace(part, engine_logprobs=0 * part.engine_logprobs) for part in BATCHES[1:])]
    )
    assert figures.capped_tokens == sum(map(len, BATCHES[0].completions)) < figures.tokens


def assert_close(ours, theirs):
    torch.testing.assert_close(ours[0], theirs[0], rtol=1e-5, atol=1e-6)
    for name, weight in ours[1].items():
        torch.testing.assert_close(weight, theirs[1][name], rtol=1e-4, atol=1e-5)
