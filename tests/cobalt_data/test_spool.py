"""Rows that do not fit into memory: the same order, the same versions and the same refusals as rows that do."""

import random
from dataclasses import replace

import pytest
from builders import count_words, make_dataset, make_problem, rated

from cobalt_data.commit import Change, commit
from cobalt_data.cut import CutConfig, cut
from cobalt_data.dataset import open_version, table_from_rows
from cobalt_data.errors import InputError
from cobalt_data.split import SplitConfig, split
from cobalt_data.spool import Spool, merged

PROBLEMS = [make_problem(f"p{number:03}", split="unsplit") for number in range(60)]
ROWS = [problem.to_row() for problem in PROBLEMS]


@pytest.fixture
def little_memory(monkeypatch):
    """Every few rows become a run on disk, which is read a few rows at a time."""
    monkeypatch.setattr("cobalt_data.spool.BYTES_IN_MEMORY", 4000)
    monkeypatch.setattr("cobalt_data.spool.ROWS_PER_PIECE", 3)


def test_rows_come_out_in_order_whatever_order_they_went_in(little_memory):
    rows = [{**row, "split": side} for row, side in zip(ROWS, ["b", "a", "c"] * 20, strict=True)]
    random.Random(0).shuffle(rows)
    spool = Spool.of_rows("problems", rows)
    expected = sorted(rows, key=lambda row: (row["split"], row["problem_id"]))
    assert spool.num_rows == 60 and spool.to_pylist() == expected == spool.to_pylist()
    keys = [row for piece in spool.ordered(["problem_id", "split"]) for row in piece.to_pylist()]
    assert keys == [{"problem_id": row["problem_id"], "split": row["split"]} for row in expected]


def test_streams_are_merged_whatever_their_pieces():
    drawn = random.Random(1)
    for _ in range(20):
        streams, left = [], sorted(ROWS, key=lambda row: row["problem_id"])
        owners = [drawn.randrange(3) for _ in left]
        for owner in range(3):
            own = [row for row, owned_by in zip(left, owners, strict=True) if owned_by == owner]
            size = drawn.randrange(1, 9)
            streams.append(iter([table_from_rows("problems", own[at : at + size]) for at in range(0, len(own), size)]))
        assert [row for piece in merged("problems", streams) for row in piece.to_pylist()] == left


def chain(path):
    trajectories = [rated(problem, [0.0, 0.5, 1.0], index) for problem in PROBLEMS[:20] for index in range(3)]
    version = make_dataset(path, PROBLEMS, trajectories)
    ids = [version.id]
    for verb in (
        lambda v: cut(v, CutConfig("words", select="all"), count_words),
        lambda v: split(v, SplitConfig(0.4, 0.3, 0.3)),
    ):
        version = commit(verb(version), [version])
        ids.append(version.id)
    return ids


def test_versions_do_not_depend_on_how_much_memory_there_was(tmp_path, request):
    ids = chain(tmp_path / "much")
    request.getfixturevalue("little_memory")
    assert chain(tmp_path / "little") == ids
    assert len(open_version(tmp_path / "little").manifest.splits("prompts")) > 1


def test_adding_and_removing_rows_makes_what_the_whole_table_makes(tmp_path):
    version = make_dataset(tmp_path / "d", PROBLEMS[:40], [rated(problem, [0.5]) for problem in PROBLEMS[:40]])
    kept = [replace(problem, split="unsplit").to_row() for problem in (*PROBLEMS[5:40], *PROBLEMS[40:])]
    whole = Change("mend", {}, None, {"problems": table_from_rows("problems", kept)}, {})
    added = {"problems": Spool.of_rows("problems", ROWS[40:])}
    removed = {"problems": [row["problem_id"] for row in ROWS[:5]]}
    parts = Change("mend", {}, None, {}, {}, added=added, removed=removed)
    versions = [commit(change, [version], tmp_path / name) for name, change in (("a", whole), ("b", parts))]
    assert versions[0].id == versions[1].id
    assert versions[1].manifest.counts["trajectories"].dropped == {"its problem was removed": 5}
    with pytest.raises(InputError, match="stands in several rows"):
        commit(Change("mend", {}, None, {}, {}, added={"problems": Spool.of_rows("problems", ROWS[:1])}), [version])


def test_an_untouched_table_is_shared_without_being_read(tmp_path):
    trajectories = [rated(problem, [0.5]) for problem in PROBLEMS]
    version = make_dataset(tmp_path / "d", PROBLEMS, trajectories)
    (shard,) = version.manifest.tables["trajectories"]
    removed = commit(Change("drop", {}, None, {}, {}, removed={"trajectories": ["none"]}), [version])
    assert (removed.path / shard.path).samefile(version.path / shard.path)
