"""The Hub, when others write, processes die, disks are full and references lead nowhere."""

import os
import random
import subprocess
import sys
from dataclasses import replace

import huggingface_hub.constants as constants
import pytest
from builders import keep_first, make_all_tables, make_dataset, make_problem
from hub_server import File

from cobalt_data.dataset import open_version, version_ids
from cobalt_data.errors import CobaltError, HubError, InputError
from cobalt_data.pull import pull
from cobalt_data.push import push

NAME = "anna/things"


@pytest.fixture
def version(tmp_path):
    return make_all_tables(tmp_path / "d")


def remote(hub):
    return hub.repositories[NAME]


def test_a_stale_parent_is_retried_on_the_newer_state(hub, version):
    push(version, NAME)
    second, sent = keep_first(version, 9), len(hub.uploads)
    notes = [b"2", b"1"]

    def interfere(repository):
        if notes:
            repository.commit({**repository.files, "notes.txt": File(notes.pop(), False)})

    hub.before_commit = interfere
    pushed = push(second, NAME)
    assert remote(hub).head == pushed.commit == remote(hub).tags[second.id]
    assert remote(hub).files["notes.txt"].content == b"2"
    assert len(set(hub.uploads[sent:])) == len(hub.uploads[sent:])


def test_writers_who_never_stop_are_one_clear_line(hub, version):
    hub.before_commit = lambda repository: repository.commit(dict(repository.files))
    with pytest.raises(HubError, match="others keep writing"):
        push(version, NAME)


PUSHER = """
import sys
from cobalt_data.dataset import open_version
from cobalt_data.push import push
push(open_version(sys.argv[1]), sys.argv[2])
"""


def start(hub, program, *arguments):
    """Runs a program that uses this Hub in a process that can be killed."""
    settings = {"HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1"}
    return subprocess.Popen([sys.executable, "-c", program, *arguments], env={**os.environ, **settings})


def die(process):
    process.kill()
    process.wait()
    raise ConnectionAbortedError


def test_a_killed_push_leaves_the_old_state_and_goes_on_where_it_stopped(hub, version):
    pusher = start(hub, PUSHER, version.reference, NAME)
    hub.before_upload = lambda: die(pusher) if len(hub.uploads) == 2 else None
    pusher.wait(60)
    assert set(remote(hub).files) == {".gitattributes"} and len(hub.uploads) == 2
    hub.before_upload = lambda: None
    push(version, NAME)
    assert len(hub.uploads) == len(set(hub.uploads)) == 6


PULLER = """
import sys
from cobalt_data.pull import pull
pull(*sys.argv[1:])
"""


def test_a_killed_pull_leaves_no_version_and_goes_on_where_it_stopped(hub, version, tmp_path):
    push(version, NAME)
    puller = start(hub, PULLER, NAME, str(tmp_path / "pulled"))
    arrived = []

    def kill_at_the_fourth(path):
        if path.endswith(".parquet"):
            arrived.append(path)
        if len(arrived) == 4:
            die(puller)

    hub.before_download = kill_at_the_fourth
    puller.wait(60)
    assert not list((tmp_path / "pulled").glob("versions/*"))
    hub.before_download = arrived.append
    arrived.clear()
    assert pull(NAME, tmp_path / "pulled").id == version.id
    assert 1 < len(arrived) < 7  # the manifest, and the shards that had not arrived
    assert not (tmp_path / "pulled" / "runs").exists()


def test_a_full_disk_stops_a_pull_with_one_clear_line(hub, small_disk, tmp_path):
    noise = random.Random(0)
    problems = [make_problem(f"p{number}") for number in range(100)]
    large = [replace(problem, statement=noise.randbytes(4000).hex()) for problem in problems]
    push(make_dataset(tmp_path / "large", large), NAME)
    with pytest.raises(CobaltError, match="no space left"):
        pull(NAME, small_disk / "pulled")
    assert version_ids(small_disk / "pulled") == []


def test_a_hub_that_is_not_there_is_one_line(hub, version, monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(HubError, match="cannot be reached"):
        push(version, NAME)
    with pytest.raises(HubError, match="cannot be reached"):
        pull(NAME, tmp_path / "pulled")
    assert not (tmp_path / "pulled").exists()


def test_a_server_that_is_no_hub_is_one_line(hub, version, tmp_path):
    hub.answers_with_a_page = True
    with pytest.raises(HubError, match="cannot be reached, or broke off"):
        push(version, NAME)
    with pytest.raises(HubError, match="cannot be reached, or broke off"):
        pull(NAME, tmp_path / "pulled")


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("anna/none", "no such repository"),
        (f"{NAME}@abcdef012345", "no such tag"),
        ("anna", "no repository"),
        ("anna/../x", "no repository"),
        ("hf://models/anna/things", "is no dataset"),
        (f"{NAME}@../main", "is no tag"),
    ],
)
def test_references_that_lead_nowhere_say_so(hub, version, tmp_path, reference, words):
    push(version, NAME)
    with pytest.raises(CobaltError, match=words):
        pull(reference, tmp_path / "pulled")
    assert not (tmp_path / "pulled").exists()


def test_pulling_does_not_mix_datasets(hub, version, tmp_path):
    push(version, NAME)
    mine = make_dataset(tmp_path / "mine", [make_problem("q")])
    with pytest.raises(InputError, match="holds another dataset"):
        pull(NAME, tmp_path / "mine")
    assert version_ids(tmp_path / "mine") == [mine.id] and open_version(tmp_path / "mine").id == mine.id
