"""The Hub, over HTTP with the real clients: push, pull, references; and everything that a stranger or an accident may do."""

import json
import os
import random
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from builders import make_dataset, make_problem, rated
from hub_server import READER, WRITER, File

from cobalt_data.commit import Change, commit
from cobalt_data.dataset import open_version, table_from_rows, version_ids
from cobalt_data.errors import CobaltError, HubError, InputError
from cobalt_data.pull import pull
from cobalt_data.push import push
from cobalt_data.rows import Prompt
from cobalt_data.schemas import TABLES
from cobalt_data.verify import verify
from sandbox import Judge

NAME = "anna/things"
SHARD = "problems/train-00000.parquet"


@pytest.fixture
def version(tmp_path):
    """Twelve problems on two sides, with a trajectory and a prompt for each."""
    problems = [make_problem(f"p{number}", split="train" if number % 3 else "test") for number in range(12)]
    trajectories = [rated(problem, [0.5, 1.0]) for problem in problems]
    prompts = [
        Prompt(made.trajectory_id, made.problem_id, 1, made.messages[:-2], (), Judge(), 0.5, None, 9, made.split)
        for made in trajectories
    ]
    return make_dataset(tmp_path / "d", problems, trajectories, prompts)


def narrowed(version, rows=9):
    table = version.table("problems").slice(0, rows)
    return commit(Change("narrow", {"rows": rows}, None, {"problems": table}, {}), [version])


def remote(hub):
    return hub.repositories[NAME]


# -- push and pull


def test_a_pushed_version_comes_back_whole_and_under_its_id(hub, version, tmp_path):
    pushed = push(version, NAME)
    assert pushed.reference == f"hf://datasets/{NAME}@{version.id}" and pushed.private
    assert remote(hub).tags == {version.id: pushed.commit}
    pulled = pull(NAME, tmp_path / "pulled")
    assert pulled.id == version.id and pulled.manifest == version.manifest
    assert list(verify(pulled)) == [] and list(pulled.rows("prompts")) == list(version.rows("prompts"))
    assert not (tmp_path / "pulled" / "runs").exists()


def test_a_push_is_one_commit(hub, version):
    push(version, NAME)
    assert len(remote(hub).commits) == 2  # the first one makes the empty repository
    assert sum("/commit/" in request for request in hub.requests) == 1


def test_progress_ends_at_the_whole(hub, version, tmp_path):
    sent, arrived = [], []
    push(version, NAME, progress=lambda *report: sent.append(report))
    pull(NAME, tmp_path / "pulled", progress=lambda *report: arrived.append(report))
    for reports in (sent, arrived):
        assert reports == sorted(reports) and reports[-1][0] == reports[-1][1] > 0


def test_main_is_the_newest_version_and_every_tag_one_of_its_own(hub, version, tmp_path):
    push(version, NAME)
    sent = len(hub.uploads)
    second = narrowed(version)
    push(second, NAME)
    shards = {shard.path for shards in second.manifest.tables.values() for shard in shards}
    assert {path for path in remote(hub).files if path.endswith(".parquet")} == shards
    assert len(hub.uploads) - sent < len(shards)  # shards that both share are not sent again
    assert pull(NAME, tmp_path / "new").id == second.id
    assert pull(f"{NAME}@{version.id}", tmp_path / "old").manifest == version.manifest
    assert pull(NAME, tmp_path / "old").id == second.id  # which goes on from what is there
    assert open_version(tmp_path / "old").id == second.id


def test_pushing_the_same_version_again_changes_nothing(hub, version):
    first = push(version, NAME)
    sent = len(hub.uploads)
    assert push(version, NAME) == first
    assert len(hub.uploads) == sent and len(remote(hub).commits) == 2


def test_a_version_from_the_hub_is_opened_by_reference_and_without_a_network_once_known(hub, version):
    reference = push(version, NAME).reference
    opened = open_version(reference)
    assert opened.reference == reference and list(opened.rows("problems")) == list(version.rows("problems"))
    hub.requests.clear()
    assert open_version(reference).id == version.id
    assert hub.requests == []
    assert open_version(f"hf://datasets/{NAME}").id == version.id
    assert not any(".parquet" in request for request in hub.requests)
    with pytest.raises(InputError, match="on the Hub: write to a dataset of your own"):
        narrowed(opened)


def test_a_shared_version_goes_on_in_a_dataset_of_ones_own(hub, version, tmp_path):
    opened = open_version(push(version, NAME).reference)
    table = opened.table("problems").slice(0, 5)
    mine = commit(Change("narrow", {"rows": 5}, None, {"problems": table}, {}), [opened], tmp_path / "mine")
    assert mine.manifest.parents == (version.id,) and version_ids(tmp_path / "mine") == [mine.id]


# -- the card


def header(hub):
    return yaml.safe_load(remote(hub).files["README.md"].content.decode().split("---\n")[1])


def test_the_card_says_what_is_there(hub, version):
    import datasets

    push(narrowed(version), NAME, licence="cc-by-4.0", tags=["maths"])
    card = header(hub)
    assert card["license"] == "cc-by-4.0" and "maths" in card["tags"] and card["size_categories"] == ["n<1K"]
    assert [config["config_name"] for config in card["configs"]] == list(TABLES)
    for info in card["dataset_info"]:
        features = datasets.Features.from_arrow_schema(TABLES[info["config_name"]])
        written = datasets.DatasetInfo(features=features)._to_yaml_dict()["features"]
        assert info["features"] == written
        assert {split["name"]: split["num_examples"] for split in info["splits"]} == {"train": 5, "test": 4}
        shards = [path for path in remote(hub).files if path.startswith(f"{info['config_name']}/")]
        assert info["download_size"] == sum(len(remote(hub).files[path].content) for path in shards)
    text = remote(hub).files["README.md"].content.decode()
    assert version.id in text and "3 its problem was removed" in text and "mean pass rate" in text


LOADER = """
import json, sys
from datasets import load_dataset
name, cache, *revisions = sys.argv[1:]
for revision in revisions:
    rows = load_dataset(name, "prompts", split="train", revision=revision, cache_dir=cache)
    stream = load_dataset(name, "prompts", split="train", revision=revision, streaming=True)
    sides = sorted(load_dataset(name, revision=revision, streaming=True))
    print(json.dumps({"rows": rows.to_list(), "stream": list(stream), "columns": rows.column_names, "sides": sides}))
"""


def load_elsewhere(hub, tmp_path, *revisions):
    """What `datasets` makes of these revisions, in a process that knows nothing of cobalt."""
    settings = {
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HOME": str(tmp_path / "home"),
        "HF_TOKEN": READER,
        "USE_TORCH": "0",  # which `datasets` would import, for seconds, to stream
    }
    command = [sys.executable, "-c", LOADER, NAME, str(tmp_path / "loaded"), *revisions]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_other_people_load_the_tables_and_a_new_column_with_a_new_version(hub, version, tmp_path, monkeypatch):
    push(version, NAME)
    (loaded,) = load_elsewhere(hub, tmp_path, "main")
    assert loaded["rows"] == loaded["stream"] == list(version.rows("prompts", "train"))
    assert loaded["sides"] == ["test", "train"]
    wider = TABLES["prompts"].append(pa.field("hint", pa.list_(pa.string())))
    rows = [{**row, "hint": ["try"]} for row in version.rows("prompts")]
    monkeypatch.setitem(TABLES, "prompts", wider)
    with pytest.raises(InputError, match="other columns"):
        push(version, NAME)
    problems = version.table("problems")
    made = Change("import", {}, None, {"problems": problems, "prompts": table_from_rows("prompts", rows)}, {})
    wide = commit(made, dataset=tmp_path / "wide")
    push(wide, NAME)
    again, before = load_elsewhere(hub, tmp_path, "main", version.id)
    assert again["columns"] == wider.names and again["stream"] == list(wide.rows("prompts", "train"))
    assert before == loaded


# -- accidents and refusals


def test_a_stale_parent_is_retried_on_the_newer_state(hub, version):
    push(version, NAME)
    second, sent = narrowed(version), len(hub.uploads)
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


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("hf_wrong0123456789", "rejected the token"),
        (READER, "needs write access"),
        ("hf_broken\nX-Injected: 1", "characters that no token has"),
        ("hf_brökén", "characters that no token has"),
    ],
)
def test_a_bad_token_is_one_line_that_does_not_repeat_it(hub, version, token, words):
    with pytest.raises(CobaltError, match=words) as refusal:
        push(version, NAME, token=token)
    said = str(refusal.value)
    assert "\n" not in said and token not in said and token[:9] not in said.replace("hf_TOKEN", "")
    assert refusal.value.__context__ is None or refusal.value.__suppress_context__
    assert NAME not in hub.repositories


def test_without_a_token_the_message_says_how_to_give_one(hub, version, monkeypatch, tmp_path):
    import huggingface_hub.constants as constants

    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(HubError, match="asks for a token; set HF_TOKEN"):
        push(version, NAME)


def test_the_token_is_written_nowhere(hub, version, tmp_path):
    push(version, NAME, token=WRITER)
    pull(NAME, tmp_path / "pulled", token=WRITER)
    open_version(f"hf://datasets/{NAME}")
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or WRITER.encode() not in path.read_bytes(), path
    assert all(WRITER.encode() not in file.content for file in remote(hub).files.values())


def test_a_private_push_never_lands_where_everybody_reads(hub, version):
    push(version, NAME, private=False)
    state = remote(hub).head
    with pytest.raises(InputError, match="everybody can read it"):
        push(narrowed(version), NAME)
    assert remote(hub).head == state


def test_a_repository_of_something_else_is_not_overwritten(hub, version):
    push(version, NAME)
    remote(hub).commit({"README.md": File(b"mine", False), "cats.csv": File(b"cat", False)})
    with pytest.raises(InputError, match=re.escape("did not write (cats.csv)")):
        push(version, NAME)


def test_damaged_shards_are_not_published(hub, version):
    path = version.path / SHARD
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match="has the sha256"):
        push(version, NAME)
    assert hub.requests == []


def test_a_hub_that_is_not_there_is_one_line(hub, version, monkeypatch, tmp_path):
    import huggingface_hub.constants as constants

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
        ("anna/none", "no such dataset"),
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
    with pytest.raises(InputError, match="was not made from"):
        pull(NAME, tmp_path / "mine")
    assert version_ids(tmp_path / "mine") == [mine.id] and open_version(tmp_path / "mine").id == mine.id


# -- strangers


def same_size(content):
    return content[:100] + bytes([content[100] ^ 1]) + content[101:]


def edited(hub, edit):
    fields = json.loads(remote(hub).files["manifest.json"].content)
    edit(fields)
    return json.dumps(fields).encode()


TAMPERING = {
    "a flipped bit": lambda hub: (SHARD, same_size(remote(hub).files[SHARD].content)),
    "a shorter shard": lambda hub: (SHARD, remote(hub).files[SHARD].content[:-1]),
    "other counts": lambda hub: ("manifest.json", edited(hub, lambda f: f["tables"]["problems"][1].update(rows=7))),
    "other arguments": lambda hub: ("manifest.json", edited(hub, lambda f: f.update(arguments={"x": 1}))),
    "another id": lambda hub: ("manifest.json", edited(hub, lambda f: f.update(id="0" * 12))),
    "a way out": lambda hub: ("manifest.json", edited(hub, lambda f: f["tables"]["problems"][1].update(path="../x"))),
    "no manifest": lambda hub: ("manifest.json", b"<html>"),
}


@pytest.mark.parametrize("kind", TAMPERING)
def test_what_was_tampered_with_is_refused_and_nothing_is_kept(hub, version, tmp_path, kind):
    push(version, NAME)
    remote(hub).replace(*TAMPERING[kind](hub))
    for wanted in (NAME, f"{NAME}@{version.id}"):
        with pytest.raises(HubError, match=f"{NAME}"):
            pull(wanted, tmp_path / "pulled")
        with pytest.raises(HubError):
            open_version(f"hf://datasets/{wanted}")
    assert not (tmp_path / "pulled").exists()
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_moved_tag_is_refused(hub, version, tmp_path):
    push(version, NAME)
    second = push(narrowed(version), NAME)
    remote(hub).tags[version.id] = second.commit
    with pytest.raises(HubError, match="somebody has moved the tag"):
        pull(f"{NAME}@{version.id}", tmp_path / "pulled")


def test_nothing_but_the_shards_of_the_manifest_is_taken(hub, version, tmp_path):
    push(version, NAME)
    more = {path: File(b"evil", False) for path in ("evil.py", "problems/evil-00000.parquet", "README.md")}
    remote(hub).commit({**remote(hub).files, **more})
    pulled = pull(NAME, tmp_path / "pulled")
    assert list(verify(pulled)) == []
    assert not [
        path for path in Path(tmp_path / "pulled").rglob("*") if path.is_file() and path.read_bytes() == b"evil"
    ]


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


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_stops_a_pull_with_one_clear_line(hub, tmp_path):
    noise = random.Random(0)
    problems = [make_problem(f"p{number}") for number in range(100)]
    large = [replace(problem, statement=noise.randbytes(4000).hex()) for problem in problems]
    push(make_dataset(tmp_path / "large", large), NAME)
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], check=True)
    try:
        with pytest.raises(CobaltError, match="no space left"):
            pull(NAME, disk / "pulled")
        assert version_ids(disk / "pulled") == []
    finally:
        subprocess.run(["umount", disk], check=True)
