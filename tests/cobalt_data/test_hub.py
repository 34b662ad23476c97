"""The Hub, over HTTP with the real clients: push, pull, references and the card."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pyarrow as pa
import pytest
import yaml
from builders import keep_first, make_all_tables, make_dataset, make_problem, rated, stdin_test
from hub_server import READER

from cobalt_data.commit import Change, commit
from cobalt_data.dataset import open_version, table_from_rows, version_ids
from cobalt_data.errors import HubError, InputError
from cobalt_data.gc import gc
from cobalt_data.pull import pull
from cobalt_data.push import push
from cobalt_data.schemas import TABLES
from cobalt_data.verify import verify
from cobalt_data.viewer import rows_too_large

NAME = "anna/things"


@pytest.fixture
def version(tmp_path):
    return make_all_tables(tmp_path / "d")


def remote(hub):
    return hub.repositories[NAME]


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
    second = keep_first(version, 9)
    push(second, NAME)
    shards = {shard.path for shards in second.manifest.tables.values() for shard in shards}
    assert {path for path in remote(hub).files if path.endswith(".parquet")} == shards
    assert len(hub.uploads) - sent < len(shards)  # shards that both share are not sent again
    assert pull(NAME, tmp_path / "new").id == second.id
    assert pull(f"{NAME}@{version.id}", tmp_path / "old").manifest == version.manifest
    assert pull(NAME, tmp_path / "old").id == second.id  # which goes on from what is there
    assert open_version(tmp_path / "old").id == second.id
    grandchild = keep_first(keep_first(second, 8), 7)
    push(grandchild, NAME)
    assert pull(NAME, tmp_path / "old").id == open_version(tmp_path / "old").id == grandchild.id


def test_a_pulled_version_is_the_latest_also_where_the_dataset_had_it(hub, version, tmp_path):
    push(version, NAME)
    second = keep_first(version, 9)
    push(second, NAME)
    for reference, wanted in ((NAME, second), (f"{NAME}@{version.id}", version), (NAME, second), (NAME, second)):
        pulled = pull(reference, tmp_path / "pulled")
        assert pulled.id == pulled.latest_when_opened == open_version(tmp_path / "pulled").id == wanted.id
    assert {removed.path.name for removed in gc(tmp_path / "pulled", versions=True, dry_run=True)} == set()


def test_pulling_again_does_not_turn_away_from_work_that_the_hub_lacks(hub, version, tmp_path):
    push(version, NAME)
    mine = keep_first(pull(NAME, tmp_path / "pulled"), 9)
    again = pull(NAME, tmp_path / "pulled")
    assert (again.id, again.latest_when_opened) == (version.id, mine.id)
    assert open_version(tmp_path / "pulled").id == mine.id
    pull(f"{NAME}@{version.id}", tmp_path / "pulled")  # asked for by its id
    assert open_version(tmp_path / "pulled").id == version.id


def test_pushing_the_same_version_again_changes_nothing(hub, version):
    first = push(version, NAME)
    sent = len(hub.uploads)
    assert push(version, NAME) == first
    assert len(hub.uploads) == sent and len(remote(hub).commits) == 2


def test_rows_that_the_viewer_of_the_hub_does_not_show_are_counted(hub, tmp_path):
    sizes = [1_999_000, 3_000_000, 5, 2_100_000]  # the third has it in many small parts
    tests = [[stdin_test("1\n", "x" * size)] for size in sizes]
    tests[2] = [stdin_test(f"{number}\n", "x" * 100) for number in range(20_000)]
    problems = [make_problem(f"p{number}", given) for number, given in enumerate(tests)]
    long = rated(problems[0], [0.0, 1.0])
    long = replace(long, messages=(*long.messages[:-1], {"role": "user", "content": "é" * 1_100_000}))
    version = make_dataset(tmp_path / "large", problems, [long, rated(problems[2], [0.0, 1.0])])
    assert push(version, NAME).too_large == rows_too_large(version) == {"problems": 3, "trajectories": 1}
    small = make_all_tables(tmp_path / "small")
    assert rows_too_large(small) == {}


def test_a_version_that_is_pushed_again_is_what_its_tag_leads_to(hub, version, tmp_path):
    first = push(version, NAME)
    remote(hub).replace("manifest.json", b"{}")
    with pytest.raises(HubError):
        pull(first.reference, tmp_path / "refused")
    again = push(version, NAME)
    assert remote(hub).tags == {version.id: again.commit} and again.commit != first.commit
    assert pull(again.reference, tmp_path / "pulled").id == version.id
    push(keep_first(version, 9), NAME)
    licensed = push(version, NAME, licence="cc-by-4.0")
    assert remote(hub).tags[version.id] == licensed.commit == remote(hub).head
    assert header(hub)["license"] == "cc-by-4.0"


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
        keep_first(opened, 9)


def test_a_shared_version_goes_on_in_a_dataset_of_ones_own(hub, version, tmp_path):
    opened = open_version(push(version, NAME).reference)
    table = opened.table("problems").slice(0, 5)
    mine = commit(Change("narrow", {"rows": 5}, None, {"problems": table}, {}), [opened], tmp_path / "mine")
    assert mine.manifest.parents == (version.id,) and version_ids(tmp_path / "mine") == [mine.id]


def header(hub):
    return yaml.safe_load(remote(hub).files["README.md"].content.decode().split("---\n")[1])


def test_the_card_says_what_is_there(hub, version):
    import datasets

    push(keep_first(version, 9), NAME, licence="cc-by-4.0", tags=["maths"])
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
