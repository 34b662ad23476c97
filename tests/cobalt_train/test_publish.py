"""Exported models: what they compute, what their card says, and that the Hub gets the same."""

import json
import re
import shutil
import tempfile

import pytest
import torch
from hub_server import READER
from huggingface_hub import ModelCard, snapshot_download
from toy import CONFIG, no_file_longer_than
from transformers import AutoModelForCausalLM, AutoTokenizer

from cobalt_data.errors import CobaltError, HubError, InputError
from cobalt_train.publish import publish_model, render_model_card
from cobalt_train.trainer import Trainer


@pytest.fixture
def run(toy_model, toy_version, pool, tmp_path):
    Trainer(CONFIG, toy_version, toy_model, tmp_path / "run", pool=pool).run()
    return tmp_path / "run"


def weights(path):
    return AutoModelForCausalLM.from_pretrained(path, dtype="float32").state_dict()


def test_an_exported_model_is_the_checkpoint_without_the_optimizer(run, tmp_path):
    made = publish_model(str(run), tmp_path / "model", dtype="float32")
    assert made.step == CONFIG.steps and made.url is None
    before, after = weights(run / f"checkpoint-{CONFIG.steps:06d}"), weights(tmp_path / "model")
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    assert AutoTokenizer.from_pretrained(tmp_path / "model").chat_template
    assert not list((tmp_path / "model").glob("*.pt"))


def test_the_card_names_what_the_model_was_made_of(run, toy_version, tmp_path):
    publish_model(str(run), tmp_path / "model", licence="apache-2.0")
    card = ModelCard.load(tmp_path / "model" / "README.md")
    assert card.data.license == "apache-2.0" and "cobalt" in card.data.tags
    assert toy_version.id in card.text and f"after {CONFIG.steps} steps" in card.text
    assert f"| learning_rate | {CONFIG.learning_rate} |" in card.text
    pictures = re.findall(r"!\[.*\]\((.+)\)", card.text)
    assert pictures and all((tmp_path / "model" / name).is_file() for name in pictures)


def test_an_earlier_checkpoint_brings_the_metrics_of_its_own_steps_alone(run, tmp_path):
    earlier = run / f"checkpoint-{CONFIG.steps - 1:06d}"
    assert publish_model(str(earlier), tmp_path / "model").step == CONFIG.steps - 1
    rows = [json.loads(line) for line in (tmp_path / "model" / "metrics.jsonl").open()]
    assert [row["step"] for row in rows] == list(range(1, CONFIG.steps))


def test_a_run_that_was_killed_in_the_middle_of_a_line_is_exported(run, tmp_path):
    with (run / "metrics.jsonl").open("a") as journal:
        journal.write('{"step": ')
    publish_model(str(run), tmp_path / "model")
    assert len((tmp_path / "model" / "metrics.jsonl").read_text().splitlines()) == CONFIG.steps


def test_the_card_leaves_out_what_the_first_or_the_last_step_did_not_measure():
    facts = {"model": "a/directory", "model_revision": "ab" * 8, "step": 2, "code_version": "0", "dataset": "d"}
    rows = [{"step": 1, "reward": 0.5, "entropy": None}, {"step": 2, "reward": 1.0, "entropy": 2.0, "kl": None}]
    card = render_model_card("mine", {**facts, "config": {}}, rows)
    assert "| reward | 0.5 | 1 |" in card and "entropy" not in card
    assert "base_model" not in card
    assert "base_model: a/directory" in render_model_card(
        "mine", {**facts, "model_revision": "a" * 40, "config": {}}, []
    )


def test_the_hub_gets_a_private_repository_that_loads(hub, run, tmp_path):
    made = publish_model(str(run), repository="me/model")
    assert made.url == f"{hub.url}/me/model" and made.directory is None
    assert hub.repositories["me/model"].private
    path = snapshot_download("me/model", cache_dir=tmp_path / "cache")
    assert weights(path).keys() == weights(run / f"checkpoint-{CONFIG.steps:06d}").keys()


def test_a_token_that_may_not_write_is_one_line_without_the_token(hub, run, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", READER)
    with pytest.raises(HubError, match="the model me/model: the token does not allow this") as caught:
        publish_model(str(run), repository="me/model")
    assert READER not in str(caught.value) and "\n" not in str(caught.value)


def test_a_public_repository_is_not_written_by_somebody_who_wants_it_private(hub, run):
    publish_model(str(run), repository="me/model", private=False)
    with pytest.raises(InputError, match="everybody can read it"):
        publish_model(str(run), repository="me/model")


@pytest.mark.parametrize("given", [{"output": "model"}, {"repository": "me/model"}])
def test_a_full_disk_is_one_line_and_leaves_nothing(given, hub, run, tmp_path, monkeypatch):
    (target := tmp_path / "target").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(target))
    given = {**given, "output": target / given["output"]} if "output" in given else given
    with no_file_longer_than(10_000), pytest.raises(CobaltError, match=r"nothing was changed") as refused:
        publish_model(str(run), **given, dtype="float32")
    assert "\n" not in str(refused.value) and not isinstance(refused.value, InputError | HubError)
    assert not list(target.iterdir()) and not hub.repositories


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "there is no place to export to"),
        ({"output": "run"}, "is there already"),
        ({"output": "run/run.json/new"}, "there is no such directory); name another place with -o"),
        ({"output": "new", "dtype": "int4"}, "dtype is 'int4': use one of float32, bfloat16"),
        ({"repository": "model"}, "'model' is no repository of the Hub: write it as USER/NAME"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(given, said, run, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    if "output" in given:
        given = {**given, "output": tmp_path / given["output"]}
    with pytest.raises(InputError, match=re.escape(said)):
        publish_model(str(run), **given)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("record", [None, "", "{}", "[]", '"words"', '{"step": 1}'])
def test_a_model_that_cobalt_did_not_train_is_refused_by_name(toy_model, tmp_path, record):
    if record is not None:
        toy_model = shutil.copytree(toy_model, tmp_path / "strange")
        (toy_model / "cobalt.json").write_text(record)
    with pytest.raises(InputError, match="no checkpoint of `cobalt train` there"):
        publish_model(str(toy_model), tmp_path / "model")
    assert not (tmp_path / "model").exists()
