"""The demo from end to end on the real model, in its smallest form; interrupted, it goes on where it was."""

import json

import pytest

from cobalt_data.collection import CollectConfig
from cobalt_data.console import Screen
from cobalt_data.dataset import open_version
from cobalt_data.engines.base import Sampling
from cobalt_data.errors import InputError
from cobalt_train.demo import DemoSettings, run_demo

SMALLEST = DemoSettings(
    collect=CollectConfig(n=2, turns=2, sampling=Sampling(temperature=0.6, max_tokens=8), split="train", limit=1),
    select="all",
    evaluated_problems=1,
    evaluated_samples=1,
    steps=1,
)


def result_of(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_the_demo_makes_all_that_it_names_and_repeats_nothing_that_is_there(tmp_path, capsys):
    run_demo(tmp_path / "demo", "process", Screen(json=True, quiet=True), SMALLEST)
    first = result_of(capsys)
    version = open_version(first["dataset"])
    assert version.has("problems") and version.has("trajectories") and version.has("prompts")
    assert (tmp_path / "demo" / "model" / "checkpoint-000001" / "model.safetensors").is_file()
    assert len(first["before"]["scores"]) == len(first["after"]["scores"]) == 2

    (tmp_path / "demo" / f"after-training-{first['after']['model_revision'][:12]}.json").unlink()
    run_demo(tmp_path / "demo", "process", Screen(json=True, quiet=True), SMALLEST)
    assert {**result_of(capsys), "seconds": None} == {**first, "seconds": None}


def test_a_directory_of_another_demo_is_left_alone(tmp_path):
    (tmp_path / "demo.json").write_text("[]")
    with pytest.raises(InputError, match="holds a demo with other settings"):
        run_demo(tmp_path, "process", Screen(quiet=True), SMALLEST)
    assert [path.name for path in tmp_path.iterdir()] == ["demo.json"]
