"""Validation: what it measures, that it leaves training as it was, and that its best checkpoint stays."""

import json
import shutil
from dataclasses import replace
from operator import itemgetter

import pytest
from toy import CONFIG

from cobalt_data.errors import InputError
from cobalt_train.checkpoint import TrainState
from cobalt_train.trainer import Trainer
from cobalt_train.validation import score

VALIDATED = replace(CONFIG, eval_every=1, keep_last=1)


@pytest.fixture
def train(toy_model, make_version, pool, tmp_path):
    version = make_version(held_out=("hm one", "hm two"))

    def run(name, config=VALIDATED, resume=False):
        trainer = Trainer(config, version, toy_model, tmp_path / name, pool=pool, resume=resume)
        return [json.loads(line) for line in trainer.run().metrics.open()]

    return run


def rewards(rows):
    return {row["step"]: row["validation"]["reward"] for row in rows}


def test_the_best_checkpoint_stays_beside_the_last(train, tmp_path):
    rows = train("run")
    best, _ = max(rewards(rows).items(), key=itemgetter(1))
    assert (tmp_path / "run" / "best").resolve().name == f"checkpoint-{best:06d}"
    kept = sorted(int(path.name[-6:]) for path in (tmp_path / "run").glob("checkpoint-*"))
    assert kept == sorted({best, CONFIG.steps})
    assert all(row["validation"]["prompts"] == 2 for row in rows)


def test_training_is_the_same_with_validation_and_without(train):
    measured = ("reward", "loss", "grad_norm", "generated_tokens")
    validated, plain = train("validated"), train("plain", replace(VALIDATED, eval_every=0))
    assert [itemgetter(*measured)(row) for row in validated] == [itemgetter(*measured)(row) for row in plain]


def test_a_resumed_run_remembers_the_best(train, tmp_path):
    whole = train("whole")
    train("parts", replace(VALIDATED, steps=2))
    assert rewards(train("parts", resume=True)) == rewards(whole)
    assert (tmp_path / "parts" / "best").readlink() == (tmp_path / "whole" / "best").readlink()


def test_of_equal_scores_the_earlier_stays_and_none_is_no_score():
    state = TrainState(step=1).with_validation(None)
    assert state.best_step == 0
    state = replace(state.with_validation(0.5), step=2).with_validation(0.5)
    assert (state.best_step, state.best_score) == (1, 0.5)


def test_of_verpo_the_pass_rate_tells_the_best():
    figures = {"reward": 0.3, "pass_rate": 0.75}
    assert (score(figures, "cobalt"), score(figures, "grpo-mt"), score(figures, "verpo")) == (0.3, 0.3, 0.75)


def test_a_run_that_was_killed_before_it_cleared_up_does_so_when_resumed(train, tmp_path):
    train("run")
    output, best = tmp_path / "run", (tmp_path / "run" / "best").readlink()
    (output / "best").unlink()
    shutil.copytree(output / f"checkpoint-{CONFIG.steps:06d}", output / "checkpoint-000000")
    train("run", resume=True)
    assert (output / "best").readlink() == best
    assert not (output / "checkpoint-000000").exists()


def test_without_a_validation_side_there_is_nothing_to_validate_on(toy_model, toy_version, pool, tmp_path):
    with pytest.raises(InputError, match="has no prompts in the split validation"):
        Trainer(VALIDATED, toy_version, toy_model, tmp_path / "run", pool=pool)
    assert not (tmp_path / "run").exists()


def test_two_processes_do_not_train_in_one_directory(toy_model, toy_version, pool, tmp_path):
    first = Trainer(CONFIG, toy_version, toy_model, tmp_path / "run", pool=pool)
    with pytest.raises(InputError, match="another process trains in"):
        Trainer(CONFIG, toy_version, toy_model, tmp_path / "run", pool=pool, resume=True)
    first.run()
