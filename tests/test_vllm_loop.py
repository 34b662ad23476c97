"""The loop on vLLM as a user runs it: collect, killed and resumed, then cut, train all weights or an adapter, and evaluate."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.vllm

COBALT = [sys.executable, "-c", "from cli import main; main()"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
COLLECT = """data collect made -m smollm2-135m --engine vllm --memory-share 0.02 --split train --limit 8 -n 2 --turns 2
    --max-tokens 32 --problems-per-unit 1 --json"""
TRAIN = """train made -m smollm2-135m --engine vllm --preset cpu-small --steps 2 -n 8 --prompts-per-step 2 --max-tokens 64
    --set engine_memory_share=0.02 -o run --json"""
ADAPT = """train made -m smollm2-135m --engine vllm --preset cpu-small --steps 2 -n 4 --prompts-per-step 1 --max-tokens 16
    --set engine_memory_share=0.02 --set lora_rank=2 --set learning_rate=1e-3 --reward rewards.py:varied -o adapter --json"""
EVALUATE = """eval run made --engine vllm --memory-share 0.02 --split test --limit 2 --turns 2 --max-tokens 32 --json"""


def cobalt(directory: Path, command: str) -> Any:
    done = subprocess.run(
        [*COBALT, *command.split()], cwd=directory, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # and nothing of vLLM's


def test_a_killed_collection_resumes_without_loss_and_its_prompts_are_trained_on(tmp_path: Path) -> None:
    cobalt(tmp_path, "data import embedded --difficulty easy --limit 40 -o made --json")
    divided = cobalt(tmp_path, "data split made --reassign --train 0.5 --test 0.5 --validation 0 --json")
    _collect_and_kill(tmp_path)
    collected = cobalt(tmp_path, COLLECT)
    trajectories = 2 * min(8, divided["rows"]["problems"]["train"])
    assert 0 < collected["resumed"] < collected["added"] == trajectories
    assert collected["rows"]["trajectories"] == {"train": trajectories}

    cobalt(tmp_path, "data cut made --select all --json")
    trained = cobalt(tmp_path, TRAIN)
    _assert_two_steps_with_the_engine_beside(tmp_path / trained["metrics"])
    assert json.loads(Path(tmp_path, "run", "run.json").read_text())["config"]["engine"] == "vllm"

    evaluated = cobalt(tmp_path, EVALUATE)
    assert [score["programs"] for score in evaluated["scores"]] == [2, 2]

    (tmp_path / "rewards.py").write_text("def varied(row): return len(row.completion) % 7")  # which spares no group
    adapted = cobalt(tmp_path, ADAPT)
    _assert_two_steps_with_the_engine_beside(tmp_path / adapted["metrics"])
    evaluated = cobalt(tmp_path, EVALUATE.replace("eval run", "eval adapter"))
    assert [score["programs"] for score in evaluated["scores"]] == [2, 2]


def _assert_two_steps_with_the_engine_beside(metrics: Path) -> None:
    steps = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [step["step"] for step in steps] == [1, 2]
    assert all(step["generated_tokens"] > 0 for step in steps)
    ratios = [step["mismatch_ratio"] for step in steps if step["mismatch_ratio"] is not None]
    assert ratios and all(0.9 < ratio < 1.1 for ratio in ratios)


def _collect_and_kill(directory: Path) -> None:
    """Kills a collection as soon as the first of its units is kept."""
    process = subprocess.Popen([*COBALT, *COLLECT.split()], cwd=directory, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    while process.poll() is None and not _kept_units(directory):
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def _kept_units(directory: Path) -> list[Path]:
    return [file for file in directory.glob("made/runs/*/[!.]*.json") if file.name != "plan.json"]
