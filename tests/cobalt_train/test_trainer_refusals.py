"""What a run refuses, each with one line; and that what was there before stays."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import toy

from cobalt_data.errors import CobaltError, InputError
from cobalt_data.models import checkpoint_directory
from cobalt_train.plan import plan
from cobalt_train.trainer import Trainer

CONFIG = replace(toy.CONFIG, steps=2)


@pytest.fixture
def trainer(toy_model, toy_version, pool, tmp_path):
    def make(version=toy_version, model=toy_model, pool=pool, resume=False, output=tmp_path / "run", **settings):
        return Trainer(replace(CONFIG, **settings), version, model, output, pool=pool, resume=resume)

    return make


def test_a_dataset_without_prompts_is_sent_to_cut(trainer, make_version, tmp_path):
    with pytest.raises(InputError, match="has no prompts: make them with `cobalt data cut` first"):
        trainer(version=make_version(prompts=False))
    assert not (tmp_path / "run").exists()


def test_a_dataset_without_training_split_is_sent_to_split(trainer, make_version):
    with pytest.raises(InputError, match="no prompts in the split train: run `cobalt data split`"):
        trainer(version=make_version(split="test"))


def test_a_prompt_without_tests_is_named(trainer, make_version):
    version = make_version(tests=False)
    first = next(version.rows("prompts"))["prompt_id"]
    with pytest.raises(InputError, match=f"prompt {first} has no tests"):
        trainer(version=version)


def test_prompts_beyond_the_limit_are_left_out_and_counted(trainer, toy_model, make_version):
    version = make_version(statements=["print one", "print two two two two"])
    expected = plan(replace(CONFIG, max_prompt_tokens=6), version, toy_model)
    assert (expected.prompts, expected.prompts_too_long) == (1, 1)
    result = trainer(version=version, max_prompt_tokens=6, steps=1).run()
    assert (result.prompts, result.prompts_too_long) == (1, 1)


def test_it_is_an_error_if_no_prompt_is_short_enough(trainer):
    with pytest.raises(InputError, match=r"all 3 prompts of .* are longer than 2 tokens: raise max_prompt_tokens"):
        trainer(max_prompt_tokens=2)


def test_completions_must_leave_room_for_a_prompt(trainer):
    with pytest.raises(InputError, match="max_tokens is 64, but the model's context has 64 tokens"):
        trainer(max_tokens=64)


def test_an_unknown_model_is_named(trainer):
    with pytest.raises(InputError, match="model 'no-such-model' is unknown"):
        trainer(model="no-such-model")


def test_a_directory_with_other_things_in_it_is_left_alone(trainer, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match="is not empty and holds no run"):
        trainer()
    with pytest.raises(InputError, match="holds no run to resume: begin one without --resume"):
        trainer(resume=True)
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["thesis.txt"]


def test_a_run_is_not_started_over_but_resumed(trainer):
    trainer(steps=1).run()
    with pytest.raises(InputError, match="holds a run already: resume it"):
        trainer()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"learning_rate": 2e-2}, "was trained with learning_rate = 0.01, not 0.02"),
        ({"seed": 1}, "was trained with seed = 0, not 1"),
        ({"group_size": 4}, "was trained with group_size = 8, not 4"),
    ],
)
def test_a_changed_setting_that_matters_is_refused_by_name(trainer, changed, message):
    trainer(steps=1).run()
    with pytest.raises(InputError, match=message):
        trainer(resume=True, **changed)


def test_another_dataset_or_model_is_refused_by_name(trainer, make_version, toy_model, tmp_path):
    trainer(steps=1).run()
    with pytest.raises(InputError, match="was trained with dataset version"):
        trainer(resume=True, version=make_version(statements=["print one"]))
    with pytest.raises(InputError, match="was trained with model revision"):
        trainer(resume=True, model=str(checkpoint_directory(tmp_path / "run")))


def test_a_finished_run_has_nothing_to_do_and_can_be_prolonged(trainer):
    first = trainer(steps=1).run()
    before = first.metrics.read_bytes()
    again = trainer(steps=1, resume=True).run()
    assert (again.checkpoint, again.steps, again.metrics.read_bytes()) == (first.checkpoint, 1, before)
    assert trainer(steps=2, resume=True).run().steps == 2


@pytest.mark.parametrize(("value", "returned"), [("float('nan')", "nan"), ("[1, 2]", r"list '\[1, 2\]'")])
def test_a_reward_that_is_not_one_number_stops_the_run_with_the_row_and_state_intact(
    trainer, tmp_path, value, returned
):
    rewards = tmp_path / "rewards.py"
    rewards.write_text("def own(given):\n    return given.pass_rate")
    whole = trainer(steps=1, reward=f"{rewards}:own").run()
    before = whole.metrics.read_text()
    rewards.write_text(f"def own(given):\n    return {value}")
    with pytest.raises(
        InputError, match=rf"of completion 0 of prompt [0-9a-f]{{16}}: it returned {returned}; a reward is one finite"
    ):
        trainer(resume=True, reward=f"{rewards}:own").run()
    assert (whole.metrics.read_text(), checkpoint_directory(tmp_path / "run")) == (before, whole.checkpoint)


def test_a_reward_that_is_nowhere_is_refused_before_anything_is_written(trainer, tmp_path):
    with pytest.raises(InputError, match=r"missing\.py is no file"):
        trainer(reward=f"{tmp_path}/missing.py:own")
    assert not (tmp_path / "run").exists()


def test_a_gradient_that_is_not_finite_stops_the_run_with_its_prompts_and_spares_the_weights(trainer, toy_version):
    run = trainer()
    before = [parameter.detach().clone() for parameter in run.learner.model.parameters()]
    next(run.learner.model.parameters()).register_hook(lambda gradient: gradient * float("nan"))
    with pytest.raises(CobaltError, match="gradient of update 1 is not finite") as stopped:
        run.run()
    known = {row["prompt_id"] for row in toy_version.rows("prompts")}
    assert set(str(stopped.value).partition("prompts: ")[2].split(", ")) <= known
    assert all(map(torch.equal, before, run.learner.model.parameters()))


def test_an_engine_with_other_weights_than_the_trainer_stops_the_run_at_its_first_step(trainer, tmp_path):
    run = trainer()
    run.engine.update_weights((name, weight * 8) for name, weight in run.learner.model.state_dict().items())
    with pytest.raises(CobaltError, match="trainer and engine disagree"):
        run.run()
    assert not list((tmp_path / "run").glob("checkpoint-*"))


def test_a_full_disk_at_a_checkpoint_is_one_line_and_leaves_the_earlier_one(trainer, tmp_path):
    first = trainer(steps=1).run().checkpoint
    again = trainer(resume=True)
    with toy.no_file_longer_than(30_000), pytest.raises(CobaltError, match="checkpoint cannot be written") as stopped:
        again.run()
    assert "\n" not in str(stopped.value)
    assert [path.name for path in sorted((tmp_path / "run").glob("*checkpoint-*"))] == [first.name]
    assert trainer(resume=True).run().checkpoint.name == "checkpoint-000002"


def test_what_is_only_called_like_a_checkpoint_is_neither_taken_for_one_nor_removed(trainer, tmp_path):
    trainer(steps=1).run()
    strangers = [tmp_path / "run" / f"checkpoint-{name}" for name in ("old", "abc", "12", "000000-mine")]
    for stranger in strangers:
        stranger.mkdir()
    (tmp_path / "run" / "checkpoint-best").write_text("a note")
    last = trainer(steps=3, keep_last=1, resume=True).run().checkpoint
    assert (last.name, checkpoint_directory(tmp_path / "run")) == ("checkpoint-000003", last)
    kept = {*strangers, tmp_path / "run" / "checkpoint-best", last}
    assert set((tmp_path / "run").glob("checkpoint-*")) == kept


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir])
def test_what_lies_where_a_checkpoint_is_due_is_named_at_once(trainer, tmp_path, make):
    trainer(steps=1).run()
    make(tmp_path / "run" / "checkpoint-000009")
    with pytest.raises(InputError, match=r"checkpoint-000009 is no checkpoint, though .*: move it elsewhere, then res"):
        trainer(resume=True)


@pytest.mark.parametrize("content", [b"", b"torn", b"PK\x03\x04 torn"])
def test_a_damaged_optimizer_is_one_line_that_says_what_to_remove(trainer, content):
    last = trainer().run().checkpoint
    (last / "optimizer.pt").write_bytes(content)
    with pytest.raises(InputError, match=r"checkpoint-000002 is damaged .*: remove it to resume") as refused:
        trainer(steps=3, resume=True)
    assert "\n" not in str(refused.value)
    shutil.rmtree(last)
    assert trainer(steps=3, resume=True).run().steps == 3


def test_a_machine_that_does_not_give_a_checkpoint_says_nothing_against_it(trainer, monkeypatch):
    trainer(steps=1).run()

    def refuse(*_, **__):
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(torch, "load", refuse)
    with pytest.raises(CobaltError, match=r"cannot be read \(out of memory\), which may be whole") as refused:
        trainer(steps=2, resume=True)
    assert not isinstance(refused.value, InputError)


def test_a_disk_that_is_full_at_the_very_beginning_leaves_room_for_the_same_command(trainer, tmp_path):
    with toy.no_file_longer_than(100), pytest.raises(InputError, match="run: cannot be written"):
        trainer(steps=1)
    (tmp_path / "run" / ".run.json").write_text("{")  # what a killed process leaves
    assert trainer(steps=1).run().steps == 1


@pytest.mark.parametrize("lora_rank", [0, 2])
def test_damaged_weights_are_one_line_that_says_what_to_remove(trainer, lora_rank):
    last = trainer(lora_rank=lora_rank, steps=1).run().checkpoint
    (weights,) = last.glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"checkpoint-000001 is damaged .*: remove it to resume"):
        trainer(lora_rank=lora_rank, resume=True)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("run.json", "[]", r"run\.json is damaged .it lacks dataset, model_revision, config"),
        ("run.json", "7", r"run\.json is damaged .*: remove .*run, what it held"),
        ("checkpoint-000001/cobalt.json", "{}", r"cobalt\.json is damaged .it lacks step"),
        (
            "checkpoint-000001/cobalt.json",
            '{"step": "1", "updates": 1, "cursor": 3, "best_step": 0, "best_score": null}',
            "checkpoint-000001 is damaged .step is '1'",
        ),
    ],
)
def test_records_of_another_form_are_one_line(trainer, tmp_path, file, content, message):
    trainer(steps=1).run()
    (tmp_path / "run" / file).write_text(content)
    with pytest.raises(InputError, match=message):
        trainer(steps=2, resume=True)


def test_what_keeps_old_checkpoints_from_being_removed_is_one_line(trainer, tmp_path, make_version):
    (whole := tmp_path / "run").mkdir()
    run = trainer(version=make_version(held_out=["print one please"]), steps=1, eval_every=1)
    (whole / "best").mkdir()
    with pytest.raises(CobaltError, match=r"checkpoint 1 is whole, but .*run cannot be cleared up"):
        run.run()
    assert checkpoint_directory(whole).name == "checkpoint-000001"


def test_resuming_nothing_leaves_nothing(trainer, tmp_path):
    with pytest.raises(InputError, match="holds no run to resume: begin one without --resume"):
        trainer(resume=True)
    assert not (tmp_path / "run").exists()


def test_what_the_embedded_engine_has_not_is_refused(trainer):
    for setting in ({"engine_memory_share": 0.5}, {"sleep_level": 1}):
        with pytest.raises(InputError, match="leave out engine_memory_share and sleep_level"):
            trainer(**setting)


def test_only_the_last_checkpoints_are_kept(trainer, tmp_path):
    trainer(steps=4, keep_last=2).run()
    assert [path.name for path in sorted((tmp_path / "run").glob("checkpoint-*"))] == [
        "checkpoint-000003",
        "checkpoint-000004",
    ]


def test_a_sandbox_that_fails_masks_rows_and_rewards_nothing(trainer, pool, tmp_path):
    result = trainer(steps=1, pool=toy.UnreliablePool(pool)).run()
    (row,) = (json.loads(line) for line in result.metrics.read_text().splitlines())
    assert row["masked_rows"] == 8
    samples = [json.loads(line) for line in result.samples.read_text().splitlines()]
    assert all(sample["reward"] is not None for sample in samples)


def test_a_sandbox_that_fails_altogether_leaves_a_step_without_rewards(trainer, pool):
    result = trainer(steps=1, pool=toy.UnreliablePool(pool, every=1)).run()
    (row,) = (json.loads(line) for line in result.metrics.read_text().splitlines())
    assert (row["masked_rows"], row["dead_groups"], row["trained_tokens"], row["reward"]) == (24, 3, 0, None)
    assert result.samples.read_text() == ""
