"""Several processes train what one does: they share rollouts and micro-batches, and shard the weights."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest
import torch
from toy import CONFIG
from transformers import AutoModelForCausalLM

from cobalt_data.errors import InputError
from cobalt_data.models import load_model, resolve_model
from cobalt_train.checkpoint import TrainState, load_state
from cobalt_train.config import TrainConfig
from cobalt_train.figures import Figures, total
from cobalt_train.ranks import Ranks
from cobalt_train.trainer import Trainer

CONFIG = replace(
    CONFIG, steps=2, optimizer_steps=2, kl_coefficient=0.01, micro_batch_tokens=16, gradient_checkpointing=True
)
PASSED = [field.name for field in fields(CONFIG) if getattr(CONFIG, field.name) != getattr(TrainConfig(), field.name)]
RUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "cli", "train"]


def test_every_item_counts_once_and_all_processes_get_as_many():
    for size in (1, 2, 3, 5):
        shares = [Ranks("cpu", rank, size).deal("abcd") for rank in range(size)]
        assert sorted(item for share in shares for item, counts in share if counts) == list("abcd")
        assert len({len(share) for share in shares}) == 1
        assert "".join(Ranks("cpu", rank, size).share("abcd") for rank in range(size)) == "abcd"


def test_figures_of_several_processes_add_up():
    parts = [Figures(loss=1.0, tokens=3, mismatch_largest=0.1, grad_norms=[2.0])] * 2
    assert total(parts) == Figures(loss=2.0, tokens=6, mismatch_largest=0.1, grad_norms=[2.0])


@pytest.fixture
def launch(toy_model, toy_version, tmp_path):
    """Trains in two processes, as a user does."""

    def run(output, *flags):
        settings = [f"--set={name}={json.dumps(getattr(CONFIG, name))}" for name in PASSED if name != "steps"]
        arguments = [str(toy_version.dataset), "-m", toy_model, "-o", str(output), "--backend", "process", "--json"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            [*RUN, *arguments, *settings, *flags], capture_output=True, text=True, timeout=300, env=environment
        )

    return run


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_two_processes_train_as_one_does_and_one_goes_on(launch, toy_model, toy_version, pool, tmp_path, lora_rank):
    def alone(name, steps, **settings):
        config = replace(CONFIG, steps=steps, lora_rank=lora_rank)
        return Trainer(config, toy_version, toy_model, tmp_path / name, pool=pool, **settings).run()

    whole = alone("whole", 3)
    done = launch(tmp_path / "pair", "--steps", "2", "--set", f"lora_rank={lora_rank}")
    assert done.returncode == 0, done.stderr
    (said,) = done.stdout.splitlines()
    assert Path(json.loads(said)["checkpoint"]).is_dir()
    pair = alone("pair", 3, resume=True)
    ours, theirs = ([json.loads(line) for line in run.metrics.read_text().splitlines()] for run in (pair, whole))
    for row, expected in zip(ours, theirs, strict=True):
        for name in ("loss", "reward", "kl", "entropy", "grad_norm", "mismatch_ratio", "trained_tokens"):
            assert row[name] == pytest.approx(expected[name], rel=1e-3, abs=1e-5), name
    expected, trained = (
        load_model(resolve_model(str(run.checkpoint)), "float32").state_dict() for run in (whole, pair)
    )
    for name, weight in trained.items():
        torch.testing.assert_close(weight, expected[name], rtol=1e-3, atol=2e-4)


def test_a_checkpoint_before_the_first_update_leaves_the_optimizer_as_it_is(
    launch, toy_model, toy_version, pool, tmp_path
):
    """The first step has nothing to learn from: all its rewards are equal."""
    for name in ("whole", "pair"):
        saved = str(tmp_path / name / "checkpoint-000001")
        (tmp_path / f"{name}.py").write_text(
            f"import os\ndef late(row): return row.pass_rate if os.path.exists({saved!r}) else 0.0"
        )
    config = replace(CONFIG, reward=f"{tmp_path}/whole.py:late")
    whole = Trainer(config, toy_version, toy_model, tmp_path / "whole", pool=pool).run()
    done = launch(tmp_path / "pair", "--steps", "2", "--reward", f"{tmp_path}/pair.py:late")
    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in whole.metrics.read_text().splitlines())
    assert not first["trained_tokens"] and second["trained_tokens"]
    last = [AutoModelForCausalLM.from_pretrained(tmp_path / name / "checkpoint-000002") for name in ("whole", "pair")]
    expected = last[0].state_dict()
    for name, weight in last[1].state_dict().items():
        torch.testing.assert_close(weight, expected[name], rtol=1e-3, atol=2e-4)


def test_a_run_of_one_process_is_not_resumed_by_several(tmp_path):
    (tmp_path / "cobalt.json").write_text(json.dumps(asdict(TrainState(step=1, updates=1))))
    with pytest.raises(InputError, match="written by one process: resume without torchrun"):
        load_state(tmp_path, None, None, Ranks("cpu", 0, 2))
