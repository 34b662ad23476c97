"""Several collections become one: united where they agree, refused by name where they contradict each other."""

from dataclasses import replace
from itertools import permutations

import pytest
from builders import TEMPLATE, make_all_tables, make_dataset, make_problem, make_trajectory, make_turn, rated

from cobalt_data.commit import Change, commit
from cobalt_data.dataset import open_version
from cobalt_data.errors import InputError
from cobalt_data.merge import LEAVE_OUT, MergeConfig, in_order, merge
from cobalt_data.replay import replay
from cobalt_data.rows import UNSPLIT, Prompt
from cobalt_data.verify import verify
from sandbox import Judge


def merged(versions, target, **settings):
    return commit(merge(versions, MergeConfig(**settings)), in_order(versions), target)


def by_model(problem, model):
    return make_trajectory(problem, [make_turn(f"print('{model}')", 0.5, 0.5), make_turn("x", 1.0, 1.0)], model=model)


def prompt_of(made):
    return Prompt(made.trajectory_id, made.problem_id, 1, made.messages[:-2], (), Judge(), 0.5, None, 9, made.split)


@pytest.fixture
def collections(tmp_path):
    """Three that share a problem, with trajectories of three models, one of which two of them hold."""
    shared, alone = make_problem("shared"), make_problem("alone", split="test")
    one, two, three = (by_model(shared, model) for model in ("one", "two", "three"))
    return [
        make_dataset(tmp_path / "a", [shared], [one], [prompt_of(one)]),
        make_dataset(tmp_path / "b", [shared, alone], [two, one]),
        make_dataset(tmp_path / "c", [shared], [three, one], [prompt_of(three), prompt_of(one)]),
    ]


def test_what_several_hold_is_taken_once_and_models_come_together(collections, tmp_path):
    version = merged(collections, tmp_path / "all")
    assert {row["model"] for row in version.rows("trajectories")} == {"one", "two", "three"}
    counts = version.manifest.counts
    assert (counts["problems"].rows_in, counts["problems"].rows_out, counts["problems"].dropped) == (
        4, 2, {"in several of the collections": 2},
    )  # fmt: skip
    assert counts["trajectories"].dropped == {"in several of the collections": 2}
    assert counts["prompts"].dropped == {"in several of the collections": 1}
    assert list(verify(version)) == []
    assert version.manifest.parents == tuple(sorted(collection.id for collection in collections))


def test_the_order_of_the_collections_does_not_matter(collections, tmp_path):
    ids = {merged(order, tmp_path / f"all{number}").id for number, order in enumerate(permutations(collections))}
    assert len(ids) == 1
    assert merged([*collections, collections[0]], tmp_path / "again").id in ids


def test_a_merge_can_be_replayed_and_merged_again(collections, tmp_path):
    first = merged(collections[:2], tmp_path / "first")
    assert replay(first).id == first.id
    both = merged([first, collections[2]], tmp_path / "both")
    tables = ("problems", "trajectories", "prompts")
    whole = merged(collections, tmp_path / "whole")
    assert all(list(both.rows(name)) == list(whole.rows(name)) for name in tables)


@pytest.mark.parametrize(
    ("name", "change", "column"),
    [
        ("problems", {"statement": "Something else."}, "statement"),
        ("problems", {"difficulty": "hard"}, "difficulty"),
        ("trajectories", {"best_pass_rate": 0.25}, "best_pass_rate"),
    ],
)
def test_one_id_with_two_contents_is_refused_by_row_and_column(tmp_path, name, change, column):
    problem = make_problem()
    rows = {"problems": problem.to_row(), "trajectories": rated(problem, [0.5, 1.0]).to_row()}
    first = make_dataset(tmp_path / "a", [rows["problems"]], [rows["trajectories"]])
    rows[name] = {**rows[name], **change}
    second = make_dataset(tmp_path / "b", [rows["problems"]], [rows["trajectories"]])
    with pytest.raises(InputError, match=f"^{name} .* differs in {column} between ") as caught:
        merge([first, second], MergeConfig())
    assert first.reference in str(caught.value) and second.reference in str(caught.value)


def test_a_problem_on_two_sides_is_refused_or_left_out_with_all_made_from_it(tmp_path):
    train, test = make_problem("p", split="train"), make_problem("p", split="test")
    other = make_problem("q", split="train")
    first = make_dataset(tmp_path / "a", [train, other], [rated(train, [0.5, 1.0]), rated(other, [0.5, 1.0])])
    second = make_dataset(tmp_path / "b", [test])
    with pytest.raises(InputError, match=r"problem p stands on side test in .* and train in .*--sides leave-out"):
        merge([first, second], MergeConfig())
    version = merged([first, second], tmp_path / "c", sides=LEAVE_OUT)
    assert [row["problem_id"] for row in version.rows("problems")] == ["q"]
    assert [row["problem_id"] for row in version.rows("trajectories")] == ["q"]
    assert version.manifest.counts["problems"].dropped == {"in several of the collections": 1, "on two sides": 1}
    assert version.manifest.counts["trajectories"].dropped == {"its problem was removed": 1}


def test_a_side_that_one_collection_knows_holds_for_what_the_others_hold(tmp_path):
    unsplit, placed = make_problem("p", split=UNSPLIT), make_problem("p", split="test")
    first = make_dataset(tmp_path / "a", [unsplit], [by_model(unsplit, "one")])
    second = make_dataset(tmp_path / "b", [placed], [by_model(placed, "one"), by_model(placed, "two")])
    version = merged([first, second], tmp_path / "c")
    assert {row["split"] for name in ("problems", "trajectories") for row in version.rows(name)} == {"test"}
    assert version.manifest.rows("trajectories") == 2


def test_the_templates_of_the_manifests_are_kept(tmp_path):
    problem = make_problem()
    versions = []
    for name in ("paper", "own"):
        parent = make_dataset(tmp_path / name, [problem])
        trajectory = replace(by_model(problem, name), sampling={"template": name})
        table = make_dataset(tmp_path / f"{name}-rows", [problem], [trajectory]).table("trajectories")
        facts = {"template": name, "template_hash": TEMPLATE.hash}
        versions.append(commit(Change("collect", facts, 0, {"trajectories": table}, {}), [parent]))
    kept = [{"template": name, "template_hash": TEMPLATE.hash} for name in ("own", "paper")]
    version = merged(versions, tmp_path / "c")
    assert version.manifest.recorded["templates"] == kept
    again = merged([version, make_dataset(tmp_path / "d", [make_problem("z")])], tmp_path / "e")
    assert again.manifest.recorded["templates"] == kept


def test_what_cannot_be_merged_is_told(tmp_path):
    version = make_all_tables(tmp_path / "a")
    for versions in ([version], [version, open_version(tmp_path / "a")]):
        with pytest.raises(InputError, match="at least two different versions"):
            merge(versions, MergeConfig())
    with pytest.raises(InputError, match=r"merge\.sides is 'x'"):
        MergeConfig("x")
    other = make_dataset(tmp_path / "b", [make_problem("z")])
    with pytest.raises(InputError, match="already holds a dataset"):
        merged([version, other], make_dataset(tmp_path / "c", [make_problem("y")]).dataset)
