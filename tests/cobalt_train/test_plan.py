"""The plan of a run: what it would take, and what it refuses just as the run would."""

import shutil
from dataclasses import replace

import pytest
import toy
from transformers import CohereConfig, DeepseekV3Config, Gemma2Config, GraniteConfig, MistralConfig, Qwen3NextConfig

from cobalt_data import engines
from cobalt_data.dataset import open_version
from cobalt_data.errors import EngineError, InputError
from cobalt_data.models import ResolvedModel
from cobalt_train.packing import split_rows
from cobalt_train.plan import passes_of_a_group, plan
from cobalt_train.skeleton import fitting_skeleton
from cobalt_train.trainer import Trainer

CONFIG = replace(toy.CONFIG, steps=2)


def test_the_plan_counts_tokens_with_and_without_a_shared_prompt(toy_model, toy_version):
    expected = plan(CONFIG, open_version(toy_version.dataset), toy_model)
    assert (expected.steps, expected.groups_per_step, expected.completions_per_step) == (2, 3, 24)
    assert expected.plain_tokens - expected.forward_tokens == 7 * expected.prompt_tokens > 0
    assert expected.weight_bytes == expected.parameters * (16 + 4)
    assert (expected.engine, expected.epochs, expected.trained_parameters) == (
        engines.choose_engine("auto"),
        2.0,
        expected.parameters,
    )


@pytest.mark.parametrize(
    ("prompt", "row", "limit"), [(10, 6, 16), (6, 3, 16), (6, 3, 54), (6, 3, 53), (20, 1, 16), (5, 2, 9)]
)
def test_a_group_takes_as_many_passes_as_the_plan_says(prompt, row, limit):
    split = split_rows([([1] * prompt, [[2] * row] * 16)], limit, shared_prefix=True)
    assert len(split) == passes_of_a_group(prompt, 16 * row, 16, limit)


def test_the_plan_counts_a_prompt_once_for_every_pass(toy_model, toy_version):
    expected = plan(replace(CONFIG, micro_batch_tokens=1), toy_version, toy_model)
    assert expected.forward_tokens == expected.plain_tokens


def test_the_plan_of_more_prompts_than_there_are_is_that_of_all(toy_model, toy_version):
    config = replace(CONFIG, steps=None, epochs=2, prompts_per_step=128, optimizer_steps=5)
    expected = plan(config, toy_version, toy_model)
    assert (expected.steps, expected.epochs, expected.groups_per_step, expected.updates_per_step) == (2, 2.0, 3, 3)


def test_the_plan_refuses_what_the_run_would(toy_model, toy_version, tmp_path):
    with pytest.raises(InputError, match="no prompts in the split validation"):
        plan(replace(CONFIG, eval_every=1), toy_version, toy_model)
    shutil.copytree(toy_model, tmp_path / "broken")
    (tmp_path / "broken" / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"model '.*broken' cannot be read"):
        plan(CONFIG, toy_version, str(tmp_path / "broken"))


def refusals(config, version, model, output, pool):
    """What the plan and the run say, who both have to refuse."""
    for attempt in (lambda: plan(config, version, model), lambda: Trainer(config, version, model, output, pool=pool)):
        with pytest.raises((InputError, EngineError)) as refused:
            attempt()
        yield str(refused.value)
    assert not output.exists()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"engine": "vllm", "lora_rank": 2, "sleep_level": 2}, "sleep_level 2 drops the weights beside an adapter"),
        ({"engine": "transformers", "sleep_level": 1}, "leave out engine_memory_share and sleep_level"),
        ({"lora_rank": 2, "lora_targets": "nowhere"}, "has no module 'nowhere'"),
        ({"max_tokens": 64}, "but the model's context has 64 tokens"),
    ],
)
def test_settings_that_the_run_refuses_are_refused_in_the_same_words(
    settings, said, toy_version, toy_model, tmp_path, pool
):
    planned, ran = refusals(replace(CONFIG, **settings), toy_version, toy_model, tmp_path / "run", pool)
    assert planned == ran and said in planned


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (lambda given: Qwen3NextConfig(**given), "has layers (linear_attention)"),
        (
            lambda given: Gemma2Config(**given, layer_types=["full_attention"] * 2, final_logit_softcapping=None),
            "attention with softcap",
        ),
        (
            lambda given: DeepseekV3Config(
                **given, q_lora_rank=8, kv_lora_rank=8, n_routed_experts=4, n_group=1, topk_group=1, v_head_dim=4
            ),
            "attention with values of another width than its keys",
        ),
        (lambda given: GraniteConfig(**given, logits_scaling=8.0), "changes its logits (logits_scaling = 8.0)"),
        (lambda given: CohereConfig(**given), "changes its logits (logit_scale = 0.0625)"),
    ],
)
def test_layers_that_the_run_refuses_are_refused_in_the_same_words_before_anything_is_written(
    shape, said, toy_version, toy_model, tiny_shape, tmp_path, pool
):
    shutil.copytree(toy_model, tmp_path / "model")
    shape({**tiny_shape, "max_position_embeddings": 64}).save_pretrained(tmp_path / "model")
    planned, ran = refusals(CONFIG, toy_version, str(tmp_path / "model"), tmp_path / "run", pool)
    assert planned == ran and said in planned


def test_a_window_that_slides_within_what_vllm_may_draw_is_refused(tiny_shape, tmp_path):
    MistralConfig(**tiny_shape, sliding_window=34).save_pretrained(tmp_path / "model")
    resolved = ResolvedModel("windowed", tmp_path / "model", "0")
    fitting_skeleton(replace(CONFIG, engine="transformers"), resolved)  # which draws no further than the window
    with pytest.raises(InputError, match="model windowed has layers of type sliding_attention"):
        fitting_skeleton(replace(CONFIG, engine="vllm"), resolved)


def test_what_does_not_work_in_several_processes_is_refused_by_the_plan_too(toy_model, toy_version, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="engine vllm does not share a run of several processes yet"):
        plan(replace(CONFIG, engine="vllm"), toy_version, toy_model)
