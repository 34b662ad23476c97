"""Versions: what is written is read back, by cobalt and without it; identity; atomicity; two writers; damage."""

import hashlib
import random
import signal
import subprocess
import sys
from pathlib import Path

import datasets
import duckdb
import pyarrow as pa
import pytest

from cobalt_data.commit import Change, Counts, commit
from cobalt_data.content import content_digest
from cobalt_data.dataset import open_version, table_from_rows, version_ids
from cobalt_data.errors import CobaltError, DatasetMoved, InputError
from cobalt_data.rows import Problem, Prompt
from sandbox import Judge


def problem(index: int, split: str = "train", statement: str = "Print 1.") -> dict:
    test = {"kind": "stdin", "public": True, "input": "", "output": str(index)}
    return Problem(f"p/{index}", "made", "t", None, statement, "", (test,), Judge(), (), {}, split).to_row()


def prompt(index: int, split: str = "train") -> dict:
    chat = ({"role": "user", "content": f"solve {index}"},)
    return Prompt(None, f"p/{index}", 0, chat, ({"kind": "stdin"},), Judge(), 0.0, None, 3, split).to_row()


def imported(rows: list[dict], **tables: list[dict]) -> Change:
    given = {"problems": rows, **tables}
    return Change(
        "import",
        {"format": "made"},
        None,
        {name: table_from_rows(name, of_table) for name, of_table in given.items()},
        {"problems": Counts(len(rows), len(rows))},
    )


def narrowed(version, keep: int) -> Change:
    table = version.table("problems")
    counts = Counts(table.num_rows, keep, {"too many": table.num_rows - keep})
    return Change("narrow", {"keep": keep}, None, {"problems": table.slice(0, keep)}, {"problems": counts})


def test_a_version_reads_back_what_was_written(tmp_path):
    rows = [problem(index) for index in range(5)]
    version = commit(imported(rows), dataset=tmp_path / "d")
    assert list(open_version(tmp_path / "d").rows("problems")) == rows
    assert open_version(f"{tmp_path / 'd'}@{version.id[:6]}").id == version.id
    assert version.manifest.counts["problems"] == Counts(5, 5)


def test_identity_rests_on_values_not_on_row_order_or_chunks(tmp_path):
    rows = [problem(index) for index in range(50)]
    shuffled = random.Random(1).sample(rows, len(rows))
    ids = {commit(imported(order), dataset=tmp_path / str(n)).id for n, order in enumerate((rows, shuffled))}
    ids.add(commit(imported(rows), dataset=tmp_path / "0").id)
    assert len(ids) == 1
    assert commit(imported([*rows[1:], problem(0, statement="Print 2.")]), dataset=tmp_path / "2").id not in ids


def test_content_digest_ignores_chunking_and_sees_every_field():
    rows = [prompt(index) for index in range(4)]
    table = table_from_rows("prompts", rows)
    chunked = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    assert content_digest(chunked) == content_digest(table)
    for field, value in {
        "problem_id": "q",
        "turn": 9,
        "prev_best_pass_rate": 0.5,
        "perturbation": "",
        "prompt": [],
    }.items():
        assert content_digest(table_from_rows("prompts", [{**rows[0], field: value}, *rows[1:]])) != content_digest(
            table
        )


def test_moving_a_character_between_cells_changes_the_digest():
    def digest(*titles):
        return content_digest(table_from_rows("problems", [{**problem(0), "title": title} for title in titles]))

    assert digest("ab", "c") != digest("a", "bc")


def test_a_removed_problem_takes_its_prompts_along_and_sides_are_inherited(tmp_path):
    first = commit(
        imported([problem(i) for i in range(9)], prompts=[prompt(i) for i in range(9)]), dataset=tmp_path / "d"
    )
    moved = [{**row, "split": "test"} for row in first.rows("problems")][:4]
    tables = {"problems": table_from_rows("problems", moved)}
    second = commit(Change("move", {}, None, tables, {"problems": Counts(9, 4)}), [first])
    assert {row["split"] for row in second.rows("prompts")} == {"test"}
    assert second.manifest.counts["prompts"] == Counts(9, 4, {"its problem was removed": 5})
    assert first.manifest.rows("prompts") == 9  # the parent is untouched


def test_unchanged_shards_are_shared_not_copied(tmp_path, monkeypatch):
    monkeypatch.setattr("cobalt_data.shards.ROWS_PER_SHARD", 8)
    first = commit(imported([problem(i) for i in range(200)]), dataset=tmp_path / "d")
    second = commit(narrowed(first, 190), [first])
    shared = [s for s in second.manifest.tables["problems"] if (second.path / s.path).stat().st_nlink == 2]
    assert len(shared) > 0.7 * len(first.manifest.tables["problems"]) > 10


def test_two_writers_keep_both_versions_and_the_second_is_told(tmp_path):
    first = commit(imported([problem(i) for i in range(9)]), dataset=tmp_path / "d")
    seen_by_both = open_version(tmp_path / "d")
    winner = commit(narrowed(seen_by_both, 5), [seen_by_both])
    with pytest.raises(DatasetMoved, match="is kept as"):
        commit(narrowed(seen_by_both, 6), [seen_by_both])
    assert open_version(tmp_path / "d").id == winner.id
    assert len(version_ids(tmp_path / "d")) == 3 and first.id in version_ids(tmp_path / "d")


def test_the_same_work_twice_is_one_version(tmp_path):
    first = commit(imported([problem(i) for i in range(9)]), dataset=tmp_path / "d")
    second = commit(narrowed(first, 5), [first])
    assert commit(narrowed(first, 5), [first]).id == second.id
    assert commit(imported([problem(i) for i in range(9)]), dataset=tmp_path / "d").id == first.id
    assert open_version(tmp_path / "d").id == second.id


def test_importing_over_another_dataset_is_refused(tmp_path):
    first = commit(imported([problem(1)]), dataset=tmp_path / "d")
    with pytest.raises(InputError, match="already holds a dataset"):
        commit(imported([problem(2)]), dataset=tmp_path / "d")
    assert version_ids(tmp_path / "d") == [first.id]


def test_repeated_ids_and_rows_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(InputError, match="stands in several rows"):
        commit(imported([problem(1), problem(1)]), dataset=tmp_path / "d")
    with pytest.raises(InputError, match="does not fit"):
        table_from_rows("problems", [{**problem(1), "title": 7}])
    assert version_ids(tmp_path / "d") == []


def test_references_that_lead_nowhere_say_so(tmp_path):
    (tmp_path / "plain").mkdir()
    version = commit(imported([problem(1)]), dataset=tmp_path / "d")
    for reference, words in {
        tmp_path / "none": "no such dataset",
        tmp_path / "plain": "not a cobalt dataset",
        f"{tmp_path / 'd'}@ffffffff": "no such version",
        f"{tmp_path / 'd'}@../..": "no such dataset",
        f"{tmp_path / 'd'}@....": "no such version",
        "hf://datasets/../b@c": "no repository",
        "hf://models/a/b": "no dataset",
    }.items():
        with pytest.raises(InputError, match=words):
            open_version(reference)
    with pytest.raises(InputError, match="cobalt data collect"):
        version.table("trajectories")
    (version.path / "manifest.json").write_text('{"format": 1')
    with pytest.raises(InputError, match="damaged"):
        open_version(tmp_path / "d")


def test_other_readers_load_a_version_without_cobalt(tmp_path):
    rows = [problem(i, "train" if i % 3 else "test") for i in range(9)]
    commit(imported(rows, prompts=[prompt(i) for i in range(9)]), dataset=tmp_path / "d")
    loaded = datasets.load_dataset(
        str(tmp_path / "d" / "latest"), "prompts", split="train", cache_dir=str(tmp_path / "c")
    )
    assert sorted(loaded["problem_id"]) == [f"p/{i}" for i in range(9) if i % 3]
    assert loaded[0]["prompt"][0] == {"role": "user", "content": f"solve {loaded[0]['problem_id'][2:]}"}
    counted = duckdb.sql(f"select split, count(*) from '{tmp_path}/d/latest/prompts/*.parquet' group by 1 order by 1")
    assert counted.fetchall() == [("test", 3), ("train", 6)]


WRITER = """
import sys
from cobalt_data.commit import commit
from cobalt_data.dataset import open_version
sys.path.insert(0, sys.argv[2])
from test_dataset import narrowed
version = open_version(sys.argv[1])
print("ready", flush=True)
commit(narrowed(version, 150), [version])
print(open_version(sys.argv[1]).id, flush=True)
"""


def test_a_writer_killed_at_any_moment_leaves_the_old_version_and_a_rerun_finishes(tmp_path, monkeypatch):
    first = commit(imported([problem(i) for i in range(200)]), dataset=tmp_path / "d")
    command = [sys.executable, "-c", WRITER, str(tmp_path / "d"), str(Path(__file__).parent)]
    for delay in (0.0, 0.002, 0.005, 0.01, 0.02):
        writer = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert writer.stdout.readline() == b"ready\n"
        try:
            writer.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            writer.send_signal(signal.SIGKILL)
        writer.wait()
        survivor = open_version(tmp_path / "d")
        assert survivor.manifest.rows("problems") in (200, 150)
        for shard in survivor.manifest.tables["problems"]:
            assert hashlib.sha256((survivor.path / shard.path).read_bytes()).hexdigest() == shard.sha256
        if survivor.id != first.id:
            break
    again = commit(narrowed(first, 150), [open_version(first.reference)])
    assert again.manifest.rows("problems") == 150
    assert not list((tmp_path / "d" / "versions").glob(".staging-*"))


def test_a_full_disk_is_one_clear_line_and_changes_nothing(small_disk):
    first = commit(imported([problem(0)]), dataset=small_disk / "d")
    noise = random.Random(0)
    rows = [problem(i, statement=noise.randbytes(4000).hex()) for i in range(100)]
    with pytest.raises(CobaltError, match="no space left"):
        commit(Change("grow", {}, None, {"problems": table_from_rows("problems", rows)}, {}), [first])
    assert open_version(small_disk / "d").id == first.id
    assert version_ids(small_disk / "d") == [first.id]
