"""Log and diff: order of ancestors, parents elsewhere, and differences down to a single value."""

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from builders import keep_first, make_all_tables, make_problem, rated
from hypothesis import given, settings
from hypothesis import strategies as st

from cobalt_data.commit import Change, Counts, commit
from cobalt_data.dataset import open_version, table_from_rows
from cobalt_data.dedup import DedupConfig, find_duplicates
from cobalt_data.diff import diff
from cobalt_data.history import history
from cobalt_data.stats import stats


def problems(*numbers, **changes):
    return [replace(make_problem(f"p{number}"), **changes).to_row() for number in numbers]


def step(version, name, rows, dropped=None):
    counts = Counts(version.manifest.rows("problems") if version else len(rows), len(rows), dropped or {})
    return Change(name, {}, None, {"problems": table_from_rows("problems", rows)}, {"problems": counts})


@pytest.fixture
def chain(tmp_path):
    """Three versions: 40 problems, then 30 of them, then those 30 and one more, one of the old ones changed."""
    first = commit(step(None, "import", problems(*range(40))), dataset=tmp_path / "d")
    second = commit(step(first, "dedup", problems(*range(30)), {"duplicate": 10}), [first])
    rows = [*problems(0, title="renamed"), *problems(*range(1, 30), 99)]
    return first, second, commit(step(second, "mend", rows, {"bad": 1}), [second])


def test_the_log_lists_a_version_before_what_it_was_made_from(chain):
    assert [entry.operation for entry in history(chain[-1])] == ["mend", "dedup", "import"]
    assert [entry.version for entry in history(chain[1])] == [chain[1].id, chain[0].id]


def test_the_log_of_a_merge_keeps_children_before_parents_even_within_one_second(tmp_path):
    root = commit(step(None, "import", problems(*range(9))), dataset=tmp_path / "d")
    sides = [root]
    for number in range(1, 6):
        base = open_version(f"{tmp_path / 'd'}@{sides[-1].id}")
        sides.append(commit(step(base, f"cut {number}", problems(*range(9 - number))), [base]))
    merged = commit(step(sides[-1], "merge", problems(1, 2, 3)), [sides[-1], *sides[:-1]])
    listed = [entry.version for entry in history(merged)]
    assert sorted(listed) == sorted({merged.id, *(side.id for side in sides)})
    for entry in history(merged):
        assert all(listed.index(entry.version) < listed.index(parent) for parent in entry.parents)


def test_parents_in_another_dataset_are_named_not_followed(chain, tmp_path):
    moved = commit(step(chain[0], "split", problems(1, 2)), [chain[0]], dataset=tmp_path / "elsewhere")
    (entry,) = history(moved)
    assert entry.parents_elsewhere == (chain[0].id,)


def test_a_diff_counts_and_names_what_changed(chain):
    first, second, third = chain
    table = diff(second, third).tables["problems"]
    assert (table.added, table.removed, table.changed, table.unchanged) == (1, 0, 1, 29)
    assert table.examples == {"added": ("p99",), "changed": ("p0",)}
    over_both = diff(first, third)
    assert (over_both.tables["problems"].removed, over_both.tables["problems"].unchanged) == (10, 29)
    assert [entry.operation for entry in over_both.steps] == ["dedup", "mend"]
    assert over_both.dropped == {"problems": {"duplicate": 10, "bad": 1}}


def test_a_diff_backwards_mirrors_the_diff_forwards(chain):
    there, back = (diff(*pair).tables["problems"] for pair in (chain[::2], chain[::-2]))
    assert (there.added, there.removed, there.changed) == (back.removed, back.added, back.changed)
    assert diff(*chain[::-2]).steps == []


def test_a_version_does_not_differ_from_itself_or_from_the_same_rows_elsewhere(chain, tmp_path):
    twin = commit(step(None, "import", problems(*range(40))), dataset=tmp_path / "twin")
    for other in (chain[0], twin):
        assert diff(chain[0], other).tables["problems"].unchanged == 40


def test_only_shards_that_differ_are_read(chain, monkeypatch, tmp_path):
    monkeypatch.setattr("cobalt_data.shards.ROWS_PER_SHARD", 8)
    first = commit(step(None, "import", problems(*range(200))), dataset=tmp_path / "many")
    second = commit(step(first, "narrow", problems(*range(1, 200))), [first])
    contents = [{shard.content for shard in version.manifest.tables["problems"]} for version in (first, second)]
    for shard in first.manifest.tables["problems"]:
        if shard.content in contents[1]:
            (first.path / shard.path).write_bytes(b"not read")
    table = diff(first, second).tables["problems"]
    assert (table.removed, table.unchanged, table.examples) == (1, 199, {"removed": ("p0",)})


def test_every_table_and_every_value_is_compared(chain, tmp_path):
    version = chain[-1]
    made = [rated(make_problem(f"p{number}"), [0.5, 1.0]) for number in (1, 2)]
    grown = commit(
        Change("collect", {}, 0, {"trajectories": table_from_rows("trajectories", [t.to_row() for t in made])}, {}),
        [version],
    )
    tables = diff(version, grown).tables
    assert (tables["trajectories"].added, tables["problems"].unchanged) == (2, 31)
    (row, other) = grown.rows("trajectories")
    changes = (
        {"perturbation": ""},
        {"solved": not row["solved"]},
        {"best_pass_rate": 0.25},
        {"messages": row["messages"][:-1]},
        {"messages": [{**row["messages"][0], "role": "system"}, *row["messages"][1:]]},
    )
    for number, change in enumerate(changes):
        table = table_from_rows("trajectories", [{**row, **change}, other])
        mended = commit(Change("mend", change, 0, {"trajectories": table}, {}), [grown], tmp_path / str(number))
        assert diff(grown, mended).tables["trajectories"].changed == 1, change


def test_hashes_beside_the_shards_tell_the_same_as_the_values(tmp_path, monkeypatch):
    monkeypatch.setattr("cobalt_data.shards.ROWS_PER_SHARD", 64)
    monkeypatch.setattr("cobalt_data.shards.FEWEST_ROWS", 8)
    first = commit(step(None, "import", problems(*range(300))), dataset=tmp_path / "d")
    rows = [*problems(0, 200, title="renamed"), *problems(*range(10, 200), *range(201, 310))]
    second = commit(step(first, "mend", rows), [first])
    with_hashes = diff(first, second).tables["problems"]
    assert (with_hashes.added, with_hashes.removed, with_hashes.changed) == (10, 9, 2)
    for version in (first, second):
        hashed = {path.name for path in (version.path / "hashes" / "problems").iterdir()}
        assert {Path(shard.path).name for shard in version.manifest.tables["problems"] if shard.rows >= 8} == hashed
    shutil.rmtree(first.path / "hashes")
    assert diff(first, second).tables["problems"] == with_hashes


@settings(max_examples=15, deadline=None)
@given(st.sets(st.integers(0, 60)), st.sets(st.integers(0, 60)))
def test_a_diff_agrees_with_the_sets_of_ids(tmp_path_factory, old, new):
    path = tmp_path_factory.mktemp("sets")
    order = random.Random(0)
    before, after = (
        commit(step(None, "import", order.sample(rows, len(rows))), dataset=path / name)
        for name, rows in (("a", problems(*old, 100)), ("b", problems(*new, 100)))
    )
    table = diff(before, after).tables["problems"]
    assert (table.added, table.removed, table.changed) == (len(new - old), len(old - new), 0)


@pytest.mark.parametrize("name", ["st*r", "my[1]", "q?", "a:b", "back\\s", "{a,b}"])
def test_a_path_is_no_pattern_and_no_address_whatever_is_in_it(tmp_path, name):
    others = ("star", "my1", "q1", "a")
    for other in others:
        make_all_tables(tmp_path / other)
    version = make_all_tables(tmp_path / name)
    plain = open_version(tmp_path / "star")
    assert version.id == plain.id and stats(version) == stats(plain)
    everything = DedupConfig(near=True)
    assert find_duplicates(version, everything) == find_duplicates(plain, everything)
    fewer = keep_first(version, 3)
    assert {rows.removed for rows in diff(version, fewer).tables.values()} == {9}
