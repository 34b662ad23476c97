"""Unfinished runs: kept whole, found again, damaged files done again, two processes kept apart."""

import os
import signal
import subprocess
import sys

import pytest

from cobalt_data.errors import CobaltError
from cobalt_data.runs import open_run

ARGUMENTS = {"n": 4, "seed": 0}


def unit_file(run, name="u"):
    return run.path / f"{name}.json"


def test_what_was_finished_is_there_when_the_run_is_opened_again(tmp_path):
    with open_run(tmp_path, "collect", ARGUMENTS, "v1") as run:
        assert run.finished("u") is None
        run.finish("u", {"rows": ["ä", "\ud800", None, 1.5]})
    with open_run(tmp_path, "collect", ARGUMENTS, "v1") as run:
        assert run.finished("u") == {"rows": ["ä", "\ud800", None, 1.5]}


@pytest.mark.parametrize(
    ("operation", "arguments", "parent"),
    [("collect", ARGUMENTS, "v2"), ("collect", {"n": 4, "seed": 1}, "v1"), ("other", ARGUMENTS, "v1")],
)
def test_another_command_does_not_find_it(tmp_path, operation, arguments, parent):
    with open_run(tmp_path, "collect", ARGUMENTS, "v1") as run:
        run.finish("u", 1)
    with open_run(tmp_path, operation, arguments, parent) as run:
        assert run.finished("u") is None


@pytest.mark.parametrize("damage", [b"", b"\n", b"garbage", b"\xff\x00\xfe", b"0" * 64 + b'\n{"rows": []}'])
def test_garbage_is_not_finished_work(tmp_path, damage):
    with open_run(tmp_path, "collect", ARGUMENTS, "v1") as run:
        unit_file(run).write_bytes(damage)
        assert run.finished("u") is None
        run.finish("u", [1])
        assert run.finished("u") == [1]


def test_no_torn_file_is_finished_work(tmp_path):
    with open_run(tmp_path, "collect", ARGUMENTS, "v1") as run:
        run.finish("u", {"rows": list(range(20))})
        whole = unit_file(run).read_bytes()
        for length in range(len(whole)):
            unit_file(run).write_bytes(whole[:length])
            assert run.finished("u") is None
        unit_file(run).write_bytes(whole[:-2] + b"9" + whole[-1:])
        assert run.finished("u") is None


def test_files_that_a_killed_process_left_aside_are_cleared_away(tmp_path):
    with open_run(tmp_path, "collect", ARGUMENTS, "v1") as run:
        (run.path / ".u.json").write_bytes(b"half")
    with open_run(tmp_path, "collect", ARGUMENTS, "v1") as run:
        assert not (run.path / ".u.json").exists() and run.finished("u") is None


def test_a_discarded_run_leaves_nothing_and_other_runs_alone(tmp_path):
    with open_run(tmp_path, "collect", ARGUMENTS, "v1") as run, open_run(tmp_path, "collect", {}, "v1") as other:
        other.finish("u", 1)
        run.finish("u", 1)
        run.discard()
        assert not run.path.exists() and other.finished("u") == 1
        other.discard()
    assert not (tmp_path / "runs").exists()


HOLD = """
import sys
from pathlib import Path
from cobalt_data.runs import open_run
with open_run(Path(sys.argv[1]), "collect", {"n": 4, "seed": 0}, "v1") as run:
    run.finish("u", 1)
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_run_that_another_process_works_on_is_refused_until_that_process_is_dead(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(CobaltError, match=f"process {holder.pid} is at work"),
            open_run(tmp_path, "collect", ARGUMENTS, "v1"),
        ):
            pass
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()
    with open_run(tmp_path, "collect", ARGUMENTS, "v1") as run:
        assert run.finished("u") == 1


def test_a_place_where_nothing_can_be_written_is_named(tmp_path):
    (tmp_path / "runs").write_text("a file, not a directory")
    with (
        pytest.raises(CobaltError, match="cannot keep unfinished work"),
        open_run(tmp_path, "collect", ARGUMENTS, "v1"),
    ):
        pass
