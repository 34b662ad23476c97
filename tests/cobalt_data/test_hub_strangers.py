"""The Hub, when tokens are bad, repositories are not what they should be and content was tampered with."""

import json
import re

import huggingface_hub.constants as constants
import pytest
from builders import keep_first, make_all_tables
from hub_server import READER, WRITER, File

from cobalt_data.dataset import open_version
from cobalt_data.errors import CobaltError, HubError, InputError
from cobalt_data.pull import pull
from cobalt_data.push import push
from cobalt_data.verify import verify

NAME = "anna/things"
SHARD = "problems/train-00000.parquet"


@pytest.fixture
def version(tmp_path):
    return make_all_tables(tmp_path / "d")


def remote(hub):
    return hub.repositories[NAME]


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
        push(keep_first(version, 9), NAME)
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
    second = push(keep_first(version, 9), NAME)
    remote(hub).tags[version.id] = second.commit
    with pytest.raises(HubError, match="somebody has moved the tag"):
        pull(f"{NAME}@{version.id}", tmp_path / "pulled")


def test_nothing_but_the_shards_of_the_manifest_is_taken(hub, version, tmp_path):
    push(version, NAME)
    more = {path: File(b"evil", False) for path in ("evil.py", "problems/evil-00000.parquet", "README.md")}
    remote(hub).commit({**remote(hub).files, **more})
    pulled = pull(NAME, tmp_path / "pulled")
    assert list(verify(pulled)) == []
    assert not [path for path in (tmp_path / "pulled").rglob("*") if path.is_file() and path.read_bytes() == b"evil"]
