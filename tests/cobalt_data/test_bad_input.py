"""Bad input of more than forty kinds to imports and references: one line each, status 2, and nothing is written."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import socket
import sys
import zipfile
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders import make_all_tables

from cli import main
from cobalt_data.importers import reader

ROW = {"id": 7, "question": "Echo.", "test_cases": {"inputs": ["1", "2", "3"], "outputs": ["1", "2", "3"]}}
DEEP = "[" * 100_000


def line(**changes):
    return json.dumps({**ROW, **changes}).encode() + b"\n"


def with_input(value):
    return line(test_cases={"inputs": [value], "outputs": ["1"]})


def parquet(*rows, **options):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink, **options)
    return sink.getvalue().to_pybytes()


CONTENTS = {
    "an empty file": b"",
    "blank lines alone": b"\n\r\n \n",
    "a gzip file of nothing": gzip.compress(b""),
    "a row of a wrong type": b"5\n",
    "an array of rows": b"[" + line() + b"]",
    "null": b"null\n",
    "not JSON": b"{'id': 7}\n",
    "a row cut short": line()[:-20],
    "two rows on a line": line().strip() + line(),
    "lines that end in CR alone": line().strip() + b"\r" + line(id=8).strip() + b"\rx",
    "UTF-16": line().decode().encode("utf-16"),
    "UTF-16 without a mark": line().decode().encode("utf-16-le"),
    "invalid UTF-8": line().replace(b"Echo", b"Ech\xff"),
    "an overlong encoding": line().replace(b"Echo", b"Ech\xc0\xaf"),
    "half a surrogate pair": line(question="\ud800"),
    "a byte order mark within": line() + b"\xef\xbb\xbf" + line(id=8),
    "a NUL for a row": b"\0\n",
    "NaN for text": line(question=float("nan")),
    "infinity for an id": b'{"id": Infinity, "question": "x", "test_cases": null}\n',
    "null for text": line(question=None),
    "a number for text": with_input(5),
    "an object for text": with_input({"a": 1}),
    "null for tests": line(test_cases=None),
    "no tests": line(test_cases={"inputs": [], "outputs": []}),
    "tests without a pair": line(test_cases={"inputs": ["1"], "outputs": []}),
    "tests that are JSON text of nothing": line(test_cases="null"),
    "tests that are no JSON text": line(test_cases="{"),
    "a missing id": json.dumps({"question": "x", "test_cases": {}}).encode(),
    "an id of several lines": line(id="a\nb"),
    "an id of a megabyte": line(id="x" * 2**20),
    "a fraction for an id": line(id=1.5),
    "true for an id": line(id=True),
    "a duplicate id": line() + line(question="Something else."),
    "a huge integer": b'{"id": ' + b"9" * 5000 + b"}\n",
    "a huge exponent": b'{"id": 1e999, "question": "x", "test_cases": null}\n',
    "deep nesting": DEEP.encode(),
    "deep nesting within a field": line(test_cases=DEEP),
    "a line of more than the bound": line(question="x" * 3_000_000),
    "a gzip bomb of one line": gzip.compress(bytes(20_000_000)),
    "a gzip bomb of blank lines": gzip.compress(b"\n" * 1_100_000),
    "a truncated gzip file": gzip.compress(b"".join(line(id=n) for n in range(500)))[:-30],
    "a gzip file with a wrong checksum": gzip.compress(line())[:-8] + bytes(8),
    "gzip with junk behind it": gzip.compress(line()) + b"junk",
    "raw deflate": zlib.compress(line()),
    "a truncated Parquet file": parquet(ROW)[:-20],
    "a Parquet file without its middle": parquet(ROW)[:40] + bytes(60) + parquet(ROW)[100:],
    "a Parquet file of nothing": parquet(ROW)[:0] + b"PAR1PAR1",
    "a Parquet file of no rows": parquet(ROW)[:0] + parquet(),
    "a Parquet file of other columns": parquet({"hello": 1}),
    "a Parquet file with a struct for text": parquet({**ROW, "question": {"a": 1}}),
    "a Parquet file with NaN for text": parquet({**ROW, "question": float("nan")}),
    "a Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
    "a SQLite database": b"SQLite format 3\0",
    "an HTML page": b"<!doctype html><html>Not found</html>",
}  # fmt: skip


def say(monkeypatch, capsys, *arguments):
    """What the command says on standard error; it must be one line, and the status 2."""
    monkeypatch.setattr(sys, "argv", ["cobalt", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    said = capsys.readouterr()
    assert stopped.value.code == 2, said
    assert said.out == "" and said.err.startswith("cobalt: ") and said.err.count("\n") == 1
    assert len(said.err) < 1000 and "Traceback" not in said.err
    return said.err


@pytest.fixture
def refuse(tmp_path, monkeypatch, capsys):
    """Runs an import that must be refused, and sees that it writes nothing."""
    monkeypatch.setattr(reader, "MAX_LINE_BYTES", 2**21)
    monkeypatch.setattr(reader, "MAX_BLANK_LINES", 10_000)

    def run(source, format="reference"):
        said = say(monkeypatch, capsys, "data", "import", source, "--format", format, "-o", tmp_path / "made")
        assert not (tmp_path / "made").exists()
        return said

    return run


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_bad_file_is_one_line_that_names_it(kind, refuse, tmp_path):
    source = tmp_path / "rows"
    source.write_bytes(CONTENTS[kind])
    assert str(source) in refuse(source)


@pytest.mark.parametrize("format", ["humaneval", "mbpp", "leetcode", "kickstart_codejam", "taco", "apps", "livecodebench", "cobalt"])  # fmt: skip
@pytest.mark.parametrize("kind", ["deep nesting within a field", "half a surrogate pair", "a huge exponent"])
def test_every_format_refuses_what_is_none_of_its_rows(format, kind, refuse, tmp_path):
    source = tmp_path / "rows"
    source.write_bytes(CONTENTS[kind])
    refuse(source, format)


def test_what_is_no_regular_file_is_refused_and_never_waited_for(refuse, tmp_path):
    pipe, link, loop, unix = (tmp_path / name for name in ("pipe", "link", "loop", "socket"))
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    loop.symlink_to(loop)
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(tmp_path)
        server.bind("socket")
        for path in (pipe, link, unix, Path("/dev/zero"), Path("/dev/stdin")):
            assert "is no regular file" in refuse(path)
            assert "is no regular file" in refuse(path, "package")
            assert "is no regular file" in refuse(path, "cobalt")
    assert "cannot be read" in refuse(loop)
    assert "does not exist" in refuse(tmp_path / "none")
    assert "is a directory" in refuse(tmp_path)
    assert "cannot be read" in refuse("x" * 5000)
    assert "is an address" in refuse("https://example.org/a.jsonl")
    assert "is unknown" in refuse(pipe, "humanevil")
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "gone")
    assert "does not exist" in refuse(dangling)


def test_a_file_without_permission_is_named(refuse, tmp_path, monkeypatch):
    source = tmp_path / "rows"
    source.write_bytes(line())

    def denied(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)  # whoever runs the tests may be allowed to read everything
    assert f"{source} cannot be read: Permission denied" in refuse(source)


def test_mixed_line_ends_and_a_mark_at_the_start_are_no_harm(tmp_path, monkeypatch):
    source = tmp_path / "rows"
    source.write_bytes(b"\xef\xbb\xbf" + line().strip() + b"\r\n\r\n" + line(id=8) + line(id=9).strip())
    arguments = [
        "cobalt",
        "data",
        "import",
        str(source),
        "--format",
        "reference",
        "-o",
        str(tmp_path / "made"),
        "--json",
    ]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code and len(list(tmp_path.glob("made/versions/*"))) == 1


def zipped(path, *names):
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return path


def test_bad_packages_are_refused(refuse, tmp_path):
    assert "leads out of it" in refuse(zipped(tmp_path / "a.zip", "problem.yaml", "../../etc/cron.d/x"), "package")
    assert "problem.yaml is missing" in refuse(zipped(tmp_path / "b.zip", "readme"), "package")
    assert "is a zip archive" in refuse(tmp_path / "b.zip", "reference")
    (tmp_path / "c.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    assert "problem.yaml is missing" in refuse(tmp_path / "c.zip", "package")


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    return make_all_tables(tmp_path_factory.mktemp("whole") / "d")


@pytest.fixture
def broken(version, monkeypatch, capsys):
    """A version whose manifest is changed before it is read; what each of several verbs says of that."""
    path = version.path / "manifest.json"
    whole = path.read_text()

    def read(change):
        fields = json.loads(whole)
        content = change(fields)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(fields).encode())
        return [say(monkeypatch, capsys, "data", verb, version.dataset) for verb in ("log", "split")]

    yield read
    path.write_text(whole)


def put(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(fields):
        for key in keys:
            fields = fields[key]
        fields[last] = value

    return change


SHARD = ("tables", "problems", 0)
MANIFESTS = {
    "an empty manifest": lambda fields: b"",
    "a manifest that is no JSON": lambda fields: b"{",
    "a manifest that is no object": lambda fields: b"[]",
    "a manifest of deep nesting": lambda fields: DEEP.encode(),
    "a manifest of invalid UTF-8": lambda fields: b"\xff\xfe{}",
    "a manifest with NaN": put("seed", float("nan")),
    "a manifest of a future format": put("format", 99),
    "a manifest without a format": lambda fields: fields.pop("format") and None,
    "a field of the future": put("more", 1),
    "another version's id": put("id", "0" * 12),
    "an id that is a path": put("id", "../../../etc"),
    "a parent that is a path": put("parents", ["../../x"]),
    "a table that there is not": put("tables", "secrets", []),
    "a shard outside of the version": put(*SHARD, "path", "../../../../etc/passwd"),
    "a shard with an absolute path": put(*SHARD, "path", "/etc/passwd"),
    "a shard in another table's folder": put(*SHARD, "path", "prompts/test-00000.parquet"),
    "a side that is a path": put(*SHARD, "split", "../x"),
    "a shard of negative size": put(*SHARD, "bytes", -1),
    "a shard of a huge size": put(*SHARD, "bytes", 10**30),
    "a shard with a word for its size": put(*SHARD, "bytes", "many"),
    "a shard with a wrong hash": put(*SHARD, "sha256", "x"),
    "counts that are text": put("counts", "many"),
    "an operation that a terminal would obey": put("operation", "\x1b[2J"),
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_bad_manifest_is_one_line_whichever_verb_reads_it(kind, broken):
    for said in broken(MANIFESTS[kind]):
        assert "manifest" in said


@pytest.mark.parametrize("reference", ["", "none", "d@", "d@zz", "d@0123456789ab", "@", "hf://x", "hf://datasets/a", "hf://datasets/../x", "\x00", "file"])  # fmt: skip
def test_a_reference_to_nothing_is_one_line(reference, version, monkeypatch, capsys):
    monkeypatch.chdir(version.dataset.parent)
    Path("file").write_text("x")
    for verb in ("verify", "split"):
        say(monkeypatch, capsys, "data", verb, reference)
    say(monkeypatch, capsys, "data", "merge", "d", reference, "-o", "made")
    assert not Path("made").exists()


def test_links_in_the_place_of_a_version_or_its_parts_lead_nowhere(tmp_path, monkeypatch, capsys):
    version = make_all_tables(tmp_path / "d")
    latest = tmp_path / "d" / "latest"
    for target in ("versions/gone", "../../etc", "latest", "/etc/passwd"):
        latest.unlink()
        latest.symlink_to(target)
        say(monkeypatch, capsys, "data", "log", tmp_path / "d")
    shutil.rmtree(latest) if latest.is_dir() and not latest.is_symlink() else latest.unlink()
    assert "is not a cobalt dataset" in say(monkeypatch, capsys, "data", "log", tmp_path / "d")
    manifest = version.path / "manifest.json"
    manifest.unlink()
    manifest.mkdir()
    say(monkeypatch, capsys, "data", "log", f"{tmp_path / 'd'}@{version.id}")
