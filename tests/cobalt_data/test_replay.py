"""Every version can be made again from its manifest; what cannot says why in one line."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from scripted import block
from toy_model import save_toy_model

from cobalt_data.collection import CollectConfig, collect
from cobalt_data.commit import Change, commit
from cobalt_data.cut import CutConfig, cut
from cobalt_data.dataset import open_version, version_ids
from cobalt_data.dedup import DedupConfig, dedup
from cobalt_data.engines import Sampling, open_engine
from cobalt_data.errors import CobaltError, InputError
from cobalt_data.importers import import_problems
from cobalt_data.perturb import PerturbConfig, perturb
from cobalt_data.replay import REPEATED, replay
from cobalt_data.split import SplitConfig, split
from cobalt_data.tokens import token_counter
from cobalt_data.verify import verify
from sandbox import Pool

PROGRAMS = ["print(2 * int(input()))", "print(7)", "print(input() * 2)", "print(1 / 0)"]
COLLECT = CollectConfig(n=6, turns=2, sampling=Sampling(temperature=1.0, top_p=1.0, max_tokens=2), template="paper")


@pytest.fixture(scope="module")
def pool():
    with Pool("process", workers=2) as pool:
        yield pool


@pytest.fixture(scope="module")
def made(tmp_path_factory, pool):
    """A version of every operation, by its name, each made from the one before; the import is of a file beside them."""
    folder = tmp_path_factory.mktemp("replay")
    dataset, source = folder / "data", write_source(folder / "problems.jsonl")
    engine = open_engine("transformers", save_toy_model(folder / "toy", [block(each) for each in PROGRAMS], 1024))
    imported = import_problems(source, "kickstart_codejam", limit=6)
    versions = {"import": commit(imported.as_change(source, format="kickstart_codejam", limit=6), dataset=dataset)}

    def step(operation, make):
        parent = list(versions.values())[-1]
        versions[operation] = commit(make(parent), [parent])

    step("split", lambda parent: split(parent, SplitConfig(seed=1)))
    with collect(versions["split"], engine, pool, COLLECT) as collected:
        versions["collect"] = commit(collected.change, [versions["split"]])
    config = CutConfig("estimate", select="all", skip_solved=False)
    step("cut", lambda parent: cut(parent, config, token_counter("estimate")))
    step("augment", lambda parent: perturb(parent, PerturbConfig("estimate"), pool, token_counter("estimate")))
    step("dedup", lambda parent: dedup(parent, DedupConfig()))
    return versions


def write_source(path):
    rows = [
        {
            "id": f"p{number}",
            "title": f"Double {number}",
            "source": "tests",
            "question": f"Double {number}, {7 * number} and {11 * number} for machine {13 * number} of hall {17 * number}.",
            "float_tolerance": 0.0,
            "tests": [{"input": f"{n}\n", "output": f"{2 * n}\n", "public": n < 4} for n in range(1, 6)],
        }
        for number in range(8)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("operation", ["import", "split", "collect", "cut", "augment", "dedup"])
def test_every_operation_repeated_gives_the_same_id_and_writes_nothing(made, operation):
    version = made[operation]
    before = sorted(version.dataset.rglob("*"))
    assert version.manifest.operation == operation in REPEATED
    assert replay(version, backend="process").id == version.id
    assert sorted(version.dataset.rglob("*")) == before


def test_the_repeated_versions_have_something_to_repeat(made):
    assert made["collect"].manifest.rows("trajectories") == 36 and made["dedup"].manifest.counts["prompts"].dropped
    assert made["augment"].manifest.rows("prompts") > made["cut"].manifest.rows("prompts") > 36


def test_a_replay_can_be_written_elsewhere_and_be_repeated_there(made, tmp_path):
    """The parents are found where they were, from wherever the command is given."""
    again = replay(made["augment"], tmp_path / "again", backend="process")
    assert (again.id, again.dataset) == (made["augment"].id, tmp_path / "again") and not list(verify(again))
    assert replay(again, backend="process").id == again.id


def test_a_parent_that_is_gone_is_named(made, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(made["cut"].dataset, copy, symlinks=True)
    shutil.rmtree(copy / "versions" / made["collect"].id)
    with pytest.raises(InputError, match=f"made from version {made['collect'].id}, which is not in {copy}"):
        replay(open_version(f"{copy}@{made['cut'].id}"))


def test_the_source_of_an_import_may_have_moved_but_not_changed(made, tmp_path):
    version = made["import"]
    with pytest.raises(InputError, match="is not here: say with --source where"):
        replay(version, source=str(tmp_path / "gone.jsonl"))
    moved = write_source(tmp_path / "moved.jsonl")
    assert replay(version, source=moved).id == version.id
    Path(moved).write_text("{}\n")
    with pytest.raises(InputError, match=r"is not what .* was imported from: its sha256 is"):
        replay(version, source=moved)


def test_bad_rows_and_checked_solutions_are_repeated(tmp_path):
    source = write_source(tmp_path / "bad.jsonl")
    Path(source).write_text(Path(source).read_text() + "no json\n")
    imported = import_problems(source, "kickstart_codejam", skip_bad_rows=True)
    version = commit(
        imported.as_change(source, format="kickstart_codejam", check_solutions=True), dataset=tmp_path / "d"
    )
    assert replay(version, backend="process").id == version.id


def tampered(version, **changed):
    """The same manifest with other arguments, as another machine or release would have written it."""
    manifest = version.manifest
    arguments = {**manifest.arguments, **changed.pop("arguments", {})}
    return replace(version, manifest=replace(manifest, arguments=arguments, **changed))


def test_an_outcome_that_differs_says_what_differs(made):
    version = tampered(made["split"], arguments={"seed": 2}, seed=2)
    with pytest.raises(
        CobaltError, match=f"version {version.id}, repeated, is .*: other problems; it was made by cobalt"
    ):
        replay(version)


@pytest.mark.parametrize(
    ("operation", "changed", "message"),
    [
        ("split", {"arguments": {"colour": "red"}}, "does not understand the arguments of its split .*'colour'"),
        ("split", {"arguments": {"train": 7}}, "split.train is 7"),
        ("split", {"operation": "transmogrify"}, "cannot repeat the operation 'transmogrify': install the one"),
        ("split", {"parents": ()}, "has no parents, which split needs"),
        ("collect", {"arguments": {"engine": "openai"}}, "by the engine openai, which may answer otherwise"),
        ("collect", {"arguments": {"model_revision": "0" * 16}}, "has the revision .* was collected with 0000"),
        ("collect", {"arguments": {"template_hash": "0" * 16}}, "template paper is not what it was"),
        ("collect", {"arguments": {"model": "no/such/model"}}, "model 'no/such/model' is unknown"),
        ("cut", {"parents": ("0" * 12,)}, "made from version 000000000000, which is not in"),
    ],
)
def test_what_cannot_be_repeated_here_says_why_in_one_line(made, operation, changed, message):
    with pytest.raises(InputError, match=message) as refused:
        replay(tampered(made[operation], **changed), backend="process")
    assert "\n" not in str(refused.value)


def test_replaying_leaves_the_latest_version_alone(made):
    latest = open_version(made["dedup"].dataset).id
    replay(made["split"])
    assert open_version(made["dedup"].dataset).id == latest and made["split"].id in version_ids(made["split"].dataset)


def test_an_operation_outside_the_table_is_no_dead_end_for_its_children(made, tmp_path):
    """A version made by hand cannot be repeated, but what was made from it can."""
    by_hand = commit(
        Change("by hand", {}, None, {"problems": made["import"].table("problems")}, {}), dataset=tmp_path / "d"
    )
    child = commit(split(by_hand, SplitConfig()), [by_hand])
    assert replay(child).id == child.id
