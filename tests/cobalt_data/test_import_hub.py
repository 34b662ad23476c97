"""Importing from the Hub, over HTTP with the real clients."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from builders import make_all_tables
from hub_server import File, Repository

from cobalt_data.errors import HubError, InputError
from cobalt_data.importers import import_problems

ROW = {
    "problem_id": 1,
    "question": "Echo.",
    "solutions": "",
    "input_output": json.dumps({"inputs": ["1", "2", "3"], "outputs": ["1", "2", "3"]}),
    "difficulty": "interview",
    "url": "https://codeforces.com/problemset/problem/1/A",
    "starter_code": "",
}
CARD = """---
configs:
- config_name: default
  data_files:
  - {split: train, path: train.jsonl}
  - {split: test, path: test.jsonl}
---
"""
IMPORTER = """
import json, sys
from cobalt_data.errors import CobaltError
from cobalt_data.importers import import_problems
for source, settings in json.loads(sys.argv[1]):
    try:
        found = import_problems(source, **{"format": "apps", **settings})
        print(json.dumps({problem.split: problem.statement for problem in found.problems}))
    except CobaltError as error:
        print(json.dumps(f"{type(error).__name__}: {error}"))
"""


@pytest.fixture
def things(hub):
    """A repository with two splits of one problem each."""
    repository = hub.repositories["anna/apps"] = Repository(private=False)
    files = {"README.md": CARD.encode()}
    for split in ("train", "test"):
        files[f"{split}.jsonl"] = json.dumps({**ROW, "question": f"Echo, {split}."}).encode()
    repository.commit({name: File(content, lfs=False) for name, content in files.items()})
    return repository


def import_elsewhere(hub, tmp_path, *sources):
    """In a process of its own: `datasets` takes the address of the Hub when it is imported."""
    settings = {
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HOME": str(tmp_path / "hf"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "USE_TORCH": "0",
    }
    command = [sys.executable, "-c", IMPORTER, json.dumps(sources)]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_splits_of_a_dataset_are_sides_and_what_it_lacks_is_one_line(hub, things, tmp_path):
    name = "hf://datasets/anna/apps"
    asked = [(name, {}), (name, {"side": "test"}), (name, {"side": "dev"}), (name, {"subset": "large"})]
    both, one, no_side, no_subset, missing = import_elsewhere(hub, tmp_path, *asked, ("hf://datasets/anna/none", {}))
    assert both == {"train": "Echo, train.", "test": "Echo, test."} and one == {"test": "Echo, test."}
    assert "cannot be loaded" in no_side and "cannot be loaded" in no_subset
    assert f"{name}/FILE" in no_side
    assert "hf://datasets/anna/none" in missing and "Error: " in missing


def test_trajectories_and_prompts_are_read_from_the_hub_as_such(hub, tmp_path):
    version = make_all_tables(tmp_path / "d")
    repository = hub.repositories["anna/rows"] = Repository(private=False)
    names = ("problems", "trajectories", "prompts")
    files = {f"{name}.jsonl": "\n".join(map(json.dumps, version.rows(name))).encode() for name in names}
    configs = "".join(f"- config_name: {name}\n  data_files: {name}.jsonl\n" for name in names)
    files["README.md"] = f"---\nconfigs:\n{configs}---\n".encode()
    repository.commit({name: File(content, lfs=False) for name, content in files.items()})
    for name in names:
        found = import_problems(f"hf://datasets/anna/rows/{name}.jsonl", "cobalt")
        assert (len(getattr(found, name)), found.read) == (12, {name: 12})
    own = {"format": "cobalt", "subset": "trajectories"}
    assert import_elsewhere(hub, tmp_path, ("hf://datasets/anna/rows", own)) == [{}]  # no problems, and no error


def test_one_file_of_a_repository_is_read_like_a_file(things):
    (problem,) = import_problems("hf://datasets/anna/apps/test.jsonl", "apps").problems
    assert (problem.statement, problem.split) == ("Echo, test.", "unsplit")


@pytest.mark.parametrize(
    ("source", "settings", "said"),
    [
        ("hf://datasets/anna/apps/../x", {}, "names a file outside"),
        ("hf://anna/apps", {}, "is no dataset: write it as"),
        ("hf://datasets/anna", {}, "is no repository of the Hub"),
        ("hf://datasets/anna/apps@v 1", {}, "is no tag"),
        ("hf://datasets/anna/apps/none.jsonl", {}, "there is no such"),
        ("rows.jsonl", {"subset": "x"}, "is no dataset on the Hub"),
    ],
)
def test_a_source_that_cannot_be_meant_or_found_is_one_line(things, source, settings, said):
    with pytest.raises((InputError, HubError)) as caught:
        import_problems(source, "apps", **settings)
    assert said in str(caught.value) and "\n" not in str(caught.value)
