"""An adapter is trained beside weights that stay as they are; what is saved loads as a plain model and as peft's."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from toy import CONFIG
from transformers import AutoModelForCausalLM

from cobalt_data.errors import InputError
from cobalt_data.models import load_model, resolve_model
from cobalt_train.lora import adapt
from cobalt_train.plan import plan
from cobalt_train.scoring import Scorer
from cobalt_train.trainer import Trainer

CONFIG = replace(CONFIG, steps=3, lora_rank=4, learning_rate=2e-2, gradient_checkpointing=True)
PROMPT = [3, 4, 6]


@pytest.fixture
def trainer(toy_model, toy_version, pool, tmp_path):
    def make(name="run", resume=False, model=toy_model, **settings):
        return Trainer(replace(CONFIG, **settings), toy_version, model, tmp_path / name, pool=pool, resume=resume)

    return make


def test_the_adapter_alone_is_trained_and_the_engine_samples_with_it(trainer, toy_model):
    run = trainer()
    result = run.run()
    base = AutoModelForCausalLM.from_pretrained(toy_model).state_dict()
    for module in (run.learner.model, run.engine.module):
        for name, weight in module.state_dict().items():
            if "lora_" not in name:
                torch.testing.assert_close(weight, base[name.replace(".base_layer", "")], rtol=0, atol=0)
    ((drawn,),) = run.engine.complete_tokens([PROMPT], [[0]], CONFIG.sampling())
    scores = [
        Scorer(model).score([(PROMPT, [drawn.token_ids])], shared_prefix=False).logprobs[0].detach()
        for model in (
            load_model(resolve_model(str(result.checkpoint)), "float32"),
            PeftModel.from_pretrained(
                load_model(resolve_model(toy_model), "float32"), result.checkpoint
            ).get_base_model(),
            AutoModelForCausalLM.from_pretrained(toy_model),
        )
    ]
    for ours in scores[:2]:
        torch.testing.assert_close(ours, torch.tensor(drawn.logprobs), rtol=1e-4, atol=1e-4)
    assert not torch.allclose(scores[2], torch.tensor(drawn.logprobs), atol=1e-3)


def test_an_adapter_that_is_not_the_runs_is_called_damaged(trainer):
    file = trainer(steps=1).run().checkpoint / "adapter_model.safetensors"
    weights = load_file(file)
    save_file(dict(list(weights.items())[1:]), file)
    with pytest.raises(InputError, match=r"checkpoint-000001 is damaged \(1 weights are missing or not the adapter's"):
        trainer(steps=2, resume=True)


def test_the_record_of_an_adapter_is_the_same_in_every_process(trainer):
    record = json.loads((trainer(steps=1).run().checkpoint / "adapter_config.json").read_text())
    assert record["target_modules"] == sorted(record["target_modules"])


def test_a_resumed_adapter_is_that_of_an_uninterrupted_run(trainer):
    whole = trainer("whole").run()
    trainer("parts", steps=1).run()
    parts = trainer("parts", resume=True).run()
    weights = [(run.checkpoint / "adapter_model.safetensors").read_bytes() for run in (whole, parts)]
    assert weights[0] == weights[1]


def test_a_new_adapter_changes_nothing_and_is_the_same_for_the_same_seed(tiny_llama):
    before = Scorer(tiny_llama).score([(PROMPT, [[1, 2]])]).logprobs
    adapt(tiny_llama, CONFIG, Path("base"))
    torch.testing.assert_close(Scorer(tiny_llama).score([(PROMPT, [[1, 2]])]).logprobs, before)
    assert {name.split(".lora_")[0].split(".")[-1] for name, w in tiny_llama.named_parameters() if w.requires_grad} == {
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "gate_proj",
        "up_proj",
        "down_proj",
    }


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ("nowhere", "the model has no module 'nowhere'; all-linear takes all"),
        ("", "the model has no module ''; all-linear"),
        ("q_proj,", "the model has no module ''; all-linear"),
        ("q_proj,mlp", "'mlp' is a LlamaMLP, not a linear layer; all-linear takes all"),
        ("norm", "'norm' is a LlamaRMSNorm, not a linear layer"),
        ("lm_head", "'lm_head' holds the tokens' embeddings, which adapters leave alone"),
        ("q_proj,embed_tokens", "'embed_tokens' holds the tokens' embeddings"),
    ],
)
def test_targets_that_cannot_be_adapted_are_named(tiny_llama, targets, said):
    with pytest.raises(InputError, match=f"^lora_targets is '{targets}': {said}"):
        adapt(tiny_llama, replace(CONFIG, lora_targets=targets), Path("base"))
    with pytest.raises(InputError, match="lora_targets is 'q_proj, nowhere': the model has no module 'nowhere'"):
        adapt(tiny_llama, replace(CONFIG, lora_targets="q_proj, nowhere"), Path("base"))


def test_targets_may_stand_apart(tiny_llama):
    adapt(tiny_llama, replace(CONFIG, lora_targets="q_proj, v_proj"), Path("base"))
    trained = {name.split(".lora_")[0] for name, weight in tiny_llama.named_parameters() if weight.requires_grad}
    assert {name.rpartition(".")[2] for name in trained} == {"q_proj", "v_proj"}


def test_an_adapter_of_an_adapted_model_loads_with_both(trainer):
    first = trainer("first", steps=1).run()
    second = trainer("second", steps=1, model=str(first.checkpoint))
    saved = load_model(resolve_model(str(second.run().checkpoint)), "float32")
    ((drawn,),) = second.engine.complete_tokens([PROMPT], [[0]], CONFIG.sampling())
    scored = Scorer(saved).score([(PROMPT, [drawn.token_ids])], shared_prefix=False).logprobs[0].detach()
    torch.testing.assert_close(scored, torch.tensor(drawn.logprobs), rtol=1e-4, atol=1e-4)


def test_the_plan_knows_that_the_adapter_alone_has_gradients_and_moments(trainer, toy_version, toy_model):
    expected = plan(replace(CONFIG, kl_coefficient=1e-3), toy_version, toy_model)
    weights = trainer().learner.model.parameters()
    assert expected.trained_parameters == sum(weight.numel() for weight in weights if weight.requires_grad)
    base = expected.parameters - expected.trained_parameters
    assert expected.weight_bytes == 4 * (3 * base + 5 * expected.trained_parameters)
