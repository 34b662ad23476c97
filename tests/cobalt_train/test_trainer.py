import json
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from toy import CONFIG
from transformers import AutoModelForCausalLM, AutoTokenizer

from cobalt_train import rollout
from cobalt_train.checkpoint import saying_how_to_go_on
from cobalt_train.scoring import Scorer
from cobalt_train.trainer import Trainer


def timeless(path: Path) -> list[dict]:
    """The metrics, without what a clock says."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in row.items() if k not in ("seconds", "tokens_per_second", "steps")} for row in rows]


@pytest.fixture
def train(toy_model, toy_version, pool, tmp_path):
    def run(name="run", config=CONFIG, resume=False, progress=None, **settings):
        trainer = Trainer(
            replace(config, **settings), toy_version, toy_model, tmp_path / name, pool=pool, resume=resume
        )
        return trainer, trainer.run(progress)

    return run


def test_the_mean_reward_rises_and_the_checkpoint_holds_what_was_learned(train, toy_model):
    _, result = train(steps=24, save_every=24, group_size=16, learning_rate=2e-2)
    rewards = [row["reward"] for row in timeless(result.metrics)]
    assert sum(rewards[-6:]) > sum(rewards[:6]) + 6 * 0.2

    trained = AutoModelForCausalLM.from_pretrained(result.checkpoint)
    tokenizer = AutoTokenizer.from_pretrained(result.checkpoint)
    assert tokenizer.chat_template == AutoTokenizer.from_pretrained(toy_model).chat_template
    assert trained.get_output_embeddings().weight is trained.get_input_embeddings().weight
    assert not torch.equal(
        trained.get_input_embeddings().weight,
        AutoModelForCausalLM.from_pretrained(toy_model).get_input_embeddings().weight,
    )


def test_the_engine_samples_from_the_weights_of_the_checkpoint(train):
    trainer, result = train(steps=2)
    prompt = [3, 4, 6]
    ((drawn,),) = trainer.engine.complete_tokens([prompt], [[0]], CONFIG.sampling())
    saved = AutoModelForCausalLM.from_pretrained(result.checkpoint)
    scores = Scorer(saved).score([(prompt, [drawn.token_ids])], shared_prefix=False)
    torch.testing.assert_close(scores.logprobs[0].detach(), torch.tensor(drawn.logprobs))


def test_metrics_say_what_happened(train):
    _, result = train(steps=1, kl_coefficient=1e-3)
    (row,) = (json.loads(line) for line in result.metrics.read_text().splitlines())
    assert row["step"] == 1 and row["masked_rows"] == 0
    assert row["mismatch_ratio"] == pytest.approx(1, abs=1e-3)
    assert row["clipped_share"] == 0 and row["kl"] == pytest.approx(0, abs=1e-6)
    assert row["generated_tokens"] >= row["trained_tokens"] > 0
    assert set(row["seconds"]) == {"generate", "judge", "learn", "hand_over"}
    samples = [json.loads(line) for line in result.samples.read_text().splitlines()]
    assert {"step", "prompt_id", "reward", "text"} <= samples[0].keys()


@pytest.mark.parametrize(
    "settings",
    [
        {"objective": "gspo"},
        {"objective": "cispo", "advantage": "mean"},
        {"objective": "dr_grpo", "advantage": "dr_grpo", "reward": "binary"},
        {"optimizer_steps": 3, "importance_cap": 2.0, "kl_coefficient": 0.1, "kl": "k3"},
        {"optimizer_steps": 2, "old_logprobs": "engine"},
        {"shared_prefix": False},
        {"temperature": 0.6},
        {"compute_dtype": "bfloat16", "engine_dtype": "bfloat16"},
    ],
    ids=str,
)
def test_every_way_to_train_takes_its_steps(train, settings):
    _, result = train(steps=2, **settings)
    for row in timeless(result.metrics):
        assert row["grad_norm"] > 0
        assert 0.9 < row["mismatch_ratio"] < 1.1


def test_micro_batches_and_the_plain_path_change_nothing_but_rounding(train):
    _, whole = train("whole", steps=2)
    _, pieces = train("pieces", steps=2, micro_batch_tokens=8)
    _, plain = train("plain", steps=2, shared_prefix=False)
    reference = AutoModelForCausalLM.from_pretrained(whole.checkpoint).state_dict()
    for other in (pieces, plain):
        for name, weight in AutoModelForCausalLM.from_pretrained(other.checkpoint).state_dict().items():
            torch.testing.assert_close(weight, reference[name], rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("prompts", [3, 2], ids=["at the end of an epoch", "within an epoch"])
def test_a_resumed_run_has_the_metrics_and_weights_of_an_uninterrupted_one(train, prompts):
    settings = {"optimizer_steps": 2, "prompts_per_step": prompts}
    _, whole = train("whole", **settings)
    train("parts", steps=1, **settings)
    train("parts", steps=3, resume=True, **settings)
    _, parts = train("parts", steps=4, resume=True, **settings)
    assert timeless(parts.metrics) == timeless(whole.metrics)
    assert parts.samples.read_text() == whole.samples.read_text()
    assert (parts.checkpoint / "model.safetensors").read_bytes() == (
        whole.checkpoint / "model.safetensors"
    ).read_bytes()


def test_a_run_interrupted_before_its_first_checkpoint_begins_again(train):
    def interrupt(metrics):
        raise KeyboardInterrupt

    _, whole = train("whole", steps=2)
    with pytest.raises(KeyboardInterrupt):
        train("parts", steps=2, save_every=2, progress=interrupt)
    _, parts = train("parts", steps=2, save_every=2, resume=True)
    assert timeless(parts.metrics) == timeless(whole.metrics)


def test_ctrl_c_tells_of_resume_only_where_there_is_something_to_resume(tmp_path):
    for begun, said in ((False, "nothing was written, give the same command again"), (True, "with --resume to go on")):
        if begun:
            (tmp_path / "run.json").touch()
        with pytest.raises(KeyboardInterrupt, match=said), saying_how_to_go_on(tmp_path):
            raise KeyboardInterrupt


def test_the_calls_of_the_engine_in_a_step_do_not_change_what_is_drawn(train, monkeypatch):
    _, whole = train("whole", steps=1)
    monkeypatch.setattr(rollout, "ROWS_PER_CALL", CONFIG.group_size)
    _, parts = train("parts", steps=1)
    assert parts.samples.read_text() == whole.samples.read_text()


def test_a_step_takes_all_prompts_where_there_are_fewer_than_it_could(train):
    _, result = train(steps=None, epochs=2, prompts_per_step=128)
    assert [row["epoch"] for row in timeless(result.metrics)] == [1.0, 2.0]


def test_a_run_killed_between_checkpoints_resumes_to_the_same_metrics(train, toy_model, toy_version, tmp_path):
    config = replace(CONFIG, steps=6, save_every=2)
    _, whole = train("whole", config)
    killed = tmp_path / "killed"
    arguments = [
        toy_model,
        str(toy_version.dataset),
        str(killed),
        json.dumps(asdict(config)),
        str(torch.get_num_threads()),
    ]
    process = subprocess.Popen([sys.executable, "-c", CHILD, *arguments])
    try:
        _wait_for_lines(killed / "metrics.jsonl", 3, process)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    _, resumed = train("killed", config, resume=True)
    assert timeless(resumed.metrics) == timeless(whole.metrics)
    assert (resumed.checkpoint / "model.safetensors").read_bytes() == (
        whole.checkpoint / "model.safetensors"
    ).read_bytes()


CHILD = """
import json, sys
from pathlib import Path
import torch
from cobalt_data.dataset import open_version
from cobalt_train.config import TrainConfig
from cobalt_train.trainer import Trainer
from sandbox import Pool

model, dataset, output, config, threads = sys.argv[1:]
torch.set_num_threads(int(threads))
with Pool("process", workers=1) as pool:
    Trainer(TrainConfig(**json.loads(config)), open_version(dataset), model, Path(output), pool=pool).run()
"""


def _wait_for_lines(path: Path, lines: int, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and len(path.read_text().splitlines()) >= lines:
            return
        time.sleep(0.01)
    raise AssertionError(f"the run wrote no {lines} lines of metrics")
