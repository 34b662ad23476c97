"""What people read of a run: its plan before it begins, its picture drawn from the journal."""

import json
from dataclasses import asdict

import pytest
from toy import no_file_longer_than

from cobalt_data.errors import CobaltError
from cobalt_train.config import TrainConfig, load_config
from cobalt_train.reporting import CURVE_NAME, draw_curve, plan_lines, time_left


def test_the_settings_of_a_plan_are_lines_of_a_file_that_is_read_again(tmp_path):
    config = load_config(preset="modern", steps=3, reward="my rewards.py:own")
    lines = plan_lines({"engine": "vllm", "steps": 3000, "epochs": 16 / 3}, asdict(config))
    told, settings = lines[: lines.index("")], lines[lines.index("") + 1 :]
    assert told == ["engine: vllm", "steps: 3,000", "epochs: 5.33"]
    (tmp_path / "run.toml").write_text("\n".join(settings))
    assert load_config(tmp_path / "run.toml") == config != TrainConfig()
    unbounded = TrainConfig(clip_dual=None, max_grad_norm=float("inf"))
    (tmp_path / "run.toml").write_text("\n".join(plan_lines({}, asdict(unbounded))))
    assert load_config(tmp_path / "run.toml") == unbounded


def test_the_picture_of_a_run_lies_beside_its_metrics(tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    rows = [{"step": step, "reward": step / 9, "kl": None, "seconds": {"learn": 1.0}} for step in range(1, 6)]
    metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert draw_curve(metrics) == tmp_path / CURVE_NAME
    assert (tmp_path / CURVE_NAME).read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == [CURVE_NAME, "metrics.jsonl"]


def test_a_picture_that_finds_no_room_is_one_line_that_says_the_run_is_whole(tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text('{"step": 1, "reward": 0.5}\n')
    with no_file_longer_than(100), pytest.raises(CobaltError, match="the run is whole, only its picture") as refused:
        draw_curve(metrics)
    assert "\n" not in str(refused.value) and list(tmp_path.iterdir()) == [metrics]


def test_the_time_left_is_that_of_the_remaining_steps():
    assert time_left({"step": 3, "steps": 10, "seconds": {"generate": 4.0, "learn": 6.5}}) == "1:14 left"
    assert time_left({"step": 10, "steps": 10, "seconds": {"learn": 6.5}}) == "0:00 left"
