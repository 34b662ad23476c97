"""Garbage collection: what is asked for goes, what anybody uses or needs stays."""

import subprocess
import sys
from dataclasses import replace

import pytest
from builders import keep_first, make_dataset, make_problem

from cobalt_data.dataset import open_version, version_ids
from cobalt_data.errors import InputError
from cobalt_data.gc import gc
from cobalt_data.runs import open_run
from cobalt_data.verify import verify


@pytest.fixture
def dataset(tmp_path):
    """A line of three versions and a side branch of one, which is what a lost race leaves; returns path and ids."""
    first = make_dataset(tmp_path / "d", [make_problem(f"p{number}") for number in range(9)])
    second = keep_first(first, 8)
    third = keep_first(second, 7)
    side = keep_first(replace(first, latest_when_opened=third.id), 3)
    (tmp_path / "d" / "latest").unlink()
    (tmp_path / "d" / "latest").symlink_to(f"versions/{third.id}")
    return tmp_path / "d", [first.id, second.id, third.id], side.id


def left_by_a_killed_process(path):
    staging = path / "versions" / ".staging-dead"
    (staging / "problems").mkdir(parents=True)
    (staging / "problems" / "train-00000.parquet").write_bytes(b"half")
    (path / ".latest-dead").symlink_to("versions/none")
    return {staging, path / ".latest-dead"}


def test_only_leftovers_go_unless_more_is_asked_for(dataset):
    path, line, side = dataset
    with open_run(path, "collect", {}, line[0]) as run:
        run.finish("unit", 1)
    dead = left_by_a_killed_process(path)
    removed = gc(path)
    assert {entry.path for entry in removed} == dead and {entry.kind for entry in removed} == {"leftover"}
    assert not any(entry.exists() or entry.is_symlink() for entry in dead)
    assert version_ids(path) == sorted([*line, side]) and run.path.exists()
    assert gc(path) == []


def test_versions_off_the_main_line_go_and_the_others_stay_whole(dataset):
    path, line, side = dataset
    (removed,) = gc(path, versions=True)
    assert (removed.kind, removed.path.name) == ("version", side) and removed.bytes > 0
    assert version_ids(path) == sorted(line)
    for version in line:
        assert list(verify(open_version(f"{path}@{version}"))) == []


def test_a_dry_run_says_the_same_and_removes_nothing(dataset):
    path, line, _ = dataset
    with open_run(path, "collect", {}, line[0]):
        pass
    left_by_a_killed_process(path)
    before = sorted(path.rglob("*"))
    announced = gc(path, runs=True, versions=True, dry_run=True)
    assert sorted(path.rglob("*")) == before
    assert announced == gc(path, runs=True, versions=True) and len(announced) == 4


def test_a_version_that_is_kept_keeps_its_ancestors(dataset):
    path, line, side = dataset
    grown = keep_first(replace(open_version(f"{path}@{side}"), latest_when_opened=line[-1]), 2)
    (path / "latest").unlink()
    (path / "latest").symlink_to(f"versions/{line[-1]}")
    tip = grown.id
    del grown
    assert gc(path, versions=True, keep=[tip[:6]]) == []
    assert {entry.path.name for entry in gc(path, versions=True)} == {side, tip}
    with pytest.raises(InputError, match="no such version"):
        gc(path, versions=True, keep=["ffffff"])


def test_a_version_that_an_unfinished_run_stands_on_stays_until_the_run_goes(dataset):
    path, _, side = dataset
    with open_run(path, "collect", {}, side):
        pass
    assert gc(path, versions=True) == []
    assert {entry.kind for entry in gc(path, versions=True, runs=True)} == {"run", "version"}


USER = """
import sys
from cobalt_data.dataset import open_version
from cobalt_data.runs import open_run
version = open_version(sys.argv[1])
with open_run(version.dataset, "collect", {}, version.id):
    print("ready", flush=True)
    sys.stdin.readline()
print(version.table("problems").num_rows, flush=True)
"""


def test_nothing_that_another_process_uses_is_removed(dataset):
    path, line, side = dataset
    command = [sys.executable, "-c", USER, f"{path}@{side}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout.readline() == "ready\n"
        assert gc(path, runs=True, versions=True) == []
        user.communicate("go on\n")
    assert user.returncode == 0
    removed = gc(path, runs=True, versions=True)
    assert [entry.kind for entry in removed] == ["run", "version"]
    assert version_ids(path) == sorted(line)


def test_the_versions_that_this_process_has_open_stay(dataset):
    path, _, side = dataset
    version = open_version(f"{path}@{side}")
    assert gc(path, versions=True) == []
    assert version.table("problems").num_rows == 3


def test_a_neighbour_that_is_writing_is_left_in_peace(dataset, monkeypatch):
    path, line, _ = dataset
    from cobalt_data import commit as module

    def collect_while_staged(directory, manifest):
        assert [entry.kind for entry in gc(path)] == []

    monkeypatch.setattr(module, "write_card", collect_while_staged)
    assert keep_first(open_version(f"{path}@{line[-1]}"), 5).manifest.rows("problems") == 5


def test_what_is_no_dataset_is_refused(tmp_path):
    (tmp_path / "plain").mkdir()
    for path in (tmp_path / "plain", tmp_path / "none"):
        with pytest.raises(InputError):
            gc(path, versions=True)


def test_a_version_cannot_be_given_for_the_dataset_and_pass_for_its_latest(dataset):
    path, line, _ = dataset
    for reference in (f"{path}@{line[0]}", "hf://datasets/a/b"):
        with pytest.raises(InputError, match="without a version"):
            gc(reference, versions=True)
    assert open_version(path).id == line[-1]
