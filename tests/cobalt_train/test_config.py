from dataclasses import asdict
from pathlib import Path

import pytest

from cobalt_data.errors import InputError
from cobalt_train.config import FREE_ON_RESUME, PRESETS, TrainConfig, load_config, parse_settings


def test_the_paper_preset_is_the_recipe_of_the_paper():
    config = load_config(preset="paper")
    assert (config.prompts_per_step, config.group_size, config.optimizer_steps) == (128, 16, 2)
    assert (config.clip_low, config.clip_high, config.clip_dual) == (0.2, 0.4, 3.0)
    assert (config.kl, config.kl_coefficient, config.learning_rate) == ("k2", 1e-4, 1e-6)
    assert (config.objective, config.advantage, config.temperature) == ("dapo", "group_std", 1.0)


def test_the_modern_preset_has_no_reference_model_and_a_baseline_without_division():
    config = load_config(preset="modern")
    assert (config.clip_low, config.clip_high, config.kl_coefficient) == (0.2, 0.28, 0.0)
    assert (config.objective, config.advantage, config.importance_cap) == ("dapo", "mean", 2.0)


def test_an_algorithm_brings_the_reward_and_advantage_that_it_is_defined_with(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('preset = "cpu-small"\nalgo = "grpo-mt"\n')
    assert load_config(file).reward == "binary"
    assert load_config(file, reward="paper").reward == "paper"
    assert load_config(file, algo="verpo").advantage == "mean"


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_valid(name):
    assert isinstance(load_config(preset=name), TrainConfig)


def test_flags_override_the_file_and_the_file_its_preset(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('preset = "cpu-small"\nlearning_rate = 3e-6\ngroup_size = 6\nkl_coefficient = 0\n')
    config = load_config(file, group_size=4)
    assert (config.learning_rate, config.group_size, config.max_tokens, config.seed) == (3e-6, 4, 96, 0)
    assert isinstance(config.kl_coefficient, float)


def test_none_is_a_word_for_what_may_be_left_out(tmp_path):
    (file := tmp_path / "run.toml").write_text('clip_dual = "none"')
    assert load_config(file).clip_dual is None
    engine = load_config(preset="modern", **parse_settings(["importance_cap=none", "old_logprobs=engine"]))
    assert (engine.importance_cap, engine.old_logprobs) == (None, "engine")
    with pytest.raises(InputError, match="seed is 'none': give a value of type int"):
        parse_settings(["seed=none"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learning_rte = 1e-6", "'learning_rte' is no setting"),
        ('learning_rate = "fast"', "learning_rate is 'fast': give a value of type float"),
        ("group_size = true", "group_size is True: give a value of type int"),
        ("group_size = 8.0", "group_size is 8.0: give a value of type int"),
        ("group_size = ", "is not valid TOML"),
        ('preset = "papre"', "preset 'papre' is unknown"),
        ('preset = ["paper"]', r"preset \['paper'\] is unknown"),
        ("weight_decay = 1" + "0" * 400, "weight_decay has 401 digits"),
        ("weight_decay = 1" + "0" * 5000, "is not valid TOML"),
        ("[optimizer]\nlr = 1", "'optimizer' is no setting"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path, text, message):
    file = tmp_path / "run.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        load_config(file)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.toml: cannot be read"):
        load_config(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algo": "ppo"}, "algo is 'ppo': use one of cobalt, grpo-mt, verpo"),
        ({"algo": "grpo-mt", "turns": 0}, "turns is 0: give at least 1"),
        ({"algo": "grpo-mt", "outcome": "last"}, "outcome is 'last': use one of final, best"),
        ({"algo": "verpo"}, "verpo has its own, leave both out"),
        ({"verpo_sigma": 0.0}, "verpo_sigma is 0.0"),
        ({"top_p": 0.9}, "top_p is 0.9: training needs 1.0"),
        ({"temperature": 0.0}, "temperature is 0"),
        ({"temperature": 9.0}, "^temperature is 9.0: give a number in"),
        ({"group_size": 1}, "group_size is 1: give at least 2"),
        ({"steps": 0}, "steps is 0"),
        ({"seed": 2**64}, f"seed is {2**64}: give an integer in"),
        ({"seed": -1}, "seed is -1: give an integer in"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"kl_coefficient": float("nan")}, "kl_coefficient is nan"),
        ({"kl_coefficient": float("inf")}, "kl_coefficient is inf"),
        ({"weight_decay": float("inf")}, "weight_decay is inf"),
        ({"clip_low": 2.0}, "clip_low is 2.0"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"prompts_per_step": 2, "optimizer_steps": 3}, "every update needs a prompt"),
        ({"importance_cap": 2.0, "old_logprobs": "engine"}, "importance_cap needs"),
        ({"reward": "mine"}, "reward is 'mine': use one of paper, pass_rate, binary, or a function"),
        ({"reward": "mine.py:"}, "reward is 'mine.py:'"),
        ({"objective": "ppo"}, "objective is 'ppo'"),
    ],
)
def test_settings_without_meaning_are_refused_by_name(settings, message):
    with pytest.raises(InputError, match=message):
        TrainConfig(**settings)


def test_the_manual_names_every_setting():
    manual = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    assert not [name for name in asdict(TrainConfig()) if f"`{name}`" not in manual]


def test_what_a_resumed_run_may_change_are_settings():
    assert set(asdict(TrainConfig())) >= FREE_ON_RESUME
