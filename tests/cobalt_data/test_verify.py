"""Verification: a sound version has no findings; whatever is done to a file, a row or the manifest is found and named."""

import hashlib
import json
import os
import random
import sys
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders import make_all_tables, make_dataset, make_problem

from cli import main
from cobalt_data.commit import Change, commit
from cobalt_data.dataset import open_version, table_from_rows
from cobalt_data.errors import CobaltError, InputError
from cobalt_data.inheritance import Family
from cobalt_data.manifest import Manifest
from cobalt_data.row_hashes import FEWEST_ROWS, FOLDER
from cobalt_data.rows import Prompt
from cobalt_data.schemas import PROBLEMS
from cobalt_data.verify import verify

SHARD = "problems/train-00000.parquet"


@pytest.fixture
def version(tmp_path):
    return make_all_tables(tmp_path / "d")


def findings(version):
    return [str(finding) for finding in verify(open_version(version.reference))]


def edit_manifest(version, edit):
    """As somebody does who means harm: nothing is left that would show it by itself."""
    path = version.path / "manifest.json"
    fields = json.loads(path.read_text())
    edit(fields)
    fields.pop("checksum", None)
    path.write_text(json.dumps(fields))


def forge(version, name, change):
    """Commits changed rows of a table: the files and the manifest agree, the rows do not."""
    rows = [{**row, **change(row)} for row in version.rows(name)]
    return commit(Change("forge", {"name": name}, None, {name: table_from_rows(name, rows)}, {}), [version])


def test_a_sound_version_has_no_findings_and_every_row_is_counted(version):
    seen = []
    assert list(verify(version, lambda done, rows: seen.append((done, rows)))) == []
    assert seen[-1] == (36, 36) and seen == sorted(seen)


def test_processes_that_share_the_shards_find_the_same(version, monkeypatch):
    forge(version, "trajectories", lambda row: {"solved": not row["solved"]})
    forged = open_version(version.dataset)
    (version.path / SHARD).unlink()
    alone = findings(forged), findings(version)
    monkeypatch.setattr("cobalt_data.shard_checks.WORTH_PROCESSES", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert (findings(forged), findings(version)) == alone
    assert len(alone[0]) == 12 and any("is missing" in finding for finding in alone[1])
    assert next(verify(forged)) is not None  # and whoever has seen enough may leave


def test_a_process_that_dies_is_one_clear_line(version, monkeypatch):
    monkeypatch.setattr("cobalt_data.shard_checks.WORTH_PROCESSES", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("cobalt_data.shard_checks.SERVE", "raise SystemExit(9)")
    with pytest.raises(CobaltError, match="the process that checked it died"):
        findings(version)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "bytes, not"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"x"), "has the sha256"),
        (lambda path: path.unlink(), "is missing"),
        (lambda path: (path.rename(path.parent.parent / "x"), path.symlink_to("../x")), "symbolic link"),
        (lambda path: path.with_name("train-00001.parquet").write_bytes(b"PAR1"), "not in the manifest"),
        (lambda path: (path.parent.rename(path.parents[1] / "x"), path.parent.symlink_to("x")), "symbolic link"),
    ],
)
def test_damage_to_a_file_is_found_and_named(version, damage, words):
    damage(version.path / SHARD)
    found = findings(version)
    assert len(found) == 1 and words in found[0] and found[0].startswith("problems")


@pytest.fixture
def hashed(tmp_path):
    """A version whose rows are hashed beside their shard."""
    return make_dataset(tmp_path / "d", [make_problem(f"p{index}") for index in range(FEWEST_ROWS)])


def test_a_changed_byte_of_any_file_is_found(hashed, monkeypatch, capsys):
    draw = random.Random(0)
    for path in (hashed.path / name for name in ("manifest.json", "README.md", SHARD)):
        whole = path.read_bytes()
        for place in draw.sample(range(len(whole)), 8):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << draw.randrange(8)]) + whole[place + 1 :])
            if path.name == "manifest.json" and same_json(path.read_bytes(), whole):
                continue
            monkeypatch.setattr(sys, "argv", ["cobalt", "data", "verify", str(hashed.dataset)])
            with pytest.raises(SystemExit, match=r"^1$"):
                main()
            said = capsys.readouterr()
            assert said.err.startswith("cobalt: ") and said.err.count("\n") == 1, (path, place)
        path.write_bytes(whole)
    assert findings(hashed) == []


def same_json(one, other):
    try:
        return json.loads(one) == json.loads(other)
    except ValueError:
        return False


def test_what_the_id_does_not_cover_is_checked_as_well(hashed):
    manifest, card = hashed.path / "manifest.json", hashed.path / "README.md"
    hashes = hashed.path / FOLDER / hashed.manifest.shards[0].path
    whole = {path: path.read_bytes() for path in (manifest, card, hashes)}
    for path, change, words in (
        (manifest, lambda text: text.replace(b'"created_at": "2', b'"created_at": "1'), "is not as it was written"),
        (card, lambda text: text.replace(b"problems/train-*", b"problems/*-*"), "README.md: is not as it was written"),
        (card, lambda text: b"", "README.md: is not as it was written"),
        (hashes, lambda text: b"PAR1", f"{FOLDER}/{SHARD}: cannot be read"),
    ):
        assert change(whole[path]) != whole[path]
        path.write_bytes(change(whole[path]))
        (found,) = findings(hashed)
        assert words in found
        path.write_bytes(whole[path])
    rows = pq.read_table(hashes)
    pq.write_table(rows.set_column(1, "hash", rows["hash"].take(list(reversed(range(len(rows)))))), hashes)
    assert "does not hold the hashes" in findings(hashed)[0]
    hashes.unlink()
    edit_manifest(hashed, lambda fields: None)  # as versions were before there were checksums
    card.unlink()
    assert findings(hashed) == []


def test_a_version_that_lies_elsewhere_is_found(version):
    version.path.rename(version.dataset / "elsewhere")
    version.path.symlink_to("../elsewhere")
    assert "symbolic link" in findings(version)[0]


def rewrite(version, table, **more):
    """Replaces a shard and makes the manifest agree with its bytes."""
    path = version.path / SHARD
    pq.write_table(table, path)
    facts = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size, **more}
    edit_manifest(version, lambda fields: fields["tables"]["problems"][1].update(facts))


def test_values_changed_behind_a_matching_sha256_are_found(version):
    table = pq.read_table(version.path / SHARD)
    titles = pa.array(["else", *table["title"].to_pylist()[1:]])
    changed = table.set_column(2, PROBLEMS.field("title"), titles)
    rewrite(version, changed)
    assert findings(version) == [f"{SHARD}: its rows are not those of the manifest"]
    rewrite(version, table.append_column("more", titles))
    assert "columns" in findings(version)[0]
    rewrite(version, changed, content="0" * 64)
    assert findings(version)[0].startswith("manifest.json: what it says makes version")


def test_text_that_is_no_text_is_found(version):
    table = pq.read_table(version.path / SHARD)
    bad = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    rewrite(version, table.slice(0, 1).set_column(2, PROBLEMS.field("title"), bad))
    assert "cannot be read" in findings(version)[0]


def test_a_shard_that_bursts_is_refused_before_it_fills_the_memory(version, monkeypatch):
    monkeypatch.setattr("cobalt_data.shard_checks.LARGEST_SHARD", 1 << 20)
    table = pq.read_table(version.path / SHARD)
    row = {**table.slice(0, 1).to_pylist()[0], "statement": "a" * 10_000}
    rewrite(version, pa.Table.from_pylist([row] * 1000, PROBLEMS))
    assert (version.path / SHARD).stat().st_size < 1 << 20
    assert "holds more than" in findings(version)[0]


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("trajectories", lambda row: {"seed": row["seed"] + 1}, "its content has the id"),
        ("trajectories", lambda row: {"solved": False}, "does not agree with the rest of the row in solved"),
        ("trajectories", lambda row: {"turns": "[{"}, "is not a row"),
        ("trajectories", lambda row: {"turns": "[" * 100_000}, "is not a row"),
        ("problems", lambda row: {"tests": "[]"}, "has no tests"),
        ("problems", lambda row: {"judge": '{"checker":NaN}'}, "is not a row"),
        ("problems", lambda row: {"metadata": "null"}, "metadata is None: it must be an object"),
        ("problems", lambda row: {"metadata": "[1]"}, "metadata is [1]: it must be an object"),
        ("problems", lambda row: {"solutions": "[1]"}, "a solution is 1: it must be text"),
        ("trajectories", lambda row: {"messages": []}, "holds 0 programs, but it has 2 turns"),
        ("trajectories", lambda row: {"messages": row["messages"][1:]}, "does not begin with a task"),
        ("trajectories", lambda row: {"messages": row["messages"][:3]}, "holds 1 programs, but it has 2 turns"),
        ("trajectories", lambda row: {"messages": [{"role": "user", "content": None}]}, "without role or content"),
        ("trajectories", lambda row: {"sampling": "[]"}, "sampling is []: it must be an object"),
        ("trajectories", lambda row: {"turns": row["turns"].replace('"stdout":"1\\n"', '"stdout":1')}, "is no text"),
        (
            "trajectories",
            lambda row: {"turns": row["turns"].replace('"feedback":', '"feedback":1,"_":')},
            "is not a row",
        ),
        ("trajectories", lambda row: {"turns": row["turns"].replace("0.5", "-0.5")}, "a pass rate of a turn is -0.5"),
        ("trajectories", lambda row: {"turns": row["turns"].replace('tokens":5', 'tokens":-5')}, "of a turn is -5"),
        ("trajectories", lambda row: {"perturbation": "[1]"}, "is [1]: it must be an object"),
        ("prompts", lambda row: {"turn": 2}, "holds 1 programs, but it has 2 turns"),
        ("prompts", lambda row: {"turn": -1}, "turn is -1"),
        ("prompts", lambda row: {"prompt": [{"role": "user", "content": "x"}]}, "holds 0 programs, but it has 1 turns"),
        ("prompts", lambda row: {"prev_best_pass_rate": float("inf")}, "prev_best_pass_rate is inf"),
        ("prompts", lambda row: {"prev_best_pass_rate": float("nan")}, "prev_best_pass_rate is nan"),
        ("prompts", lambda row: {"prompt_tokens": -1}, "prompt_tokens is -1"),
        ("prompts", lambda row: {"perturbation": "["}, "it must be JSON"),
        ("prompts", lambda row: {"perturbation": '{"seed":0}'}, "kind is None: it must be text"),
        ("prompts", lambda row: {"perturbation": '{"kind":"swap","original":null}'}, "original is None"),
        ("prompts", lambda row: {"perturbation": '{"kind":"swap","original":{}}'}, "of its original is None"),
    ],
)
def test_a_row_that_contradicts_itself_is_named(version, name, change, words):
    forged = forge(version, name, change)
    found = findings(forged)
    assert len(found) == 12 and all(words in finding for finding in found)
    assert found[0].split(":")[0].split()[0] == name


def test_rows_without_their_parents_and_on_the_wrong_side_are_found(version, monkeypatch):
    monkeypatch.setattr(Family, "settle", lambda family, piece: (piece, Counter()))
    (problem, *others) = version.rows("problems")
    moved = [{**problem, "split": "train"}, *others[1:]]
    broken = commit(Change("forge", {}, None, {"problems": table_from_rows("problems", moved)}, {}), [version])
    found = findings(broken)
    assert any("its problem_id is none of the problems" in finding for finding in found)
    assert any("is on another side than its problem_id" in finding for finding in found)
    assert {finding.split()[0] for finding in found} == {"trajectories", "prompts"}


def test_a_prompt_with_more_turns_than_its_trajectory_is_found(version):
    chat = 2 * [{"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}]
    rows = [{**row, "turn": 3, "prompt": [*chat, *chat[1:], chat[0]]} for row in version.rows("prompts")]
    longer = [Prompt.from_row(row).to_row() for row in rows]
    forged = commit(Change("forge", {}, None, {"prompts": table_from_rows("prompts", longer)}, {}), [version])
    assert findings(forged) == [
        f"prompts {row['prompt_id']}: has more turns than its trajectory" for row in forged.rows("prompts")
    ]


def test_repeated_ids_are_found(version):
    shard = version.manifest.tables["problems"][0]
    twin = replace(shard, path="problems/test-00001.parquet")
    os.link(version.path / shard.path, version.path / twin.path)
    edit_manifest(
        version,
        lambda fields: fields["tables"]["problems"].append({**fields["tables"]["problems"][0], "path": twin.path}),
    )
    assert any("stands in 2 rows" in finding for finding in findings(version))


BAD_FIELDS = {
    "path": ("../../../etc/passwd", "/etc/passwd", "problems/../x.parquet", "prompts/train-00000.parquet", 7, None),
    "split": ("../x", "train-x", "", "a" * 65, ["train"]),
    "rows": (-1, True, 1.5, "1", 1 << 80),
    "sha256": ("0" * 63, "G" * 64, None),
}
BAD_MANIFESTS = {
    "id": ("../../x", "ABCDEF123456", 5),
    "parents": (["../x"], [5], "abc", 7),
    "operation": ("import\x1b[2J", "", 5),
    "arguments": ([], "x"),
    "counts": ({"problems": {"rows_in": -1, "rows_out": 0}}, {"problems": 5}, {"problems": {"rows_in": 1}}),
    "tables": ([], {"secrets": []}, {"problems": {"a": 1}}, {"problems": [1]}),
    "unknown": (1,),
    "seed": ("1", 1 << 70, False),
}
BAD_TEXTS = ("", "[]", "{", "[" * 100_000, '{"format": 1}', '{"format": NaN}', "\ud800")


def test_a_hostile_manifest_is_refused_before_anything_is_read(version):
    whole = json.loads((version.path / "manifest.json").read_text())
    texts = [text.encode("utf-8", "surrogatepass") for text in BAD_TEXTS]
    for field, values in BAD_MANIFESTS.items():
        texts += [json.dumps({**whole, field: value}).encode() for value in values]
    for field, values in BAD_FIELDS.items():
        for value in values:
            edited = json.loads(json.dumps(whole))
            edited["tables"]["problems"][1][field] = value
            texts.append(json.dumps(edited).encode())
    for text in texts:
        (version.path / "manifest.json").write_bytes(text)
        with pytest.raises(InputError, match="damaged") as refusal:
            open_version(version.dataset)
        assert str(refusal.value).isprintable() and len(str(refusal.value)) < 600
    (version.path / "manifest.json").write_text(json.dumps(whole))
    assert Manifest.load(version.path) == version.manifest


def test_a_manifest_under_another_versions_name_is_refused(version, tmp_path):
    other = make_dataset(tmp_path / "other", [make_problem("q")])
    other.manifest.save(version.path)
    with pytest.raises(InputError, match=f"manifest is that of version {other.id}"):
        open_version(version.dataset)
